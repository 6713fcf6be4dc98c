"""Figures of a report, each an SVG or PNG that stands in the page itself."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from visionshare.classifier import CompactClassifier

__all__ = [
    "confusion",
    "learning_curves",
    "misclassified",
    "weights_by_class",
]

_INK, _BLUE, _RED, _GRAY = "#1d2733", "#2166ac", "#b2182b", "#8a94a0"


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _svg(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _png(figure: Figure) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def learning_curves(classifier: CompactClassifier) -> str:
    """Return error and loss against rounds, as SVG, with the late rounds enlarged."""
    path = classifier.path
    figure = _figure(10, 3.4)
    rounds = np.array([s.n_features for s in path])
    axes = figure.subplots(1, 3)
    for axis, late in ((axes[0], False), (axes[1], True)):
        shown = slice(len(path) // 3, None) if late and len(path) > 5 else slice(None)
        curves = (("train_error", "training", _BLUE), ("validation_error", "validation", _GRAY))
        for name, label, color in (*curves, ("test_error", "test", _RED)):
            values = [getattr(s, name) for s in path]
            if values and values[0] is not None:
                percent = 100 * np.array(values, float)
                axis.plot(rounds[shown], percent[shown], color=color, label=label, lw=1.6)
        axis.set(xlabel="features", ylabel="error (%)", title="late rounds" if late else "error")
        axis.set_ylim(bottom=0)
        axis.legend(frameon=False)
    axes[2].plot(rounds, [s.loss for s in path], color=_INK, lw=1.6)
    axes[2].set(xlabel="features", ylabel="training loss", title="loss", yscale="log")
    for axis in axes:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    return _svg(figure)


def weights_by_class(classifier: CompactClassifier, n: int = 30) -> str:
    """Return the weights of the first features by class, as SVG."""
    weights = classifier.weights[:, :n]
    reach = np.maximum(np.abs(weights).max(axis=0, keepdims=True), 1e-12)
    height = min(9.0, 1.2 + 0.24 * len(weights))
    figure = _figure(10, height)
    axis = figure.subplots()
    shown = axis.imshow(weights / reach, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    axis.set_xticks(range(weights.shape[1]), [str(j + 1) for j in range(weights.shape[1])], size=8)
    axis.set_yticks(range(len(weights)), [str(c) for c in classifier.classes_], size=9)
    axis.set(xlabel="feature", ylabel="class")
    figure.colorbar(shown, ax=axis, label="weight, relative to the feature's largest", pad=0.01)
    return _svg(figure)


def confusion(labels: np.ndarray, predictions: np.ndarray, classes: Sequence[str]) -> str:
    """Return the confusion matrix, as SVG."""
    k = len(classes)
    counts = np.bincount(labels * k + predictions, minlength=k * k).reshape(k, k)
    side = min(10.0, 1.6 + 0.42 * k)
    figure = _figure(side, side)
    axis = figure.subplots()
    wrong = counts.astype(float)
    np.fill_diagonal(wrong, 0)
    axis.imshow(wrong, cmap="Reds", vmin=0, vmax=max(1.0, wrong.max()))
    if k <= 40:
        for i, j in np.argwhere(counts > 0):
            color = "white" if i != j and wrong[i, j] > 0.6 * wrong.max() else _INK
            weight = "bold" if i == j else "normal"
            size = 8 if k <= 12 else 5
            text = str(counts[i, j])
            axis.text(j, i, text, ha="center", va="center", size=size, color=color, weight=weight)
    axis.set_xticks(range(k), classes, size=8)
    axis.set_yticks(range(k), classes, size=8)
    axis.set(xlabel="predicted", ylabel="true")
    return _svg(figure)


def misclassified(
    images: np.ndarray, labels: np.ndarray, predictions: np.ndarray, classes: Sequence[str], n: int
) -> list[dict[str, Any]]:
    """Return up to ``n`` misclassified images as small PNGs with true and predicted class."""
    from PIL import Image

    if images.ndim < 3:
        return []
    shown = []
    for i in np.flatnonzero(labels != predictions)[:n]:
        image = images[i]
        if image.dtype != np.uint8:
            span = float(image.max() - image.min()) or 1.0
            image = ((image - image.min()) / span * 255).astype(np.uint8)
        data = io.BytesIO()
        Image.fromarray(image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image).save(
            data, "PNG"
        )
        source = "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()
        true, predicted = str(classes[labels[i]]), str(classes[predictions[i]])
        shown.append({"source": source, "true": true, "predicted": predicted, "index": int(i)})
    return shown
