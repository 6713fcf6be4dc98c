"""Figures of a report, each an SVG that stands in the page itself."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier
from visionshare.reports.results import Results, ValueResults, calibration

__all__ = [
    "calibration_curve",
    "confusion_matrix",
    "error_by_cost",
    "error_by_features",
    "learning_curves",
    "weights_by_class",
]

_INK = "#1d2733"
_BLUE = "#2166ac"
_RED = "#b2182b"
_GRAY = "#8a94a0"
# Width and height in inches: three of them stand side by side in the page, one fills a phone.
_SIZE = (4.0, 3.1)
# Inches right and above of axes, and of a letter of a name.
_MARGIN = 0.15
_LETTER = 0.075
# Letters stay letters, and every drawing of the same figures has the same bytes.
_STYLE: Any = {
    "svg.fonttype": "none", "font.size": 9,
    "axes.facecolor": "none", "savefig.facecolor": "none",
}  # fmt: skip
# Classes with numbers in the cells of their confusion matrix, and those with names.
_NUMBERED = 25
_NAMED = 100
_P = ParamSpec("_P")
# Who drew it, the names of all fonts that might do, turns by nothing, and digits that do not show.
_NEEDLESS = [
    (re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL), ""),
    (re.compile(r"font-family: '[^;\"]*sans-serif"), "font-family: sans-serif"),
    (re.compile(r' transform="rotate\(-0 [^"]*"'), ""),
    # Names of groups are the same in every drawing of a page.
    (re.compile(r'<g id="[^"]*"'), "<g"),
]
# Colors that the page turns over in the dark, where it has them.
_TURNED = {"#000000": "currentColor", _BLUE: f"var(--blue, {_BLUE})", _RED: f"var(--red, {_RED})"}
# Numbers are cut in tags alone: a class may be called 0.125.
_TAG = re.compile(r"<[^>]*>")
_DIGITS = re.compile(r"(\d+\.\d\d)\d+")


def _as_svg(name: str) -> Callable[[Callable[_P, Axes]], Callable[_P, str]]:
    """Return what turns a function that draws into one that gives an SVG of this name."""

    def decorated(draw: Callable[_P, Axes]) -> Callable[_P, str]:
        @wraps(draw)
        def drawn(*arguments: _P.args, **options: _P.kwargs) -> str:
            text = io.StringIO()
            # Identities in a drawing are those of no other one of the page.
            style = {**_STYLE, "svg.hashsalt": f"{name} {arguments[1:]}"}
            with matplotlib.rc_context(style), warnings.catch_warnings():
                # Names are text in the drawing: what shows it has its own fonts.
                warnings.filterwarnings("ignore", "Glyph .* missing from font")
                figure: Any = draw(*arguments, **options).figure
                figure.savefig(text, format="svg", metadata={"Date": None})
            _, _, svg = text.getvalue().partition("<svg")
            # A drawing with links is a group: what lies in a picture cannot be reached.
            role = "group" if "<a " in svg else "img"
            return _lean(f'<svg role="{role}" aria-label="{name}"{svg}')

        return drawn

    return decorated


def _lean(svg: str) -> str:
    """Return a drawing without what says nothing in a page, half of one with many numbers."""
    for pattern, kept in _NEEDLESS:
        svg = pattern.sub(kept, svg)
    for color, shown in _TURNED.items():
        svg = svg.replace(color, shown)
    return _TAG.sub(lambda tag: _DIGITS.sub(r"\1", tag.group()), svg)


def _axes(
    xlabel: str,
    ylabel: str,
    size: tuple[float, float] = _SIZE,
    left: float = 0.6,
    bottom: float = 0.5,
) -> Axes:
    """Return the axes of a new figure, with margins in inches."""
    # A layout engine would draw everything twice, to measure what is known here.
    width, height = size
    figure = Figure(figsize=size)
    across = width - left - _MARGIN
    axis: Axes = figure.add_axes(
        (left / width, bottom / height, across / width, (height - bottom - _MARGIN) / height)
    )
    axis.set(xlabel=xlabel, ylabel=ylabel)
    return axis


def _curve_axes(xlabel: str, ylabel: str) -> Axes:
    """Return axes for curves, with a grid."""
    axis = _axes(xlabel, ylabel)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    return axis


def _error_curves(classifier: CompactClassifier, xlabel: str, x: np.ndarray) -> Axes:
    """Draw the errors of the rounds, where all rounds know them."""
    axis = _curve_axes(xlabel, "error (%)")
    colors = {"train": _BLUE, "validation": _GRAY, "test": _RED}
    for name, color in colors.items():
        values = [getattr(step, f"{name}_error") for step in classifier.path]
        if all(value is not None for value in values):
            label = "training" if name == "train" else name
            marker = "." if len(values) < 40 else ""
            percent = 100 * np.array(values, float)
            axis.plot(x, percent, color=color, label=label, lw=1.6, marker=marker)
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)
    return axis


@_as_svg("Error against the number of features")
def error_by_features(classifier: CompactClassifier) -> Axes:
    """Return the error against the number of features, round by round."""
    n_features = np.array([step.n_features for step in classifier.path])
    return _error_curves(classifier, "features", n_features)


@_as_svg("Error against multiply-accumulates per image")
def error_by_cost(classifier: CompactClassifier) -> Axes:
    """Return the error against the multiply-accumulates per image, round by round."""
    macs = np.array([step.macs for step in classifier.path], float)
    axis = _error_curves(classifier, "multiply-accumulates per image", macs)
    axis.set_xscale("log")
    # A label at each of its minor ticks would lie on the next one.
    digits = (1,) if macs.max() > 30 * max(1.0, macs.min()) else (1, 2, 5)
    ticks = [digit * 10.0**exponent for exponent in range(12) for digit in digits]
    inside = [tick for tick in ticks if macs.min() <= tick <= macs.max()]
    shown = inside or sorted({macs.min(), macs.max()})
    axis.set_xticks(shown, [f"{tick:,.0f}" for tick in shown])
    axis.minorticks_off()
    return axis


@_as_svg("Loss and error by epoch")
def learning_curves(trainings: Mapping[str, Sequence[Sequence[float | None]]], kind: str) -> Axes:
    """Return the "loss" or "error" of each training's epochs."""
    axis = _curve_axes("epoch", "loss" if kind == "loss" else "error (%)")
    for name, epochs in trainings.items():
        loss, error, validation = np.array(epochs, float).T
        number = np.arange(1, len(loss) + 1)
        shown = loss if kind == "loss" else 100 * error
        marker = "." if len(loss) < 40 else ""
        (line,) = axis.plot(number, shown, lw=1.6, label=name, marker=marker)
        if kind == "error" and not np.isnan(validation).all():
            axis.plot(number, 100 * validation, lw=1.2, ls="--", color=line.get_color())
    axis.set(xlim=(0, None), ylim=(0, None))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if len(trainings) > 1:
        axis.legend(frameon=False)
    return axis


