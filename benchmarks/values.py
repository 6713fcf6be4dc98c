"""Values of rendered dials, clock hands and rolling digits: ours beside HOG + ridge, a network.

`python -m benchmarks.values --n 2000` prints mean absolute errors; `--write FOLDER` writes the
pictures and tables: `visionshare train FOLDER/dial/values.csv --target value`. Rolling digits are
also written as classes: `classes.csv` has the nearest digit, `between.csv` has "between" where a
digit stands more than a quarter of the way to the next.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from visionshare.datasets.fonts import matplotlib_fonts, usable_fonts

# What a needle shows: degrees, counterclockwise from the right, at the first and the last value.
_SCALE = (225.0, -45.0)
_DRAWN = 4
KINDS = {"dial": None, "hand": 360.0, "wheel": 10.0}
# Seeds from here on draw with other fonts, and test.
_TESTS = 10_000
_BETWEEN = 0.25


def draw(rng: np.random.Generator, kind: str, side: int) -> tuple[np.ndarray, float]:
    """Return a gray picture of a dial from 0 to 100, or of a hand that turns, and its value."""
    # 1) the value, and where the needle points
    value = rng.uniform(0, KINDS[kind] or 100)
    degrees = 90 - value if kind == "hand" else np.interp(value, (0, 100), _SCALE)
    towards = np.array([np.cos(np.deg2rad(degrees)), -np.sin(np.deg2rad(degrees))])
    # 2) a face with ticks, of a place, size and light of its own
    large = side * _DRAWN
    image = Image.new("L", (large, large), int(rng.integers(60, 255)))
    pen = ImageDraw.Draw(image)
    center = large / 2 + rng.uniform(-0.06, 0.06, 2) * large
    radius = large * rng.uniform(0.36, 0.46)
    face = int(rng.integers(140, 250))
    pen.ellipse([*(center - radius), *(center + radius)], fill=face, outline=20, width=4)
    for angle in np.arange(12) * np.pi / 6:
        out = radius * np.array([np.cos(angle), -np.sin(angle)])
        pen.line([*(center + 0.85 * out), *(center + 0.95 * out)], fill=40, width=3)
    # 3) the needle, with a tail
    length = radius * rng.uniform(0.6, 0.85)
    ends = [*(center - 0.15 * radius * towards), *(center + length * towards)]
    pen.line(ends, fill=int(rng.integers(0, 90)), width=int(rng.integers(4, 9)))
    # 4) noise of a camera
    small = np.asarray(image.resize((side, side), Image.Resampling.BOX), np.float64)
    noise = rng.normal(0, rng.uniform(2, 10), small.shape)
    return np.clip(small + noise, 0, 255).astype(np.uint8), float(value)


def draw_wheel(rng: np.random.Generator, side: int, tests: bool) -> tuple[np.ndarray, float]:
    """Return a window on a wheel of digits that stands between two of them, and its position."""
    # 1) the digits around the position, in one of the fonts that train or test
    fonts = usable_fonts(matplotlib_fonts(), "0123456789")
    families = sorted({font.family for font in fonts})[int(tests) :: 2]
    family = families[int(rng.integers(len(families)))]
    font = next(font for font in fonts if font.family == family)
    value = rng.uniform(0, 10)
    large = side * _DRAWN
    size = large * rng.uniform(0.6, 0.8)
    pitch = size * rng.uniform(1.0, 1.3)
    face = ImageFont.truetype(str(font.path), round(size))
    paper, ink = rng.uniform(0, 90), rng.uniform(150, 250)
    if rng.random() < 0.5:
        paper, ink = ink, paper
    image = Image.new("L", (large, large), round(paper))
    pen = ImageDraw.Draw(image)
    middle = large / 2 + rng.uniform(-0.04, 0.04, 2) * large
    for step in (-1, 0, 1, 2):
        place = middle[0], middle[1] + (int(value) + step - value) * pitch
        pen.text(place, str((int(value) + step) % 10), fill=round(ink), font=face, anchor="mm")
    # 2) light from a side, a reflection, the blur and noise of a camera
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.2) * _DRAWN))
    small = np.asarray(image.resize((side, side), Image.Resampling.BOX), np.float64)
    rows, cols = np.mgrid[:side, :side] / side
    light = 1 + rng.uniform(-0.4, 0.4) * (rows - 0.5) + rng.uniform(-0.4, 0.4) * (cols - 0.5)
    away = (rows - rng.uniform()) ** 2 + (cols - rng.uniform()) ** 2
    small = small * light + rng.uniform(0, 80) * np.exp(-away / 0.02)
    noise = rng.normal(0, rng.uniform(2, 10), small.shape)
    return np.clip(small + noise, 0, 255).astype(np.uint8), float(value)


def rendered(n: int, kind: str, seed: int, side: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures (n, side, side) and their values."""
    rng = np.random.default_rng(seed)
    tests = seed >= _TESTS
    drawn = (
        draw_wheel(rng, side, tests) if kind == "wheel" else draw(rng, kind, side) for _ in range(n)
    )
    pictures, values = zip(*drawn, strict=True)
    return np.stack(pictures), np.array(values)


def circle(values: np.ndarray, period: float | None) -> np.ndarray:
    """Return targets of a regression: values, or their sines and cosines."""
    if period is None:
        return values[:, None]
    angles = values * 2 * np.pi / period
    return np.stack([np.sin(angles), np.cos(angles)], axis=1)


