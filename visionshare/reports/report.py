"""The report: one HTML file that opens without a network."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier
from visionshare.errors.names import without_controls
from visionshare.files.durable import write_text
from visionshare.reports.results import Results, ValueResults

_ORIGINS = {
    "given": "The data set's own test split.",
    "held out": (
        "They were drawn at random from each class before training, did not train, and were "
        "evaluated once."
    ),
    "unknown": (
        "Whether some of them trained the classifier is not known here; an error on these would be "
        "no test error."
    ),
}
_REFIT = (
    " The figures are of this run. The classifier file was then trained again, with the same "
    "settings, on all {:,} images, including these."
)
_VALUES = (
    "Its classes are levels; the value of an image is their mean, by their probabilities. The test "
    "images did not train the classifier that was measured."
)
_LABELS = (
    "An image has each label whose probability reaches a threshold, which is chosen on images that "
    "the search held out. The test images did not train the classifier that was measured."
)
_NO_TEST = (
    "No test figure: every image trained the classifier, and an error on images that were trained "
    "on says little about others. Give test images, or let some be held out."
)


def write_report(
    path: str | os.PathLike[str],
    classifier: CompactClassifier,
    results: Results | None,
    *,
    metrics: Mapping[str, Any],
    settings: Mapping[str, Any],
    changed: Mapping[str, Any] | None = None,
    examples: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    measured: CompactClassifier | None = None,
    values: ValueResults | None = None,
) -> None:
    """Write the report of a classifier on labeled images.

    Parameters
    ----------
    path : path-like
    classifier : CompactClassifier
    results : Results or None
        None where no image was kept from training: the report then has no test figure.
    metrics : mapping
        The figures of ``metrics.json``; "notes" are sentences on the images, and "trials" columns
        of a search, as ``search_results_`` of :class:`visionshare.ImageClassifier`; "epochs" are
        loss, training and validation error of the epochs of each training.
    settings : mapping
        The recipe, nested plain values.
    changed : mapping, optional
        The part of the settings that differs from the defaults; the others are folded.
    examples : ndarray of shape (n, H, W[, C]), optional
        Training images.
    labels : ndarray of shape (n,), optional
        Classes of the training images, as indexes into the classifier's classes.
    measured : CompactClassifier, optional
        Whose results these are, where the classifier learned again from the test images.
    values : ValueResults, optional
        What a classifier of values says, in place of results.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     write_report(path, model, None, metrics={}, settings={"name": "tiny"})
    ...     "tiny" in path.read_text(encoding="utf-8")
    True
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    from visionshare.reports.figures import weights_by_class
    from visionshare.reports.pictures import family_pictures

    test = None
    if values is not None:
        pictures = family_pictures(classifier, values.images)
    elif results is not None and len(results) > 0:
        pictures = family_pictures(classifier, results.images)
        test = _tested(measured or classifier, results)
        if "refit_images" in metrics:
            test["origin"] += _REFIT.format(metrics["refit_images"])
    else:
        shown = np.empty(0) if examples is None else examples
        pictures = family_pictures(classifier, shown, "training images")
    flat = _flat(settings)
    differing = _flat(changed or {})
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    source = files("visionshare.reports").joinpath("report.html.j2").read_text("utf-8")
    page = environment.from_string(source).render(
        title=str(metrics.get("pipeline", "classifier")),
        classifier=classifier,
        notes=metrics.get("notes", []),
        refused=_refused(metrics),
        trials=_trials(metrics),
        curves=list(map(Markup, _curves(measured or classifier))),
        epochs=list(map(Markup, _learning_curves(metrics))),
        layers=classifier.layers,
        pictures=pictures,
        weights=Markup(weights_by_class(classifier)),
        test=test,
        no_test=_about_test(metrics, values),
        labels=metrics.get("test_labels", []),
        mean_precision=metrics.get("test_mean_average_precision"),
        values=None if values is None else _of_values(values, metrics),
        preparation=classifier.preprocessing.describe(classifier.picture_mode),
        costs=_costs(classifier, metrics),
        settings={name: value for name, value in flat.items() if name not in differing},
        changed=differing,
        written=_written(),
        **_samples(classifier, examples, labels, results),
    )
    # A setting may name a file whose name is no text.
    write_text(path, without_controls(page.encode("utf-8", "backslashreplace").decode()))


def _written() -> dict[str, str]:
    """Return when the report was written, by which version, and by which command."""
    from visionshare import __version__

    now = datetime.now(timezone.utc)
    program = Path(sys.argv[0])
    is_own = program.stem == "visionshare" or program.parts[-2:-1] == ("visionshare",)
    command = shlex.join(["visionshare", *sys.argv[1:]]) if is_own else ""
    return {"date": f"{now:%Y-%m-%d %H:%M} UTC", "version": __version__, "command": command}


