"""GreedyTL in its own regime: a network's thousand outputs are sources, its activations features.

Figures 1, 2 and 4 to 7 of I. Kuzborskij, F. Orabona, B. Caputo, "Scalable greedy algorithms for
transfer learning", Computer Vision and Image Understanding 156, 2017, with EfficientNet-Lite0 in
place of DeCAF, on flowers, CIFAR-10, characters in photographs and textures.

    python -m scripts.reproduce.transfer_network --data DIR --runs FOLDER
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.results import arguments, keep_runs, spread, table, write_page
from scripts.reproduce.transfer import (
    BEST,
    DRAWS,
    NEGATIVES,
    POSITIVES,
    TESTS,
    Outcome,
    accuracies,
    cell,
    draw_accuracy,
    drawn,
    matrix_figure,
)
from scripts.reproduce.transfer_baselines import ALL_METHODS
from visionshare import PretrainedNetwork
from visionshare.datasets import load_images
from visionshare.generators.pretrained.efficientnet import PLACES
from visionshare.machine.resources import thread_limit

SIDE = 128
N_OUTPUTS = 1000
# Choosing λ on left-out examples takes as long as all else.
METHODS = {name: method for name, method in ALL_METHODS.items() if "chosen" not in name}
#: Weights of these are drawn: the paper's figures 4, 5 and 7.
DRAWN = {"GreedyTL": 4, "RLS (src+feat)": 5, "GreedyTL-59": 7}
SHOWN_SOURCES = 30


# Sums of the weights of sources, (classes, sources), by positives and method.
Weights = dict[tuple[int, str], np.ndarray]


@dataclass(frozen=True)
class Setting:
    """A data set, every so-many-th of whose classes is learned, noise, and pictures of a class."""

    name: str
    every: int = 1
    noise: tuple[int, ...] = (0,)
    most: int = 70


SETTINGS = (
    Setting("flowers", noise=(0, 100, 1000), most=400),
    Setting("cifar10", every=3),
    Setting("brodatz", every=4),
    Setting("chars74k", every=9),
)
# Constants of --quick.
QUICK = {"SETTINGS": (Setting("flowers", 5, (0, 100)),)}


def pictures(data: Path, name: str, most: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return pictures, classes and their names; enough of each class for a draw."""
    if name == "brodatz":
        images, y, names = _textures(data / "brodatz" / "randen")
    elif name == "chars74k":
        arrays = np.load(data / "chars74k" / "englishimg_good36_gray64.npz")
        letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        images, y = arrays["images"], arrays["sample"].astype(int) - 1
        names = list(letters)
    elif name == "flowers":
        found = load_images(data / "flowers" / "flowers128.tar", size=(SIDE, SIDE), mode="color")
        images, y, names = found.images, found.labels, list(found.classes)
    else:
        found = load_images(name, "test", data)
        images, y, names = found.images, found.labels, list(found.classes)
    rows = np.concatenate([np.flatnonzero(y == c)[:most] for c in range(len(names))])
    return images[rows], y[rows], names


