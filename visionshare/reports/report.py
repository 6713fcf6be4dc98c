"""The report: one HTML file that opens without a network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors.names import without_controls
from visionshare.files.durable import write_text
from visionshare.reports.figures import CurvePoint
from visionshare.reports.results import Results

__all__ = ["write_report"]

_ORIGINS = {
    "given": "The test images came with the data, apart from the training images.",
    "held out": (
        "They were drawn at random from each class before training, did not train, and were "
        "evaluated once."
    ),
    "unknown": (
        "Whether some of them trained the classifier is not known here; an error on these would be "
        "no test error."
    ),
}
_NO_TEST = (
    "No test figure: every image trained the classifier, and an error on images that were trained "
    "on says little about others. Give test images, or let some be held out."
)

# Rounds from which on the late ones are drawn once more, enlarged.
_EARLY = 5


def write_report(
    path: str | os.PathLike[str],
    classifier: CompactClassifier,
    results: Results | None,
    *,
    metrics: Mapping[str, Any],
    settings: Mapping[str, Any],
    examples: np.ndarray | None = None,
    learning_curve: Sequence[CurvePoint] = (),
) -> None:
    """Write the report of a classifier on labeled images.

    Parameters
    ----------
    path : path-like
    classifier : CompactClassifier
    results : Results or None
        None where no image was kept from training: the report then has no test figure.
    metrics : mapping
        The figures of ``metrics.json``; "notes" are sentences on the images.
    settings : mapping
        The recipe, nested plain values.
    examples : ndarray of shape (n, H, W[, C]), optional
        Images that show what templates respond to, where there are no results.
    learning_curve : sequence of CurvePoint, optional
        Test errors after learning from fewer images.
    """
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined

    source = files("visionshare.reports").joinpath("report.html.j2").read_text("utf-8")
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    template = environment.from_string(source)
    page = template.render(
        title=str(metrics.get("pipeline", "classifier")),
        classifier=classifier,
        notes=metrics.get("notes", []),
        curves=_curves(classifier, learning_curve),
        layers=classifier.layers,
        plates=_plates(classifier, results, examples),
        weights=_weights(classifier),
        test=None if results is None or not len(results) else _tested(classifier, results),
        no_test=_NO_TEST,
        preparation=classifier.preprocessing.describe(classifier.picture_mode),
        costs=_costs(classifier, metrics),
        settings=_flat(settings),
    )
    # A setting may name a file whose name is no text.
    write_text(path, without_controls(page.encode("utf-8", "backslashreplace").decode()))


def _curves(classifier: CompactClassifier, points: Sequence[CurvePoint]) -> list[Any]:
    from markupsafe import Markup

    from visionshare.reports import figures

    drawn = []
    # A path of one step is a classifier without prefixes: there is no curve to draw.
    if len(classifier.path) > 1:
        drawn.append(figures.error_by_features(classifier))
        if len(classifier.path) > _EARLY:
            drawn.append(figures.error_by_features(classifier, late=True))
        if len({step.macs for step in classifier.path} - {0}) > 1:
            drawn.append(figures.error_by_cost(classifier))
        drawn.append(figures.loss_by_features(classifier))
    if len(points) > 1:
        drawn.append(figures.error_by_images(points))
    return [Markup(svg) for svg in drawn]


def _weights(classifier: CompactClassifier) -> Any:
    from markupsafe import Markup

    from visionshare.reports import figures

    return Markup(figures.weights_by_class(classifier))


def _plates(
    classifier: CompactClassifier, results: Results | None, examples: np.ndarray | None
) -> list[dict[str, Any]]:
    from visionshare.reports import tiles

    if results is not None and len(results):
        return tiles.plates(classifier, results.images)
    return [] if examples is None else tiles.plates(classifier, examples, "training images")


def _tested(classifier: CompactClassifier, results: Results) -> dict[str, Any]:
    """Return all that the page says of the results."""
    from markupsafe import Markup

    from visionshare.reports import figures
    from visionshare.reports.pictures import explained_images, misclassified
    from visionshare.reports.results import (
        calibration,
        error_interval,
        figures_by_class,
        most_confused,
    )

    low, high = error_interval(results.errors, len(results))
    return {
        "results": results,
        "origin": _ORIGINS[results.origin],
        "interval": (100 * low, 100 * high),
        "majority": results.classes[results.majority],
        "by_class": figures_by_class(results),
        "confused": most_confused(results),
        "confusion": Markup(figures.confusion_matrix(results)),
        "calibration": Markup(figures.calibration_curve(results)),
        "ece": 100 * calibration(results).ece,
        "mean_confidence": 100 * float(results.confidences.mean()),
        "misclassified": misclassified(results),
        "explained": explained_images(classifier, results),
    }


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