def _samples(
    classifier: CompactClassifier,
    examples: np.ndarray | None,
    labels: np.ndarray | None,
    results: Results | None,
) -> dict[str, Any]:
    """Return pictures and counts of each class: of the training images, or else of the results."""
    from visionshare.reports.pictures import samples

    if examples is not None and labels is not None:
        called = "training images"
        classes = class_names(classifier.classes_)
    elif results is not None and len(results):
        called = "images"
        classes = results.classes
        examples = results.images
        labels = results.labels
    else:
        return {"samples": [], "samples_are": "", "n_samples": 0, "n_classes": 0}
    return {
        "samples": samples(examples, labels, classes),
        "samples_are": called,
        "n_samples": len(examples),
        "n_classes": len(classes),
    }


def _about_test(metrics: Mapping[str, Any], values: ValueResults | None) -> str:
    if values is not None:
        return _VALUES
    return _LABELS if "test_labels" in metrics else _NO_TEST


def _of_values(values: ValueResults, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that the page says of values."""
    from markupsafe import Markup

    from visionshare.reports import figures
    from visionshare.reports.pictures import worst_values

    return {
        "n": len(values.truth),
        "mean": metrics["test_mean_absolute_error"],
        "interval": metrics["test_interval"],
        "constant": metrics["test_constant_error"],
        "plots": [Markup(figures.values_plot(values)), Markup(figures.residuals_plot(values))],
        "worst": worst_values(values),
    }


def _curves(classifier: CompactClassifier) -> list[str]:
    """Return the drawings of errors and losses."""
    from visionshare.reports import figures

    drawn = []
    # A path of one step is a classifier without prefixes: there is no curve to draw.
    if len(classifier.path) > 1:
        drawn.append(figures.error_by_features(classifier))
        if len({step.macs for step in classifier.path} - {0}) > 1:
            drawn.append(figures.error_by_cost(classifier))
    return drawn


def _learning_curves(metrics: Mapping[str, Any]) -> list[str]:
    """Return the drawings of loss and error by epoch, where there were epochs."""
    from visionshare.reports.figures import learning_curves

    trainings = {name: epochs for name, epochs in metrics.get("epochs", {}).items() if epochs}
    return [learning_curves(trainings, kind) for kind in ("loss", "error") if trainings]


def _tested(classifier: CompactClassifier, results: Results) -> dict[str, Any]:
    """Return all that the page says of the results."""
    from markupsafe import Markup

    from visionshare.reports import figures
    from visionshare.reports import results as measures
    from visionshare.reports.pictures import explained_images, mistakes_by_cell

    cells = mistakes_by_cell(results)
    low, high = measures.error_interval(results.errors, len(results))
    return {
        "results": results,
        "origin": _ORIGINS[results.origin],
        "interval": (100 * low, 100 * high),
        "majority": results.classes[results.majority],
        "by_class": measures.figures_by_class(results),
        "confused": measures.most_confused(results),
        "confusion": Markup(figures.confusion_matrix(results, [c["cell"] for c in cells])),
        "calibration": Markup(figures.calibration_curve(results)),
        "ece": 100 * measures.calibration(results).ece,
        "mean_confidence": 100 * float(results.confidences.mean()),
        "misclassified": cells,
        "n_shown": sum(len(cell["shown"]) for cell in cells),
        "explained": explained_images(classifier, results),
    }


def _refused(metrics: Mapping[str, Any]) -> float | None:
    """Return the share of test pictures that are refused; None where nothing is."""
    n = metrics.get("test_refused")
    return None if n is None else float(n / metrics["test_images"])


def _trials(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the trials of a search, a row for each."""
    columns: Mapping[str, Sequence[Any]] = metrics.get("trials", {})
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _costs(classifier: CompactClassifier, metrics: Mapping[str, Any]) -> dict[str, str]:
    costs = {
        "features": f"{classifier.n_features:,}",
        "parameters": f"{classifier.n_parameters:,}",
        "multiply-accumulates per image": f"{classifier.macs:,}",
        "bytes needed for prediction": f"{classifier.nbytes:,}",
    }
    for stage, seconds in metrics.get("seconds", {}).items():
        costs[f"seconds of {stage}"] = f"{seconds:.1f}"
    if "peak_memory" in metrics:
        costs["peak memory of training"] = f"{metrics['peak_memory'] / 2**20:,.0f} MiB"
    return costs


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested values by their names with dots."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = str(value)
    return flat
