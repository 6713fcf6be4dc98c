"""Pictures of single images in a report: mistakes, and explained ones."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier, Explanation, explain
from visionshare.reports.overlays import marks, overlay_svg, png_source, rgb_picture
from visionshare.reports.results import Results

__all__ = ["explained_images", "misclassified"]

# The longer side of a picture in the page, at most; larger ones in color are JPEGs.
_LARGEST, _PLAIN = 96, 40
_FEATURES = 6


def misclassified(results: Results, n: int = 100) -> list[dict[str, Any]]:
    """Return up to ``n`` misclassified images, the most confident first."""
    # Each has a ``source``, the ``true`` and the ``predicted`` class, its ``confidence`` in
    # percent and a ``name``.
    if results.images.ndim < 3:
        return []
    return [
        {
            "source": _source(results.images[i]),
            "true": results.classes[results.labels[i]],
            "predicted": results.classes[results.predictions[i]],
            "confidence": 100 * results.confidences[i],
            "name": results.name_of(i),
        }
        for i in results.mistakes[:n].tolist()
    ]


def _source(image: np.ndarray) -> str:
    """Return a small picture of an image as the source of an <img>."""
    from PIL import Image

    shown = rgb_picture(image)
    if max(shown.shape[:2]) <= _PLAIN or image.shape[2:] != (3,):
        gray = shown if image.shape[2:] == (3,) else shown[..., 0]
        small = Image.fromarray(np.ascontiguousarray(gray))
        if max(small.size) > _LARGEST:
            small.thumbnail((_LARGEST, _LARGEST))
        return png_source(np.asarray(small))
    picture, data = Image.fromarray(shown), io.BytesIO()
    picture.thumbnail((_LARGEST, _LARGEST))
    picture.save(data, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode()


def explained_images(
    classifier: CompactClassifier, results: Results, n: int = 8
) -> list[dict[str, Any]]:
    """Return explanations of a few images: the most confident mistakes, and right answers."""
    if classifier.picture_size is None or not len(results):
        return []
    wrong = results.mistakes[: n // 2].tolist()
    # One right answer of each class, then a second one.
    right = np.flatnonzero(results.labels == results.predictions)
    labels = results.labels[right]
    turns = np.array([int(np.sum(labels[:i] == c)) for i, c in enumerate(labels[:2000].tolist())])
    first = right[: len(turns)][np.lexsort((labels[: len(turns)], turns))]
    return [
        _explained(results, explain(classifier, results.images[i]), i)
        for i in [*wrong, *first[: n - len(wrong)].tolist()]
    ]


def _explained(results: Results, said: Explanation, i: int) -> dict[str, Any]:
    from markupsafe import Markup

    k, true = int(results.predictions[i]), int(results.labels[i])
    order = np.argsort(-said.scores, kind="stable").tolist()
    # A class that the classifier lacks has no score.
    has_score = true != k and true < len(order)
    rival = true if has_score else next(c for c in order if c != k)
    name, evidence = said.classes[k], said.evidence
    features = [
        {
            "rank": mark.rank,
            "feature": f"{said.families[mark.feature]} {said.numbers[mark.feature]}",
            "value": said.values[mark.feature],
            "amounts": [evidence[k, mark.feature], evidence[rival, mark.feature]],
        }
        for mark in marks(said, name, _FEATURES)
    ]
    shown = [mark.feature for mark in marks(said, name, _FEATURES)]
    rest = (
        np.delete(evidence[[k, rival]], shown, axis=1).sum(axis=1) + said.base_evidence[[k, rival]]
    )
    return {
        "drawing": Markup(overlay_svg(results.images[i], said, name, _FEATURES)),
        "name": results.name_of(i),
        "true": results.classes[true],
        "predicted": results.classes[k],
        "rival": results.classes[rival],
        "confidence": 100 * results.confidences[i],
        "features": features,
        "rest": rest,
        "scores": evidence[[k, rival]].sum(axis=1) + said.base_evidence[[k, rival]],
    }
