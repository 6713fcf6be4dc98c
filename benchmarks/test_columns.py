"""Building columns against the plain matrix product of the same arithmetic."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.sparse import random_array
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Paired
from visionshare import PatchTemplates, Pixels
from visionshare.columns import ArrayColumns, SparseColumns
from visionshare.generators.monomials import ProductColumns
from visionshare.machine.resources import resolve_jobs

N_IMAGES = 256


def _images(kind: str) -> np.ndarray:
    if kind == "digits":
        # Handwritten digits as MNIST has them: 20 pixels high in the middle of 28.
        small = load_digits().images[:N_IMAGES].astype(np.float32)
        large = [cv2.resize(image, (14, 20), interpolation=cv2.INTER_CUBIC) for image in small]
        digits = np.clip(np.array(large) * 16, 0, 255).astype(np.uint8)
        digits[digits < 32] = 0
        return np.pad(digits, ((0, 0), (4, 4), (7, 7)))
    return np.random.default_rng(0).integers(0, 256, (N_IMAGES, 28, 28), np.uint8)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["digits", "noise"])
def test_16000_columns(paired: Paired, kind: str, dtype: str, threads: int) -> None:
    """All responses of 1000 templates, masked and pooled, against computing the responses alone.

    Digits have patches of zeros, which the kernel leaves out; noise has none.
    """
    images = _images(kind)
    family = PatchTemplates(n_templates=1000, widths=(6.5,), cut=0.5, n_patches=20_000)
    family.fit(images)
    threads = min(threads, resolve_jobs(-1))
    templates = np.ascontiguousarray(family.templates_.reshape(1000, -1).T)
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.float32) / 255
    windows = np.lib.stride_tricks.sliding_window_view(padded, (7, 7), axis=(1, 2))
    patches = np.ascontiguousarray(windows.reshape(N_IMAGES, -1, 49))
    batch = 16
    out = np.empty((batch * patches.shape[1], 1000), np.float32)

    def plain() -> None:
        with threadpool_limits(threads):
            for i in range(0, N_IMAGES, batch):
                np.matmul(patches[i : i + batch].reshape(-1, 49), templates, out=out)

    paired(lambda: family.transform_columns(images, None, threads, dtype), plain)


@pytest.mark.parametrize("density", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("kept", ["written out", "scipy"])
def test_products_of_sparse_columns(paired: Paired, density: float, kept: str) -> None:
    """XᵀR of 10 000 sparse columns against all their zeros, and against scipy's product."""
    rng = np.random.default_rng(0)
    X = random_array(
        (4000, 10_000), density=density, random_state=rng, format="csc", dtype=np.float32
    )
    R = rng.normal(size=(4000, 10)).astype(np.float32)
    columns = SparseColumns(X)
    transposed = X.T.tocsr()
    dense = ArrayColumns(X.toarray()) if kept == "written out" else None
    other = (lambda: dense.correlate(R)) if dense else (lambda: transposed @ R)
    paired(lambda: columns.correlate(R), other)


@pytest.mark.parametrize("size", [1.0, 1e-7])
def test_products_of_halves(paired: Paired, size: float) -> None:
    """XᵀR of float16 columns against float32's matrix product, for large and small residuals."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(4000, 4000))).astype(np.float16)
    R = (rng.normal(size=(4000, 10)) * size).astype(np.float32)
    columns, plain = ArrayColumns(X, dtype="float16"), np.ascontiguousarray(X.T, np.float32)

    def product() -> None:
        with threadpool_limits(1):
            plain @ R

    paired(lambda: columns.correlate(R), product)


def test_products_of_what_entered(paired: Paired) -> None:
    """Correlations of the 5,000 products of 100 columns that entered, against plain products.

    Plain: each product from its factors, one array for all, and the matrix product.
    """
    X = np.random.default_rng(0).uniform(-1, 1, (1500, 40)).astype(np.float32)
    columns = ProductColumns(ArrayColumns(X), Pixels().fit(X), entries=100)
    columns.enter(np.arange(40))
    columns.enter(columns.d + np.arange(60))
    ids = columns.d + np.arange(columns.n_products)
    residual = np.random.default_rng(1).normal(size=(1500, 1)).astype(np.float32)
    factors = columns.monomials(ids)

    def plain() -> None:
        products = np.stack([X[:, own].prod(axis=1) for own in factors])
        with threadpool_limits(1):
            np.matmul(products, residual)

    paired(lambda: columns.correlate(residual, ids), plain)
