"""Figures of a report, each an SVG that stands in the page itself."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, ParamSpec

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier
from visionshare.reports.results import Results, calibration

__all__ = [
    "CurvePoint",
    "calibration_curve",
    "confusion_matrix",
    "error_by_cost",
    "error_by_features",
    "error_by_images",
    "loss_by_features",
    "weights_by_class",
]

_INK, _BLUE, _RED, _GRAY = "#1d2733", "#2166ac", "#b2182b", "#8a94a0"
# Inches: three of them stand side by side in the page, one fills a phone.
_SIDE = (4.0, 3.1)
# Letters stay letters, and every drawing of the same figures has the same bytes.
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "visionshare", "font.size": 9}
# Classes with numbers in the cells of their confusion matrix, and those with names.
_NUMBERED, _NAMED = 25, 100
_P = ParamSpec("_P")
# Who drew it, the names of all fonts that might do, turns by nothing, and digits that do not show.
_NEEDLESS = [
    (re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL), ""),
    (re.compile(r"font-family: '[^;\"]*sans-serif"), "font-family: sans-serif"),
    (re.compile(r' transform="rotate\(-0 [^"]*"'), ""),
]
# Numbers are cut in tags alone: a class may be called 0.125.
_TAG, _DIGITS = re.compile(r"<[^>]*>"), re.compile(r"(\d+\.\d\d)\d+")


class CurvePoint(NamedTuple):
    """The error after learning from fewer images."""

    train_images: int
    test_error_rate: float
    low: float
    high: float


def _as_svg(draw: Callable[_P, Figure]) -> Callable[_P, str]:
    """Return a function that gives the SVG of what another one draws."""

    @wraps(draw)
    def drawn(*arguments: _P.args, **options: _P.kwargs) -> str:
        text = io.StringIO()
        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            # Names are text in the drawing: what shows it has its own fonts.
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            figure = draw(*arguments, **options)
            figure.savefig(text, format="svg", metadata={"Date": None})
        svg = text.getvalue()
        return _lean(svg[svg.index("<svg") :])

    return drawn


def _lean(svg: str) -> str:
    """Return a drawing without what says nothing in a page, half of one with many numbers."""
    for pattern, kept in _NEEDLESS:
        svg = pattern.sub(kept, svg)
    return _TAG.sub(lambda tag: _DIGITS.sub(r"\1", tag.group()), svg)


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _plain_axes(figure: Figure) -> Axes:
    axis: Axes = figure.subplots()
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    return axis


def _error_curves(classifier: CompactClassifier, axis: Axes, x: np.ndarray, first: int = 0) -> None:
    """Draw the errors of the steps that say them, from one of them on."""
    curves = (("train_error", "training", _BLUE), ("validation_error", "validation", _GRAY))
    for name, label, color in (*curves, ("test_error", "test", _RED)):
        values = [getattr(step, name) for step in classifier.path]
        if all(value is not None for value in values):
            percent = 100 * np.array(values, float)
            marker = "." if len(values) < 40 else ""
            axis.plot(x[first:], percent[first:], color=color, label=label, lw=1.6, marker=marker)
    axis.set(ylabel="error (%)")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)


@_as_svg
def error_by_features(classifier: CompactClassifier, late: bool = False) -> Figure:
    """Return the error against the number of features, round by round, or of late rounds alone."""
    figure = _figure(*_SIDE)
    axis = _plain_axes(figure)
    first = len(classifier.path) // 3 if late else 0
    features = np.array([step.n_features for step in classifier.path])
    _error_curves(classifier, axis, features, first)
    axis.set(xlabel="features", title="late rounds" if late else "")
    return figure


@_as_svg
def error_by_cost(classifier: CompactClassifier) -> Figure:
    """Return the error against the multiply-accumulates per image, round by round."""
    figure = _figure(*_SIDE)
    axis = _plain_axes(figure)
    macs = np.array([step.macs for step in classifier.path], float)
    _error_curves(classifier, axis, macs)
    axis.set(xlabel="multiply-accumulates per image", xscale="log")
    # A label at each of its minor ticks would lie on the next one.
    wide = macs.max() > 30 * max(1.0, macs.min())
    ticks = [c * 10.0**e for e in range(12) for c in ((1,) if wide else (1, 2, 5))]
    inside = [tick for tick in ticks if macs.min() <= tick <= macs.max()]
    shown = inside or sorted({macs.min(), macs.max()})
    axis.set_xticks(shown, [f"{tick:,.0f}" for tick in shown])
    axis.minorticks_off()
    return figure


@_as_svg
def loss_by_features(classifier: CompactClassifier) -> Figure:
    """Return the training loss against the number of features, round by round."""
    figure = _figure(*_SIDE)
    axis = _plain_axes(figure)
    features = [step.n_features for step in classifier.path]
    axis.plot(features, [step.loss for step in classifier.path], color=_INK, lw=1.6)
    axis.set(xlabel="features", ylabel="training loss", yscale="log")
    return figure


@_as_svg
def error_by_images(points: Sequence[CurvePoint]) -> Figure:
    """Return the test error against the number of training images, with its interval."""
    figure = _figure(*_SIDE)
    axis = _plain_axes(figure)
    images, error, low, high = np.array(points, float).T
    axis.fill_between(images, 100 * low, 100 * high, color=_RED, alpha=0.15, lw=0)
    axis.plot(images, 100 * error, color=_RED, lw=1.6, marker=".")
    axis.set(xlabel="training images", ylabel="test error (%)", xscale="log")
    axis.set_xticks(images, [f"{int(n):,}" for n in images])
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    return figure


@_as_svg
def calibration_curve(results: Results) -> Figure:
    """Return the accuracy against the confidence, with how many images have it."""
    said = calibration(results)
    figure = _figure(*_SIDE)
    axis = _plain_axes(figure)
    held = said.counts > 0
    axis.plot([0, 100], [0, 100], color=_GRAY, lw=1, ls="--")
    shares = 100 * said.counts / max(1, said.counts.sum())
    middle, width = 50 * (said.edges[1:] + said.edges[:-1]), 100 / len(said.counts)
    axis.bar(middle, shares, 0.9 * width, color=_GRAY, alpha=0.35, label="part of the images")
    axis.plot(
        100 * said.confidence[held], 100 * said.accuracy[held], color=_BLUE, lw=1.6, marker="o",
        ms=4, label="right answers",
    )  # fmt: skip
    axis.set(xlabel="confidence (%)", ylabel="%", xlim=(0, 100), ylim=(0, 102))
    axis.legend(frameon=False, loc="upper left")
    return figure


@_as_svg
def weights_by_class(classifier: CompactClassifier, n: int = 30) -> Figure:
    """Return the weights of the first features by class."""
    weights = classifier.weights[:, :n]
    reach = np.maximum(np.abs(weights).max(axis=0, keepdims=True), 1e-12)
    names = [_short(name) for name in class_names(classifier.classes_)]
    figure = _figure(8.6, min(9.0, 1.2 + 0.24 * len(weights)))
    axis = figure.subplots()
    shown = axis.imshow(weights / reach, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    axis.set_xticks(range(weights.shape[1]), [str(j + 1) for j in range(weights.shape[1])], size=8)
    axis.set_yticks(range(len(weights)), names, size=min(9.0, 300 / len(weights)))
    axis.set(xlabel="feature", ylabel="class")
    figure.colorbar(shown, ax=axis, label="weight, relative to the feature's largest", pad=0.01)
    return figure


@_as_svg
def confusion_matrix(results: Results) -> Figure:
    """Return the confusion matrix: part of each class by prediction, with counts where they fit."""
    counts = results.confusion
    k = len(counts)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    cell = max(0.11, min(0.42, 8.0 / k))
    names = [_short(name) for name in results.classes]
    longest = 0.075 * max(len(name) for name in names)
    figure = _figure(max(2.6, 0.9 + longest + cell * k), max(2.4, 0.7 + longest + cell * k))
    axis = figure.subplots()
    wrong = shares.copy()
    np.fill_diagonal(wrong, 0)
    # Mistakes are few: the root of their part shows them beside each other.
    right = np.ma.masked_where(~np.eye(k, dtype=bool), shares)
    axis.imshow(np.sqrt(wrong), cmap="Reds", vmin=0, vmax=max(0.1, float(np.sqrt(wrong.max()))))
    axis.imshow(right, cmap="Blues", vmin=0, vmax=1.8)
    if k <= _NUMBERED:
        _write_counts(axis, counts, wrong)
    size = max(3.5, min(9.0, 72 * cell * 0.75))
    ticks = range(k) if k <= _NAMED else range(0, k, -(-k // _NAMED))
    turned = 90 if max(len(name) for name in names) > 2 and k > 3 else 0
    axis.set_xticks(ticks, [names[c] for c in ticks], size=size, rotation=turned)
    axis.set_yticks(ticks, [names[c] for c in ticks], size=size)
    axis.set(xlabel="predicted", ylabel="true")
    return figure


def _write_counts(axis: Axes, counts: np.ndarray, wrong: np.ndarray) -> None:
    largest = wrong.max() or 1.0
    for i, j in np.argwhere(counts > 0):
        dark = i != j and np.sqrt(wrong[i, j] / largest) > 0.6
        style: dict[str, Any] = {"weight": "bold"} if i == j else {}
        size = 8 if len(counts) <= 12 and counts.max() < 10_000 else 6.5
        color = "white" if dark else _INK
        axis.text(
            j, i, str(counts[i, j]), ha="center", va="center", size=size, color=color, **style
        )


def _short(name: str, most: int = 14) -> str:
    """Return a name that fits beside a cell; a dollar sign is no formula there."""
    name = name.encode("utf-8", "backslashreplace").decode()
    return (name if len(name) <= most else name[: most - 1] + "…").replace("$", r"\$")
