"""Segment USC-SIPI's two mosaics of Brodatz textures with a classifier learned from the plates.

Writes docs/results/mosaics.md and its pictures:

    python -m scripts.reproduce.mosaics --data DIR
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from scripts.reproduce.results import arguments, keep_runs, spread, stopwatch, table, write_page
from visionshare import CompactClassifier, GaborBank, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_plates
from visionshare.datasets.folders import read_image
from visionshare.datasets.textures import cut_patches
from visionshare.reading.segmentation import class_colors, label_map, majority

# The value of each texture in the region maps. Squares inside its regions of texmos3 lie, pixel by
# pixel, at the same positions of its plate.
TEXTURES = {
    32: "grass", 64: "water", 96: "sand", 128: "wool",
    160: "pigskin", 192: "leather", 224: "raffia", 255: "wood",
}  # fmt: skip
MOSAICS = ("texmos2", "texmos3")
# texmos2 takes all its pieces from this part of each plate, in rows and columns.
CENTER = slice(192, 320)
PIECE = 96
SMOOTH = (1, 9, 17, 25, 33, 41)


@dataclass(frozen=True)
class Setting:
    """What was tried."""

    window: int = 24
    reach: int = 6
    pooling: str = "mean"
    zero_mean: bool = True
    rounds: int = 80
    filters: int = 600
    patches: int = 1000


TRIED = [
    Setting(window=16, reach=4),
    Setting(window=16, reach=6),
    Setting(),
    Setting(window=24, reach=8),
    Setting(pooling="max"),
    Setting(zero_mean=False),
    Setting(window=32, reach=6),
    Setting(window=32, reach=10),
    Setting(reach=4),
    Setting(reach=3),
    Setting(window=16, reach=3),
    Setting(window=20, reach=4, rounds=160, patches=2000),
    Setting(reach=4, rounds=160, patches=2000),
    Setting(window=32, reach=4, rounds=160, patches=2000),
]


def main() -> None:
    """Choose settings on pieces of the plates, then read the mosaics once."""
    options = arguments(__doc__).parse_args()
    raw = load_plates("brodatz", options.data)
    plates = {name: cv2.equalizeHist(raw[name]) for name in TEXTURES.values()}
    folder = options.data / "brodatz" / "usc-sipi"
    maps = {name: read_image(folder / f"{name}.s512.tiff") for name in MOSAICS}
    mosaics = {name: read_image(folder / f"{name}.p512.tiff") for name in MOSAICS}
    taken = {
        name: pixels_taken(plates[name].shape, maps["texmos3"] == value)
        for value, name in TEXTURES.items()
    }
    tried = [replace(s, filters=60, patches=100, rounds=10) for s in TRIED[:2]]
    tried = tried if options.quick else TRIED
    chosen, smooth, rows = choose(plates, taken, tried, options.jobs)
    seeds = range(options.seeds)
    truths = {name: truth_of(region) for name, region in maps.items()}
    measured = [read_mosaics(plates, taken, chosen, seed, mosaics, options.jobs) for seed in seeds]
    for name in MOSAICS:
        smoothed = majority(measured[0].labels[name], smooth, len(TEXTURES))
        path = options.out / "images" / f"{name}.png"
        draw(path, mosaics[name], truths[name], measured[0].labels[name], smoothed)
    left = min(1 - taken[name][: plates[name].shape[0]].mean() for name in plates)
    columns = "training", "shared", "alone"
    runs = [
        {"accuracies": accuracies([r], truths, smooth), **{n: getattr(r, n) for n in columns}}
        for r in measured
    ]
    keep_runs(options.out, "mosaics", {"tried": rows, "runs": runs})
    write_page(
        options.out,
        "mosaics",
        percent_left=f"{100 * left:.0f}",
        piece=PIECE,
        n_tried=len(rows) * len(SMOOTH),
        n_filters=chosen.filters,
        window=chosen.window,
        reach=chosen.reach,
        pooling=chosen.pooling,
        n_features=measured[0].features,
        votes=smooth,
        n_seeds=len(measured),
        accuracies=table(
            ["", "no votes", f"votes in {smooth}×{smooth}"], accuracies(measured, truths, smooth)
        ),
        by_texture=table(["", *truths], by_texture(measured, truths, smooth)),
        pictures="\n\n".join(f"![{name}](images/{name}.png)" for name in MOSAICS),
        seconds=table(
            ["learning", "a 512×512 map, responses shared", "window by window"],
            [[spread([getattr(r, name) for r in measured], 1) for name in columns]],
        ),
    )


def pixels_taken(shape: tuple[int, ...], region: np.ndarray) -> np.ndarray:
    """Return the pixels of a plate that are in a mosaic."""
    taken = np.array(region[: shape[0], : shape[1]])
    taken[CENTER, CENTER] = True
    return taken


def truth_of(regions: np.ndarray) -> np.ndarray:
    """Return a region map as indexes into the textures."""
    return np.searchsorted(np.array(list(TEXTURES)), regions)


def learn(
    plates: dict[str, np.ndarray],
    taken: dict[str, np.ndarray],
    setting: Setting,
    seed: int,
    jobs: int,
) -> CompactClassifier:
    """Return a classifier of windows, learned from patches that hold no pixel that is taken."""
    rng = np.random.default_rng(seed)
    images = np.concatenate(
        [cut_patches(plates[n], setting.patches, setting.window, rng, taken[n]) for n in plates]
    )
    labels = np.repeat(np.arange(len(plates)), setting.patches)
    family = GaborBank(
        setting.filters, phases=True, sigmas=(0.6, setting.reach / 2), pooling=setting.pooling,
        border="inside", reach=setting.reach, zero_mean=setting.zero_mean, random_state=seed,
    ).fit(images)  # fmt: skip
    columns = ArrayColumns.from_family(family, images, n_jobs=jobs)
    model = ShareBoost(setting.rounds, alpha=1e-3, n_jobs=jobs).fit(columns, labels)
    return model.to_classifier(family, list(plates))


def pieces(
    taken: dict[str, np.ndarray], each: int, rng: np.random.Generator
) -> dict[str, list[tuple[int, int]]]:
    """Return corners of squares of each plate that hold no pixel that is taken, nor meet."""
    chosen: dict[str, list[tuple[int, int]]] = {}
    for name, mask in taken.items():
        occupied, chosen[name] = mask.copy(), []
        corners = [
            (y, x)
            for y in range(0, mask.shape[0] - PIECE + 1, 6)
            for x in range(0, mask.shape[1] - PIECE + 1, 6)
        ]
        for index in rng.permutation(len(corners)):
            y, x = corners[index]
            if len(chosen[name]) < each and not occupied[y : y + PIECE, x : x + PIECE].any():
                occupied[y : y + PIECE, x : x + PIECE] = True
                chosen[name].append((y, x))
    return chosen


def choose(
    plates: dict[str, np.ndarray],
    taken: dict[str, np.ndarray],
    tried: list[Setting],
    jobs: int,
) -> tuple[Setting, int, list[list[Any]]]:
    """Return the setting and smoothing that are best on pieces excluded from training."""
    rng = np.random.default_rng(0)
    corners = pieces(taken, 2, rng)
    excluded = {name: mask.copy() for name, mask in taken.items()}
    squares = []
    for c, (name, positions) in enumerate(corners.items()):
        for y, x in positions:
            excluded[name][y : y + PIECE, x : x + PIECE] = True
            squares.append((c, plates[name][y : y + PIECE, x : x + PIECE]))
    across = 4
    order = rng.permutation(len(squares) // across * across).reshape(-1, across)
    mosaic = np.block([[squares[i][1] for i in row] for row in order])
    truth = np.block([[np.full((PIECE, PIECE), squares[i][0]) for i in row] for row in order])
    rows, best = [], (-1.0, tried[0], 1)
    for setting in tried:
        with stopwatch() as seconds:
            model = learn(plates, excluded, setting, 0, jobs)
        labels = label_map(model, mosaic, step=2, n_jobs=jobs)
        right = [float(np.mean(majority(labels, side, len(plates)) == truth)) for side in SMOOTH]
        best = max(best, (max(right), setting, SMOOTH[int(np.argmax(right))]), key=lambda b: b[0])
        rows.append([
            setting.window, setting.reach, setting.pooling, "yes" if setting.zero_mean else "no",
            setting.rounds, setting.patches, *(f"{100 * accuracy:.1f}" for accuracy in right),
            f"{seconds[0]:.0f}",
        ])  # fmt: skip
        print(rows[-1], flush=True)
    return best[1], best[2], rows


@dataclass(frozen=True)
class Reading:
    """What one classifier says of the mosaics, before smoothing."""

    labels: dict[str, np.ndarray]
    shared: float
    alone: float
    features: int
    training: float


def read_mosaics(
    plates: dict[str, np.ndarray],
    taken: dict[str, np.ndarray],
    setting: Setting,
    seed: int,
    mosaics: dict[str, np.ndarray],
    jobs: int,
) -> Reading:
    """Learn from all pixels that are in no mosaic, and label the mosaics."""
    with stopwatch() as training:
        model = learn(plates, taken, setting, seed, jobs)
    label_map(model, mosaics["texmos2"][:64, :64])
    with stopwatch() as shared:
        labels = {name: label_map(model, image, n_jobs=jobs) for name, image in mosaics.items()}
    # A row of windows cut out and classified: what all rows would take.
    strip = np.lib.stride_tricks.sliding_window_view(
        mosaics["texmos2"][: setting.window], (setting.window, setting.window)
    )[0]
    with stopwatch() as alone:
        model.predict(strip, jobs)
    height = mosaics["texmos2"].shape[0]
    return Reading(
        labels, shared[0] / len(mosaics), alone[0] * height, model.n_features, training[0]
    )


def draw(
    path: Path, mosaic: np.ndarray, truth: np.ndarray, raw: np.ndarray, smoothed: np.ndarray
) -> None:
    """Write mosaic, region map and the two maps side by side, at half size."""
    from PIL import Image

    colors = class_colors(len(TEXTURES))
    panels = [np.repeat(mosaic[..., None], 3, axis=2), *(colors[m] for m in (truth, raw, smoothed))]
    gap = np.full((mosaic.shape[0], 8, 3), 255, np.uint8)
    row = [part for panel in panels for part in (panel, gap)][:-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.ascontiguousarray(np.hstack(row)[::2, ::2])).save(path, optimize=True)


def _parts() -> dict[str, tuple[str, tuple[slice, slice]]]:
    low, high, whole = slice(0, 256), slice(256, 512), slice(None)
    return {
        "texmos2": ("texmos2", (whole, whole)),
        "texmos2, pieces of 128": ("texmos2", (low, whole)),
        "texmos2, pieces of 64": ("texmos2", (high, low)),
        "texmos2, pieces of 32": ("texmos2", (slice(256, 384), high)),
        "texmos2, pieces of 16": ("texmos2", (slice(384, 512), high)),
        "texmos3": ("texmos3", (whole, whole)),
    }


def accuracies(
    measured: list[Reading], truths: dict[str, np.ndarray], smooth: int
) -> list[list[Any]]:
    """Return a row for each mosaic and each size of pieces."""
    rows = []
    for title, (name, part) in _parts().items():
        row: list[Any] = [title]
        for side in (1, smooth):
            maps = [majority(r.labels[name], side, len(TEXTURES)) for r in measured]
            row.append(spread([100 * np.mean(m[part] == truths[name][part]) for m in maps], 1))
        rows.append(row)
    return rows


def by_texture(
    measured: list[Reading], truths: dict[str, np.ndarray], smooth: int
) -> list[list[Any]]:
    """Return the percent of each texture's pixels that are right, one column per mosaic."""
    columns: list[list[str]] = []
    for name, truth in truths.items():
        maps = [majority(r.labels[name], smooth, len(TEXTURES)) for r in measured]
        shares = [
            np.mean([np.mean(m[truth == c] == c) for m in maps]) for c in range(len(TEXTURES))
        ]
        columns.append([f"{100 * share:.0f}" for share in shares])
    return [list(row) for row in zip(TEXTURES.values(), *columns, strict=True)]


if __name__ == "__main__":
    main()
