"""Stores: what comparing shards with their digests costs, once in a process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.measuring import Paired
from visionshare import Pixels
from visionshare.store import create_store, open_store

N_IMAGES, SIDE = 60_000, 28


@pytest.mark.parametrize("k", [1, 10])
def test_opening_and_scanning(paired: Paired, tmp_path: Path, k: int) -> None:
    """Opening a store of 94 MB, whose digests are compared, and XᵀR, against XᵀR alone."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (N_IMAGES, SIDE, SIDE), np.uint8)
    family = Pixels().fit(images[:1])
    columns = create_store(tmp_path / "store", family, images)
    columns.fill()
    R = rng.standard_normal((N_IMAGES, k)).astype(np.float32)

    def opened() -> None:
        open_store(tmp_path / "store", family).correlate(R)

    paired(opened, lambda: columns.correlate(R))