def from_circle(targets: np.ndarray, period: float | None) -> np.ndarray:
    """Return the values of targets."""
    if period is None:
        return targets[:, 0]
    return np.arctan2(targets[:, 0], targets[:, 1]) * period / (2 * np.pi) % period


def ours(X: np.ndarray, y: np.ndarray, T: np.ndarray, period: float | None, seconds: float) -> Any:
    """Return what ImageRegressor says."""
    from visionshare import ImageRegressor

    model = ImageRegressor(period=period, time=seconds, n_jobs=1).fit(X, y)
    return model.predict(T), model.cost_


def hog_ridge(X: np.ndarray, y: np.ndarray, T: np.ndarray, period: float | None, _: float) -> Any:
    """Return what a ridge regression on histograms of gradients says."""
    from skimage.feature import hog
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def features(images: np.ndarray) -> np.ndarray:
        options = {"pixels_per_cell": (4, 4), "cells_per_block": (2, 2)}
        return np.stack([hog(image, **options) for image in images])

    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 5, 13)))
    model.fit(features(X), circle(y, period))
    said = model.predict(features(T)).reshape(len(T), -1)
    return from_circle(said, period), {}


def network(
    X: np.ndarray, y: np.ndarray, T: np.ndarray, period: float | None, seconds: float
) -> Any:
    """Return what a network of three convolutions says, trained on shifted copies (PyTorch)."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers: list[nn.Module] = []
    for before, after in ((1, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    targets = torch.tensor(circle(y, period), dtype=torch.float32)
    center, scale = (0.0, 1.0) if period else (float(y.mean()), float(y.std()))
    flat = 64 * (X.shape[1] // 8) ** 2
    layers += [nn.Flatten(), nn.Linear(flat, 64), nn.ReLU(), nn.Linear(64, targets.shape[1])]
    model = nn.Sequential(*layers)
    images = torch.tensor(X[:, None] / 255.0, dtype=torch.float32)
    steps = torch.optim.Adam(model.parameters(), 2e-3)
    begun = time.perf_counter()
    while (used := (time.perf_counter() - begun) / seconds) < 1:
        for group in steps.param_groups:
            group["lr"] = 2e-3 * (1 - used) + 1e-6
        for rows in torch.randperm(len(X)).split(64):
            dy, dx = np.random.default_rng(int(rows[0])).integers(-2, 3, 2)
            shifted = torch.roll(images[rows], (int(dy), int(dx)), (2, 3))
            loss = nn.functional.mse_loss(model(shifted), (targets[rows] - center) / scale)
            steps.zero_grad()
            loss.backward()
            steps.step()
    model.eval()
    with torch.no_grad():
        said = model(torch.tensor(T[:, None] / 255.0, dtype=torch.float32)).numpy()
    macs = sum(a * b * 9 * (32 >> i) ** 2 for i, (a, b) in enumerate(((1, 16), (16, 32), (32, 64))))
    return from_circle(said * scale + center, period), {"macs": macs + flat * 64}


METHODS = {"visionshare": ours, "HOG + ridge": hog_ridge, "small network": network}


def main() -> None:
    """Print a line of JSON for each kind of picture, seed and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2000, help="training pictures")
    parser.add_argument(
        "--seconds", type=float, default=60, help="of training, where it is bounded"
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--write", type=Path, help="write pictures and a table instead")
    options = parser.parse_args()
    for kind in options.kinds:
        if options.write:
            for name, seed in (("", 0), ("-test", _TESTS)):
                write(options.write / (kind + name), kind, *rendered(options.n, kind, seed))
            continue
        period = KINDS[kind]
        T, truth = rendered(2000, kind, _TESTS)
        for seed in range(options.seeds):
            X, y = rendered(options.n, kind, seed)
            for name in options.methods:
                begun = time.perf_counter()
                said, cost = METHODS[name](X, y, T, period, options.seconds)
                off = np.abs(said - truth)
                off = off if period is None else np.minimum(off, period - off)
                figures = {"kind": kind, "seed": seed, "n": options.n, "method": name}
                figures |= {"mae": round(float(off.mean()), 4), "max": round(float(off.max()), 2)}
                seconds = round(time.perf_counter() - begun, 1)
                line = json.dumps({**figures, "seconds": seconds, **cost})
                sys.stdout.write(line + "\n")
                sys.stdout.flush()


def write(folder: Path, kind: str, pictures: np.ndarray, values: np.ndarray) -> None:
    """Write pictures, their values as a table, and those of wheels as classes too."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{i:05}.png" for i in range(len(pictures))]
    for name, picture in zip(names, pictures, strict=True):
        Image.fromarray(picture).save(folder / name)
    tables = {"values": ["value", *(f"{value:.3f}" for value in values)]}
    if kind == "wheel":
        digits = [str(round(value) % 10) for value in values]
        is_between = np.abs(values - np.round(values)) > _BETWEEN
        mixed = ["between" if b else d for d, b in zip(digits, is_between, strict=True)]
        tables |= {"classes": ["label", *digits], "between": ["label", *mixed]}
    for title, column in tables.items():
        with open(folder / f"{title}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(zip(["path", *names], column, strict=True))


if __name__ == "__main__":
    main()
