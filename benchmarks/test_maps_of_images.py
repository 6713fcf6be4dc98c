"""Few templates on digits: convolution, maximum with 0, maxima of cells; on one thread."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Paired
from visionshare import Templates
from visionshare.generators.layers.forward import Forward

SIDE = 1024


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (5000, 28, 28), np.uint8)


@pytest.mark.parametrize("n", [5000, 1])
def test_maps_against_a_product(paired: Paired, digits: np.ndarray, n: int) -> None:
    """Four maps of 5x5 pixels, against a product with as many multiply-accumulates.

    The product is of large matrices: as fast as this core multiplies and adds.
    """
    raster = digits[..., None]
    layer = Templates(4, 5, pool=2, n_patches=2000)
    fitted = layer.fit(raster[:200], None, np.random.default_rng(0))
    forward, images = Forward([fitted]), raster[:n]
    calls = len(digits) // n
    rows = round(fitted.macs() * n * calls / SIDE**2)
    rng = np.random.default_rng(1)
    left, right = rng.random((rows, SIDE), np.float32), rng.random((SIDE, SIDE), np.float32)
    out = np.empty((rows, SIDE), np.float32)

    def ours() -> None:
        for _ in range(calls):
            forward.outputs(images, 1)

    def plain() -> None:
        with threadpool_limits(1):
            np.dot(left, right, out=out)

    paired(ours, plain)
