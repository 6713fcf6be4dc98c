"""Model cards: a page of Markdown beside a classifier: what it is, what it costs, its limits."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from visionshare.class_labels import class_names
from visionshare.errors import InputError
from visionshare.errors.names import without_controls

if TYPE_CHECKING:
    from jinja2 import Template

    from visionshare.classifier.compact import CompactClassifier

# Classes that a card names at most.
_NAMED = 40


def model_card(
    classifier: CompactClassifier,
    name: str = "classifier",
    figures: Mapping[str, Any] | None = None,
    license: str | None = None,
    file: str = "classifier.safetensors",
) -> str:
    """Return a model card: YAML for hubs, then Markdown for people.

    Parameters
    ----------
    classifier : CompactClassifier
    name : str, default "classifier"
        Of the model.
    figures : mapping, optional
        What was measured: ``test_errors`` and ``test_images``, ``train_images``, ``test_origin``,
        and ``refit_images``, as in the ``metrics.json`` of a training. Without it the card says
        that nothing was measured.
    license : str, optional
        Identifier of the license, such as ``"bsd-3-clause"``; no license is stated when omitted.
    file : str, default "classifier.safetensors"
        Name of the classifier's file.

    Raises
    ------
    InputError
        If figures contradict each other.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> card = model_card(model, "letters", {"test_errors": 3, "test_images": 100})
    >>> print(card.split("## Error")[1].split("##")[0].strip())
    3.00 % of the test images are misclassified (3 of 100).
    """
    figures = dict(figures or {})
    # 1) What it was trained on: the name of a folder, not where it was.
    recipe = classifier.metadata.get("recipe")
    source = recipe.get("data", {}).get("source") if isinstance(recipe, Mapping) else None
    data = os.path.basename(source.rstrip("/\\")) if isinstance(source, str) else None
    n_images = figures.get("train_images")
    # 2) How often it errs.
    errors = figures.get("test_errors")
    n_test = figures.get("test_images")
    evaluation = "No error was measured."
    accuracy = None
    if errors is not None and n_test:
        if not 0 <= errors <= n_test:
            given = f"{errors} errors of {n_test}"
            raise InputError("figures", given, "at most as many errors as images")
        counts = f"({errors:,} of {n_test:,})"
        evaluation = f"{100 * errors / n_test:.2f} % of the test images are misclassified {counts}."
        if figures.get("test_origin") == "held out":
            evaluation += " They were held out before training."
        if "refit_images" in figures:
            n_images = figures["refit_images"]
            evaluation += (
                f" The classifier was then trained again on all {n_images:,} images; the figure is "
                "of the one before."
            )
        accuracy = round(1 - errors / n_test, 6) if data else None
    if "test_mean_absolute_error" in figures:
        low, high = figures["test_interval"]
        evaluation = (
            f"{figures['test_mean_absolute_error']:.4g} mean absolute error on {n_test:,} test "
            f"images (95 % interval {low:.4g} to {high:.4g}); always answering the median: "
            f"{figures['test_constant_error']:.4g}."
        )
    if "test_labels" in figures:
        mean = 100 * figures["test_mean_average_precision"]
        n_labels = len(figures["test_labels"])
        evaluation = (
            f"{mean:.1f} % mean average precision of {n_labels} labels on {n_test:,} images."
        )
    # 3) Its classes and its images.
    n_more = max(0, len(classifier.classes) - _NAMED)
    calibration = f"at temperature {classifier.temperature:.3g}"
    if classifier.temperature == 1.0:
        calibration = "that were not calibrated"
    card = _template().render(
        name=name,
        file=file,
        license=license,
        family=type(classifier.family).name,
        features=classifier.n_features,
        macs=classifier.macs,
        nbytes=classifier.nbytes,
        parameters=classifier.n_parameters,
        classes=list(class_names(classifier.classes[:_NAMED])),
        more_classes=f" and {n_more} more" if n_more else "",
        input=_input(classifier.image_shape),
        calibration=calibration,
        data=data,
        fingerprint=classifier.metadata.get("training_data"),
        training_images=f" ({n_images:,} images)" if isinstance(n_images, int) else "",
        accuracy=accuracy,
        evaluation=evaluation,
        origins=classifier.family.origins,
    )
    return without_controls(card)


def _input(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"vectors of {shape[0]} numbers"
    kind = {(): "gray", (1,): "gray", (3,): "color"}.get(shape[2:], f"{shape[-1]} channels")
    return f"{shape[0]}×{shape[1]} pixels, {kind}"


def _code(text: object) -> str:
    """Return a code span of one line that fits into a table, whatever a stranger's name holds."""
    line = re.sub(r"\s+", " ", str(text)).replace("`", "'").replace("|", "\\|").strip()
    return f"`{line[:80]}`" if line else "(empty)"


def _plain(text: object) -> str:
    """Return one line of Markdown without markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", re.sub(r"\s+", " ", str(text))).strip()


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    # A JSON string is one of YAML, and of Python.
    environment.filters |= {"yaml": json.dumps, "code": _code, "plain": _plain}
    source = files("visionshare.classifier").joinpath("card.md.j2").read_text("utf-8")
    return environment.from_string(source)