@_as_svg("Predicted values against true values")
def values_plot(values: ValueResults) -> Axes:
    """Return the values that are said against the true ones."""
    axis = _curve_axes("true value", "predicted value")
    ends = [min(values.truth.min(), values.said.min()), max(values.truth.max(), values.said.max())]
    axis.plot(ends, ends, color=_GRAY, lw=1, ls="--")
    axis.plot(*_some(values.truth, values.said), color=_BLUE, ls="", marker=".", ms=4, alpha=0.6)
    return axis


@_as_svg("Errors of predicted values against true values")
def residuals_plot(values: ValueResults) -> Axes:
    """Return by how much values are too large, against the true ones."""
    axis = _curve_axes("true value", "predicted − true")
    axis.axhline(0, color=_GRAY, lw=1, ls="--")
    axis.plot(*_some(values.truth, values.errors), color=_RED, ls="", marker=".", ms=4, alpha=0.6)
    return axis


def _some(x: np.ndarray, y: np.ndarray, most: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Return some of many points."""
    step = -(-len(x) // most)
    return x[::step], y[::step]


@_as_svg("Accuracy against confidence")
def calibration_curve(results: Results) -> Axes:
    """Return the accuracy against the confidence, with how many images have it."""
    bins = calibration(results)
    axis = _curve_axes("confidence (%)", "%")
    axis.plot([0, 100], [0, 100], color=_GRAY, lw=1, ls="--")
    shares = 100 * bins.counts / max(1, bins.counts.sum())
    middles = 50 * (bins.edges[1:] + bins.edges[:-1])
    width = 90 / len(bins.counts)
    axis.bar(middles, shares, width, color=_GRAY, alpha=0.35, label="share of the images")
    held = bins.counts > 0
    confidence = 100 * bins.confidence[held]
    accuracy = 100 * bins.accuracy[held]
    style: dict[str, Any] = {"color": _BLUE, "lw": 1.6, "marker": "o", "ms": 4}
    axis.plot(confidence, accuracy, label="right answers", **style)
    axis.set(xlim=(0, 100), ylim=(0, 102))
    axis.legend(frameon=False, loc="upper left")
    return axis


@_as_svg("Weights of the first features by class")
def weights_by_class(classifier: CompactClassifier, n: int = 30) -> Axes:
    """Return the weights of the first features by class."""
    weights = classifier.weights[:, :n]
    k, n = weights.shape
    largest = np.maximum(np.abs(weights).max(axis=0, keepdims=True), 1e-12)
    names = [_short(name) for name in class_names(classifier.classes_)]
    left = 0.5 + _LETTER * max(map(len, names))
    axis = _axes("feature", "class", (8.6, min(9.0, 1.2 + 0.24 * k)), left)
    shown = axis.imshow(weights / largest, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    axis.set_xticks(range(n), [str(j + 1) for j in range(n)], size=8)
    axis.set_yticks(range(k), names, size=min(9.0, 300 / k))
    label = "weight, relative to the feature's largest"
    axis.figure.colorbar(shown, ax=axis, label=label, pad=0.01)
    return axis


@_as_svg("Confusion matrix")
def confusion_matrix(results: Results, linked: Collection[tuple[int, int]] = ()) -> Axes:
    """Return the confusion matrix: part of each class by prediction, with counts where they fit."""
    counts = results.confusion
    k = len(counts)
    names = [_short(name) for name in results.classes]
    longest = max(map(len, names))
    # 1) Axes whose cells fit their names.
    cell = max(0.11, min(0.42, 8.0 / k))
    margin = 0.5 + _LETTER * longest
    side = max(1.6, cell * k) + margin + _MARGIN
    axis = _axes("predicted", "true", (side, side), margin, margin)
    size = max(3.5, min(9.0, 72 * cell * 0.75))
    ticks = range(k) if k <= _NAMED else range(0, k, -(-k // _NAMED))
    shown = [names[c] for c in ticks]
    axis.set_xticks(ticks, shown, size=size, rotation=90 if longest > 2 and k > 3 else 0)
    axis.set_yticks(ticks, shown, size=size)
    # 2) Mistakes are few: the root of their part shows them beside each other.
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    wrong = shares.copy()
    np.fill_diagonal(wrong, 0)
    right = np.ma.masked_where(~np.eye(k, dtype=bool), shares)
    largest = float(np.sqrt(wrong.max()))
    axis.imshow(np.sqrt(wrong), cmap="Reds", vmin=0, vmax=max(0.1, largest))
    axis.imshow(right, cmap="Blues", vmin=0, vmax=1.8)
    # 3) Counts.
    if k > _NUMBERED:
        return axis
    letters = 8 if k <= 12 and counts.max() < 10_000 else 6.5
    for i, j in np.argwhere(counts > 0):
        is_dark = i != j and np.sqrt(wrong[i, j]) > 0.6 * largest
        style: dict[str, Any] = {"weight": "bold"} if i == j else {}
        style |= {"size": letters, "color": "white" if is_dark else _INK}
        if (i, j) in linked:
            style["url"] = f"#cell-{i}-{j}"
        axis.text(j, i, str(counts[i, j]), ha="center", va="center", **style)
    return axis


def _short(name: str, most: int = 14) -> str:
    """Return a name that fits beside a cell; a dollar sign is no formula there."""
    name = name.encode("utf-8", "backslashreplace").decode()
    return (name if len(name) <= most else name[: most - 1] + "…").replace("$", r"\$")
