"""The report: one HTML file that opens without a network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.durable import write_text
from visionshare.errors import InputError

__all__ = ["write_report"]


def write_report(
    path: str | os.PathLike[str],
    classifier: CompactClassifier,
    *,
    images: np.ndarray,
    labels: np.ndarray,
    predictions: np.ndarray,
    classes: Sequence[str],
    metrics: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> None:
    """Write the report of a classifier on test images.

    Parameters
    ----------
    path : path-like
    classifier : CompactClassifier
    images : ndarray of shape (n, H, W[, C])
        Test images.
    labels, predictions : ndarray of shape (n,), int
        Indexes into ``classes``.
    classes : sequence of str
    metrics : mapping
        The figures of ``metrics.json``.
    settings : mapping
        The recipe, nested plain values.

    Raises
    ------
    InputError
        If images, labels and predictions differ in length.
    """
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    from visionshare.reports import figures, tiles

    if not len(images) == len(labels) == len(predictions):
        lengths = (len(images), len(labels), len(predictions))
        raise InputError("predictions", lengths, "one label and one prediction per image")
    source = files("visionshare.reports").joinpath("report.html.j2").read_text("utf-8")
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    template = environment.from_string(source)
    wrong = int(np.sum(labels != predictions))
    # A path of one step is a classifier without prefixes: there is no curve to draw.
    curves = Markup(figures.learning_curves(classifier)) if len(classifier.path) > 1 else None
    page = template.render(
        title=str(metrics.get("pipeline", "classifier")),
        wrong=wrong,
        n_images=len(images),
        rate=100 * wrong / max(1, len(images)),
        classifier=classifier,
        curves=curves,
        layers=classifier.layers,
        plates=tiles.plates(classifier, images),
        weights=Markup(figures.weights_by_class(classifier)),
        confusion=Markup(figures.confusion(labels, predictions, classes)),
        misclassified=figures.misclassified(images, labels, predictions, classes, 100),
        preparation=classifier.preprocessing.describe(classifier.picture_mode),
        costs=_costs(classifier, metrics),
        settings=_flat(settings),
    )
    # A setting may name a file whose name is no text.
    write_text(path, page.encode("utf-8", "backslashreplace").decode())


def _costs(classifier: CompactClassifier, metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("features", f"{classifier.n_features:,}"),
        ("parameters", f"{classifier.n_parameters:,}"),
        ("multiply-accumulates per image", f"{classifier.macs:,}"),
        ("bytes needed for prediction", f"{classifier.nbytes:,}"),
    ]
    for stage, seconds in metrics.get("seconds", {}).items():
        rows.append((f"seconds of {stage}", f"{seconds:.1f}"))
    if "peak_memory" in metrics:
        rows.append(("peak memory of training", f"{metrics['peak_memory'] / 2**20:,.0f} MiB"))
    return rows


def _flat(settings: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{before}{key}.")
        else:
            rows.append((f"{before}{key}", str(value)))
    return rows
