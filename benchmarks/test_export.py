"""A classifier of 75 patch features computed by its own C, against Python, on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.data import synthetic
from benchmarks.measuring import Noted, Paired
from visionshare import CompactClassifier
from visionshare.export import compile_classifier
from visionshare.machine.resources import thread_limit


@pytest.fixture(scope="module")
def classifier() -> CompactClassifier:
    return synthetic(0.45)


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (4096, 28, 28), np.uint8)


@pytest.mark.parametrize("quantize", ["none", "int8", "int16"])
def test_one_image(
    paired: Paired, classifier: CompactClassifier, images: np.ndarray, quantize: str
) -> None:
    """A thousand single images in turn; most of the rest is Python's own call."""
    compiled = compile_classifier(classifier, quantize=quantize)

    def ours() -> None:
        for image in images[:1000]:
            compiled.decision_function(image)

    def plain() -> None:
        with thread_limit(1):
            for image in images[:1000]:
                classifier.decision_function(image)

    paired(ours, plain)


@pytest.mark.parametrize("quantize", ["none", "int8", "int16"])
def test_batches(
    paired: Paired, classifier: CompactClassifier, images: np.ndarray, quantize: str
) -> None:
    compiled = compile_classifier(classifier, quantize=quantize)
    paired(
        lambda: compiled.decision_function(images),
        lambda: classifier.decision_function(images),
    )


@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_microseconds(
    benchmark: Any, noted: Noted, classifier: CompactClassifier, images: np.ndarray, quantize: str
) -> None:
    compiled = compile_classifier(classifier, quantize=quantize)
    benchmark.pedantic(compiled.decision_function, (images[0],), rounds=5000, warmup_rounds=100)
    noted(f"{1e6 * benchmark.stats.stats.median:.1f} µs per image")
