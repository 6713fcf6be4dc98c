"""Pictures in a report: mistakes, explained images, and what families show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier, explain
from visionshare.generators.pictures import Sample, Tile
from visionshare.reports.encoding import png_source, thumbnail_source
from visionshare.reports.overlays import overlay_picture
from visionshare.reports.results import Results, ValueResults

# Features of an explained image, and the longer side of its picture.
_FEATURES = 6
_SIDE = 300
# Images that show what templates respond to: so many, and so many values of them, at most.
_MOST_IMAGES = 500
_MOST_VALUES = 2**22
# Colors of a small picture: a palette is a third of the bytes.
_COLORS = 32


def samples(
    images: np.ndarray, labels: np.ndarray, classes: Sequence[str], n: int = 5, most: int = 24
) -> list[dict[str, Any]]:
    """Return the count and a few pictures of each of the first classes."""
    if images.ndim < 3:
        return []
    groups = []
    for c, name in enumerate(classes[:most]):
        own = np.flatnonzero(labels == c)
        shown = own[np.linspace(0, len(own) - 1, min(n, len(own))).astype(int)]
        sources = [thumbnail_source(images[i]) for i in shown]
        groups.append({"name": name, "images": len(own), "sources": sources})
    return groups


def mistakes_by_cell(results: Results, most: int = 100) -> list[dict[str, Any]]:
    """Return misclassified images by cell of the confusion matrix, the fullest cell first."""
    if results.images.ndim < 3:
        return []
    cells: dict[tuple[int, int], list[int]] = {}
    for i in results.mistakes.tolist():
        cell = (int(results.labels[i]), int(results.predictions[i]))
        cells.setdefault(cell, []).append(i)
    fullest = sorted(cells.items(), key=lambda cell: -len(cell[1]))[:most]
    # Full cells leave room for the others.
    sizes = np.array([len(rows) for _, rows in fullest])
    shown = max(n for n in range(1, most + 1) if np.minimum(sizes, n).sum() <= most)
    return [
        {
            "cell": (true, predicted),
            "id": f"cell-{true}-{predicted}",
            "true": results.classes[true],
            "predicted": results.classes[predicted],
            "images": len(rows),
            "shown": [
                {"source": thumbnail_source(results.images[i]), **_described(results, i)}
                for i in rows[:shown]
            ],
        }
        for (true, predicted), rows in fullest
    ]


def worst_values(values: ValueResults, n: int = 40) -> list[dict[str, Any]]:
    """Return the images whose values are off most, the worst first."""
    if values.images.ndim < 3:
        return []
    worst = np.argsort(-np.abs(values.errors), kind="stable")[:n].tolist()
    return [
        {
            "source": thumbnail_source(values.images[i]),
            "name": f"image {i}" if values.names is None else values.names[i],
            "true": f"{values.truth[i]:.4g}",
            "said": f"{values.said[i]:.4g}",
        }
        for i in worst
    ]


def _described(results: Results, i: int) -> dict[str, Any]:
    return {
        "name": results.name_of(i),
        "true": results.classes[results.labels[i]],
        "predicted": results.classes[results.predictions[i]],
        "confidence": 100 * results.confidences[i],
    }


def explained_images(
    classifier: CompactClassifier, results: Results, n: int = 8
) -> list[dict[str, Any]]:
    """Return explanations of a few images: the most confident mistakes, and right answers."""
    if classifier.picture_size is None:
        return []
    chosen = results.mistakes[: n // 2].tolist()
    # Right answers, one of each class, then a second one.
    right = np.flatnonzero(results.labels == results.predictions)[:2000]
    of_class: dict[int, list[int]] = {}
    for i, label in zip(right.tolist(), results.labels[right].tolist(), strict=True):
        of_class.setdefault(label, []).append(i)
    for turn in range(n):
        chosen += [of_class[c][turn] for c in sorted(of_class) if turn < len(of_class[c])]
    return [_explained(classifier, results, i) for i in chosen[:n]]


def _explained(classifier: CompactClassifier, results: Results, i: int) -> dict[str, Any]:
    """Return what features add to the predicted class and to the true one, or to its rival."""
    explanation = explain(classifier, results.images[i])
    k = int(results.predictions[i])
    true = int(results.labels[i])
    # A class that the classifier lacks has no score.
    has_score = true != k and true < len(explanation.scores)
    rival = true if has_score else explanation.rival(k)
    evidence = explanation.evidence[[k, rival]]
    shown = explanation.top_features(k, _FEATURES)
    features = [
        {
            "rank": rank,
            "feature": f"{explanation.families[j]} {explanation.numbers[j]}",
            "value": explanation.values[j],
            "amounts": evidence[:, j],
        }
        for rank, j in enumerate(shown, 1)
    ]
    scores = evidence.sum(axis=1) + explanation.base_evidence[[k, rival]]
    drawing = overlay_picture(
        results.images[i], explanation, explanation.classes[k], _FEATURES, _SIDE
    )
    return {
        **_described(results, i),
        "source": png_source(drawing),
        "rival": results.classes[rival],
        "features": features,
        "rest": scores - evidence[:, shown].sum(axis=1),
        "scores": scores,
    }


def family_pictures(
    classifier: CompactClassifier, images: np.ndarray, called: str = "test images"
) -> list[dict[str, Any]]:
    """Return the pictures of a classifier's features by section, with a source for each tile."""
    if len(images) == 0:
        return []
    n = min(_MOST_IMAGES, _MOST_VALUES // int(np.prod(classifier.image_shape)), len(images))
    sample = images[np.linspace(0, len(images) - 1, max(1, n)).astype(int)]
    pictures = classifier.family.pictures(Sample(sample, sample, called=called))
    sections = []
    for section in pictures.panels(range(1, classifier.n_features + 1)):
        stacks = []
        for stack in section.stacks:
            rows = [
                {"sources": [_tile_source(tile) for tile in row.tiles], "label": row.label}
                for row in stack.rows
            ]
            stacks.append({"title": stack.title, "rows": rows})
        sections.append({"heading": section.heading, "caption": section.caption, "stacks": stacks})
    return sections


def _tile_source(tile: Tile) -> str:
    from matplotlib import colormaps

    values = np.nan_to_num(np.asarray(tile.values, np.float64), posinf=0, neginf=0)
    if not tile.signed:
        few = _COLORS if values.ndim == 3 else None
        return png_source(np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8), few)
    values = 0.5 + 0.5 * values / (float(np.abs(values).max(initial=0)) or 1.0)
    if values.ndim == 3:
        return png_source(np.rint(255 * values).astype(np.uint8))
    colors: np.ndarray = colormaps["RdBu_r"](values, bytes=True)[..., :3]
    return png_source(np.ascontiguousarray(colors))
