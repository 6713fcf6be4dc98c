"""Scores of images that are in memory, computed elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from visionshare.batch.mapping import Mapper, itself
from visionshare.classifier import CompactClassifier
from visionshare.machine.resources import single_threaded_blas

# Bytes of images that are sent together.
_CHUNK = 4 << 20


def score_images(classifier: CompactClassifier, images: np.ndarray, mapper: Mapper) -> np.ndarray:
    """Return the scores of images, equal to ``classifier.decision_function`` bit for bit."""
    plain = replace(classifier, exit_rule=None, path=())
    step = max(1, _CHUNK // max(1, images[:1].nbytes))

    def chunks() -> Iterator[np.ndarray]:
        return (images[i : i + step] for i in range(0, max(1, len(images)), step))

    return np.concatenate(list(mapper(_scores, itself, (plain,), chunks())))


def _scores(classifier: CompactClassifier, images: np.ndarray) -> np.ndarray:
    with single_threaded_blas():
        return classifier.decision_function(images)