def _textures(folder: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return crops of 64 pixels, side by side, of the plates of one digitization."""
    from PIL import Image

    files = sorted(path for path in folder.iterdir() if path.suffix in (".png", ".gif"))
    crops, y = [], []
    for c, path in enumerate(files):
        plate = np.asarray(Image.open(path).convert("L"))[:640, :640]
        own = plate.reshape(10, 64, 10, 64).transpose(0, 2, 1, 3).reshape(-1, 64, 64)
        crops.append(own)
        y += [c] * len(own)
    return np.concatenate(crops), np.array(y), [path.stem for path in files]


def columns(
    data: Path, folder: Path, name: str, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Return features, sources, classes and their names; columns are kept in a folder."""
    file = folder / f"{name}-{SIDE}.npz"
    if not file.is_file():
        images, y, names = pictures(data, name, most)
        family = PretrainedNetwork(places=[*PLACES, "classes"], size=SIDE).fit(images)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(file, columns=family.transform(images), y=y, names=names)
    kept = np.load(file)
    X = kept["columns"].astype(np.float64)
    H = X[:, -N_OUTPUTS:]
    # A source says yes where its score is above its mean.
    H = (H - H.mean(axis=0)) / H.std(axis=0)
    return X[:, :-N_OUTPUTS], H, kept["y"], kept["names"].tolist()


def run(data: Path, folder: Path, setting: Setting, draws: int) -> tuple[Outcome, Weights, list]:
    """Return the outcomes on one data set, the weights of sources, and the names of classes."""
    X, H, y, names = columns(data, folder, setting.name, setting.most)
    measured = Outcome(shape=X.shape)
    weights: Weights = {}
    for target in range(0, len(names), setting.every):
        if np.sum(y == target) < POSITIVES[-1] + TESTS:
            continue
        for positives, draw, noise in itertools.product(POSITIVES, range(draws), setting.noise):
            if noise and positives != POSITIVES[1]:
                continue
            seed = [target, positives, draw]
            rows = drawn(y, target, positives, np.random.default_rng([1, *seed]))
            for name, value, w in cell(X, H, rows, noise, [2, *seed], METHODS):
                measured.note(name, positives, noise, draw, value)
                if name in DRAWN and noise == 0:
                    empty = np.full((len(names), N_OUTPUTS), np.nan)
                    row = weights.setdefault((positives, name), empty)[target]
                    row[:] = np.where(np.isnan(row), 0, row) + w[-N_OUTPUTS:] / draws
                if name == "GreedyTL" and noise == 0:
                    chosen = np.flatnonzero(w) >= X.shape[1]
                    measured.chosen.setdefault(positives, []).append(float(chosen.mean()))
        print(setting.name, names[target], flush=True)
    return measured, weights, names


def draw_weights(out: Path, setting: str, weights: Weights, names: list[str]) -> list[str]:
    """Draw the sources with the largest weights, one picture a method; return the page's lines."""
    lines = []
    for positives, method in itertools.product((POSITIVES[0], POSITIVES[-1]), DRAWN):
        matrix = weights[positives, method]
        learned = np.flatnonzero(np.isfinite(matrix).all(axis=1))
        # The same rows for all methods: those that GreedyTL weighs most.
        sizes = np.abs(weights[positives, "GreedyTL"][learned]).sum(axis=0)
        shown = np.sort(np.argsort(-sizes, kind="stable")[:SHOWN_SOURCES])
        labels = [str(c) for c in shown]
        title = f"{setting}, {positives} + {NEGATIVES}: {method}"
        figure = matrix_figure(
            matrix[np.ix_(learned, shown)], [names[c] for c in learned], labels, title
        )
        file = f"transfer_network-{setting}-{positives}-figure{DRAWN[method]}.png"
        figure.savefig(out / file, dpi=60)
        lines.append(f"![{title}]({file})")
    return lines


def strongest(found: Iterable[tuple[Weights, list[str]]]) -> str:
    """Return a table of the sources that speak most for each class: the paper's figure 6."""
    rows = []
    for weights, names in found:
        matrix = weights[POSITIVES[-1], "GreedyTL"]
        for target in np.flatnonzero(np.isfinite(matrix).all(axis=1)):
            best = np.argsort(-matrix[target], kind="stable")[:4]
            rows.append([names[target], ", ".join(map(str, best))])
    return table(["class", "sources"], rows)


def data_sets(measured: dict[str, Outcome], draws: int) -> str:
    """Return the table of the data sets."""
    rows = [
        [
            name, outcome.shape[0], len(outcome.accuracy[BEST, POSITIVES[0], 0]) // draws,
            ", ".join(f"{100 * np.mean(outcome.chosen[p]):.0f}" for p in POSITIVES),
        ]
        for name, outcome in measured.items()
    ]  # fmt: skip
    return table(["set", "pictures", "classes learned", "sources among choices, %"], rows)


def main() -> None:
    """Measure one data set after the other; write the page after each."""
    parser = arguments(__doc__)
    parser.set_defaults(seeds=DRAWS)
    parser.add_argument(
        "--runs", type=Path, default=Path("out/transfer-network"), help="folder of columns"
    )
    options = parser.parse_args()
    draws = options.seeds
    options.out.mkdir(parents=True, exist_ok=True)
    done: dict[str, tuple[Outcome, Weights, list[str]]] = {}
    with thread_limit(options.jobs):
        for setting in SETTINGS:
            kept = options.runs / f"{setting.name}-{draws}.pickle"
            if not kept.is_file():
                found = run(options.data, options.runs, setting, draws)
                kept.write_bytes(pickle.dumps(found))
            # Written by the lines above, on this machine.
            done[setting.name] = pickle.loads(kept.read_bytes())
            write(options.out, done, draws)


def write(out: Path, done: dict[str, tuple[Outcome, Weights, list[str]]], draws: int) -> None:
    """Write page and pictures of the data sets that are complete."""
    measured = {name: outcome for name, (outcome, _, _) in done.items()}
    draw_accuracy(measured, out / "transfer_network.png", METHODS)
    keep_runs(
        out, "transfer_network", {name: vars(one)["accuracy"] for name, one in measured.items()}
    )
    noisy = measured[SETTINGS[0].name]
    drawn_set = "cifar10" if "cifar10" in done else SETTINGS[0].name
    write_page(
        out,
        "transfer_network",
        draws=draws,
        tests=TESTS,
        side=SIDE,
        accuracies=accuracies(measured, METHODS),
        data_sets=data_sets(measured, draws),
        noise=noise_table(noisy),
        strongest=strongest([(w, names) for _, w, names in done.values()]),
        matrices="\n\n".join(draw_weights(out, drawn_set, *done[drawn_set][1:])),
    )


def noise_table(outcome: Outcome) -> str:
    """Return accuracies against noise dimensions, five positives: the paper's figure 2."""
    noises = {noise for _, _, noise in outcome.accuracy}
    known = min(noises), max(noises)
    rows: list[list[Any]] = []
    for name in METHODS:
        values = [outcome.per_draw[name, POSITIVES[1], n].values() for n in known]
        rows.append([name, *(spread([float(np.mean(v)) for v in each], 1) for each in values)])
    return table(["method", *(f"{n:,} dimensions" for n in known)], rows)


if __name__ == "__main__":
    main()
