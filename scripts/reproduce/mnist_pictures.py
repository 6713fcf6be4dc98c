"""Figures 4 to 6 of the ShareBoost paper from a run: convergence, features, weights and mistakes.

The run is a folder of `visionshare train` on MNIST with a pool of patches:

    python -m scripts.reproduce.mnist_pictures --data DIR --run out/mnist-266
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import arguments, pyplot
from visionshare import CompactClassifier
from visionshare.datasets import ImageSet, load_images
from visionshare.errors import InputError
from visionshare.generators.pictures import Sample, Tile
from visionshare.machine.resources import thread_limit

# Features and mistakes that are drawn, in rows of so many.
FEATURES, MISTAKES, IN_A_ROW = 30, 40, 10
# Images that show what templates respond to.
SHOWN = 500


def convergence(classifier: CompactClassifier) -> Any:
    """Return the errors after each round, in percent (figure 4)."""
    figure, axis = pyplot().subplots(figsize=(5, 3.2), layout="constrained")
    rounds = [step.n_features for step in classifier.path]
    for name, label in (("train_error", "training"), ("test_error", "test")):
        errors = [100 * float(getattr(step, name)) for step in classifier.path]
        axis.plot(rounds, errors, label=f"{label}: {errors[-1]:.2f} %")
    axis.set(xlabel="features", ylabel="error in %", yscale="log")
    axis.legend(frameon=False)
    return figure


def chosen(classifier: CompactClassifier, images: np.ndarray) -> Any:
    """Return the first features: templates, and below each the places that it may have (figure 5).

    A family that draws a feature as more tiles has more rows.
    """
    sample = Sample(images[:SHOWN], images[:SHOWN], called="test images")
    n = min(FEATURES, classifier.n_features)
    pictures = classifier.family.pictures(sample)
    tiles = [pictures.tiles(feature) for feature in range(n)]
    if not tiles[0]:
        raise InputError("run", classifier.family, "a classifier whose features can be drawn")
    deep = len(tiles[0])
    rows = deep * -(-n // IN_A_ROW)
    figure, axes = _grid(rows)
    for number, feature in enumerate(tiles):
        row, column = divmod(number, IN_A_ROW)
        for depth, tile in enumerate(feature[:deep]):
            _show(axes[deep * row + depth, column], tile)
        axes[deep * row, column].set_title(str(number + 1), fontsize=7, pad=2)
    return figure


def weights(classifier: CompactClassifier) -> Any:
    """Return the weights of the first features in the scores of the classes (figure 5 b)."""
    n = min(FEATURES, classifier.n_features)
    shown = classifier.weights[:, :n]
    figure, axis = pyplot().subplots(figsize=(8, 3.2), layout="constrained")
    most = float(np.abs(shown).max())
    image = axis.imshow(shown, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    axis.set(xlabel="feature", ylabel="class", xticks=range(n), yticks=range(len(shown)))
    axis.set_xticklabels(range(1, n + 1), fontsize=7)
    axis.set_yticklabels(map(str, classifier.classes))
    figure.colorbar(image, label="weight")
    return figure


def mistakes(classifier: CompactClassifier, test: ImageSet) -> Any:
    """Return images that are classified wrongly, true and predicted class (figure 6)."""
    scores = classifier.predict_proba(test.images)
    labels = np.argmax(scores, axis=1)
    wrong = np.flatnonzero(labels != test.labels)
    # The most confident first.
    wrong = wrong[np.argsort(-scores[wrong].max(axis=1), kind="stable")][:MISTAKES]
    figure, axes = _grid(-(-len(wrong) // IN_A_ROW))
    for axis, i in zip(axes.flat, wrong, strict=False):
        axis.imshow(test.images[i], cmap="gray_r")
        names = test.classes[test.labels[i]], classifier.classes[labels[i]]
        axis.set_title(" → ".join(map(str, names)), fontsize=7, pad=2)
    return figure


def _grid(rows: int) -> tuple[Any, np.ndarray]:
    size = (0.75 * IN_A_ROW, 0.9 * rows)
    figure, axes = pyplot().subplots(
        rows, IN_A_ROW, figsize=size, squeeze=False, layout="constrained"
    )
    for axis in axes.flat:
        axis.axis("off")
    return figure, axes


def _show(axis: Any, tile: Tile) -> None:
    values = np.nan_to_num(np.asarray(tile.values, np.float64))
    if tile.signed:
        most = float(np.abs(values).max()) or 1.0
        axis.imshow(values, cmap="RdBu_r", vmin=-most, vmax=most)
    else:
        axis.imshow(values, cmap="gray")


def main() -> None:
    """Draw the figures of a run."""
    parser = arguments(__doc__)
    parser.add_argument("--run", type=Path, required=True, help="folder of the run")
    options = parser.parse_args()
    classifier = CompactClassifier.load(options.run / "classifier.safetensors")
    if not classifier.path or any(step.test_error is None for step in classifier.path):
        raise InputError("run", str(options.run), "a run with test errors after its rounds")
    test = load_images("mnist", "test", options.data)
    with thread_limit(1):
        drawn = {
            "convergence": convergence(classifier),
            "features": chosen(classifier, test.images),
            "weights": weights(classifier),
            "mistakes": mistakes(classifier, test),
        }
    options.out.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        figure.savefig(options.out / f"mnist-{name}.png", dpi=110)


if __name__ == "__main__":
    main()
