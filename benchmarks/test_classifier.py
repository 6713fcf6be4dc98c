"""A classifier of 75 features on 28x28 images, and the start of the command line."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.data import synthetic
from benchmarks.measuring import Noted, Paired
from visionshare import CompactClassifier, Monomials


@pytest.fixture(scope="module")
def classifier() -> CompactClassifier:
    return synthetic(0.5)


def test_one_image(benchmark: Any, noted: Noted, classifier: CompactClassifier) -> None:
    image = np.random.default_rng(1).integers(0, 256, (28, 28), np.uint8)
    benchmark.pedantic(classifier.decision_function, (image,), rounds=2000, warmup_rounds=50)
    middle = benchmark.stats.stats.median
    noted(f"{1e6 * middle:.0f} µs, {classifier.macs:,} macs")


def test_batches_on_one_thread(benchmark: Any, noted: Noted, classifier: CompactClassifier) -> None:
    images = np.random.default_rng(1).integers(0, 256, (4096, 28, 28), np.uint8)
    benchmark.pedantic(classifier.decision_function, (images,), rounds=9, warmup_rounds=1)
    middle = benchmark.stats.stats.median
    noted(f"{4096 / middle:,.0f} images a second")


def test_against_the_plain_arithmetic(paired: Paired, classifier: CompactClassifier) -> None:
    """The classifier against a matrix product of as many multiply-accumulates, one thread."""
    images = np.random.default_rng(1).integers(0, 256, (1024, 28, 28), np.uint8)
    rng = np.random.default_rng(2)
    rows = classifier.macs * len(images) // (49 * 64)
    A = rng.random((rows // 64, 49), np.float32)
    B = rng.random((49, 64), np.float32)
    out = np.empty((len(A), 64), np.float32)

    def plain() -> None:
        with threadpool_limits(1):
            for _ in range(64):
                np.matmul(A, B, out=out)

    paired(lambda: classifier.decision_function(images), plain)


def test_products_of_features_side_by_side(paired: Paired, classifier: CompactClassifier) -> None:
    """Scores of 75 features and all products of pairs, one thread: products in cache or written."""
    chosen, n = classifier.family, classifier.n_features
    pairs = list(zip(*np.triu_indices(n), strict=True))
    family = Monomials.of(chosen, [*((j,) for j in range(n)), *pairs])
    weights = np.random.default_rng(3).normal(size=(10, family.n_features_)).astype(np.float32)
    images = np.random.default_rng(1).integers(0, 256, (1024, 28, 28), np.uint8)

    def plain() -> Any:
        with threadpool_limits(1):
            return family.transform(images) @ weights.T

    paired(lambda: family.weighted_sums(images, weights), plain)


@pytest.mark.parametrize(
    "arguments",
    [["-c", "import visionshare"], ["-m", "visionshare.cli", "--help"]],
    ids=["import", "help"],
)
def test_start(benchmark: Any, noted: Noted, arguments: list[str]) -> None:
    """Seconds beyond an interpreter that does nothing, in turn with it."""

    def run(command: list[str]) -> Any:
        begun = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun

    run(arguments)
    pairs = [(run(["-c", "pass"]), run(arguments)) for _ in range(11)]
    seconds = statistics.median(b - a for a, b in pairs)
    whole = statistics.median(b for _, b in pairs)
    benchmark.pedantic(run, (arguments,), rounds=3)
    noted(f"{1e3 * seconds:.0f} ms, {1e3 * whole:.0f} with Python")
