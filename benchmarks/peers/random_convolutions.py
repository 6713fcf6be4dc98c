"""Random dilated convolutions of images, pooled to fractions of large responses, with ridge.

References
----------
A. Dempster, D. F. Schmidt, G. I. Webb, "MiniRocket: a very fast (almost) deterministic transform
for time series classification", KDD 2021: thresholds are quantiles of responses, and a feature is
the fraction of a response above them. Here in two dimensions, with random weights, and with the
fractions of each cell of a grid, as a digit's parts have positions that a time series' have not.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from benchmarks.peers.peer import Choice, Effort, Trained, processor_stopwatch, two_parts
from benchmarks.peers.ridge import PENALTIES, RidgePredictor, sums, validation_errors
from benchmarks.peers.timing import threads
from scripts.reproduce.results import listed, render
from visionshare.datasets import ImageSet

__all__ = ["Convolutions", "Kernels", "draw", "learn", "tune"]

FEATURES, QUICK_FEATURES = 10_000, 1_000
SIDES, GRIDS, THRESHOLDS = (3, 5, 7), (2, 4, 7), (1, 4)
# What the search for kernels sees.
MOST, VALIDATION, SEARCHED = 10_000, 5_000, 2_000


@njit(cache=True, nogil=True)
def _pad(image, margin, flat):  # type: ignore[no-untyped-def]
    """Write an image with zeros around; those at the right of a row are at the left of the next."""
    flat[:] = 0
    for y in range(image.shape[0]):
        start = (y + margin) * (image.shape[1] + margin) + margin
        flat[start : start + image.shape[1]] = image[y]


@njit(cache=True, nogil=True)
def _respond(flat, kernel, dilation, margin, response):  # type: ignore[no-untyped-def]
    """Write a kernel's response (H, W + margin); the columns beyond W mean nothing."""
    stride, reach = response.shape[1], kernel.shape[0] // 2
    out = response.reshape(-1)
    out[:] = 0
    for a in range(kernel.shape[0]):
        for b in range(kernel.shape[1]):
            start = (margin + (a - reach) * dilation) * stride + margin + (b - reach) * dilation
            shifted, weight = flat[start : start + out.size], kernel[a, b]
            for i in range(out.size):
                out[i] += weight * shifted[i]


@njit(cache=True, nogil=True)
def _fractions(image, kernels, dilations, thresholds, margin, edges, out):  # type: ignore[no-untyped-def]
    """Write the fractions (kernels, thresholds, cells) of one image's responses that are above."""
    height, stride = image.shape[0], image.shape[1] + margin
    flat = np.empty((height + 2 * margin) * stride + 2 * margin, np.float32)
    response = np.empty((height, stride), np.float32)
    _pad(image, margin, flat)
    column = 0
    for k in range(len(kernels)):
        _respond(flat, kernels[k], dilations[k], margin, response)
        for threshold in thresholds[k]:
            for i in range(len(edges[0]) - 1):
                top, bottom = edges[0][i], edges[0][i + 1]
                for j in range(len(edges[1]) - 1):
                    left, right = edges[1][j], edges[1][j + 1]
                    above = 0
                    for y in range(top, bottom):
                        for value in response[y, left:right]:
                            above += value > threshold
                    out[column] = above / ((bottom - top) * (right - left))
                    column += 1


@njit(cache=True, parallel=True)
def _all_fractions(images, kernels, dilations, thresholds, margin, edges, out):  # type: ignore[no-untyped-def]
    for n in prange(len(images)):
        _fractions(images[n], kernels, dilations, thresholds, margin, edges, out[n])


@dataclass(frozen=True)
class Convolutions:
    """Random kernels (n, side, side), a dilation and thresholds (n, t) of each, a grid of cells."""

    kernels: np.ndarray
    dilations: np.ndarray
    thresholds: np.ndarray
    grid: int

    @property
    def n_features(self) -> int:
        return int(self.thresholds.size) * self.grid**2

    @property
    def margin(self) -> int:
        """Zeros that the widest kernel needs beside the image."""
        return int(self.dilations.max()) * (self.kernels.shape[1] // 2)

    def transform(self, images: np.ndarray) -> np.ndarray:
        """Return fractions (n, n_features) of images (n, H, W) of bytes, float32."""
        rows = images.astype(np.float32) * np.float32(1 / 255)
        out = np.empty((len(images), self.n_features), np.float32)
        edges = tuple(
            np.linspace(0, side, self.grid + 1).round().astype(np.int64) for side in rows.shape[1:]
        )
        lift = self.kernels, self.dilations, self.thresholds, self.margin, edges
        if len(rows) == 1:
            _fractions(rows[0], *lift, out[0])
        else:
            _all_fractions(rows, *lift, out)
        return out

    def macs(self, shape: tuple[int, ...]) -> int:
        """Return the multiply-accumulates per image; taps on zeros outside are not counted."""
        reach, count = self.kernels.shape[1] // 2, 0
        for dilation in self.dilations.tolist():
            shifts = [abs(a) * dilation for a in range(-reach, reach + 1)]
            rows, columns = ([max(0, side - shift) for shift in shifts] for side in shape)
            count += sum(rows) * sum(columns)
        return count


def draw(
    images: np.ndarray, n: int, side: int, thresholds: int, grid: int, seed: int = 0
) -> Convolutions:
    """Return random kernels with about n features; their thresholds are quantiles of responses.

    Weights are normal and of mean 0. Dilations are even on a logarithmic scale, up to where a
    kernel is as wide as the image. Each threshold is a random quantile of the response of one of
    the images.
    """
    rng = np.random.default_rng(seed)
    count = max(1, n // (thresholds * grid**2))
    kernels = rng.normal(size=(count, side, side)).astype(np.float32)
    kernels -= kernels.mean(axis=(1, 2), keepdims=True)
    widest = max(1, (min(images.shape[1:]) - 1) // (side - 1))
    dilations = np.exp2(rng.uniform(0, np.log2(widest + 1), count)).astype(np.int64)
    levels = np.empty((count, thresholds), np.float32)
    height, width = images.shape[1:]
    for k in range(count):
        image = images[rng.integers(len(images))].astype(np.float32) * np.float32(1 / 255)
        margin = int(dilations[k]) * (side // 2)
        flat = np.empty((height + 2 * margin) * (width + margin) + 2 * margin, np.float32)
        response = np.empty((height, width + margin), np.float32)
        _pad(image, margin, flat)
        _respond(flat, kernels[k], dilations[k], margin, response)
        levels[k] = np.quantile(response[:, :width], rng.random(thresholds))
    return Convolutions(kernels, dilations, levels, grid)


class Kernels(NamedTuple):
    """Side of the kernels, thresholds per kernel, and cells per side of the grid."""

    side: int
    thresholds: int
    grid: int


def _searched(part: ImageSet, validation: ImageSet, n: int, tried: list[Kernels]) -> Kernels:
    """Return the kernels that n features of a part of the images choose.

    Of those within a standard error of the fewest errors, the one with the fewest operations.
    """
    errors, macs = [], []
    for kernels in tried:
        lift = draw(part.images, n, *kernels)
        errors.append(min(validation_errors(lift, sums(lift, part), validation)))
        macs.append(lift.macs(part.images.shape[1:]))
    least = min(errors)
    enough = least + np.sqrt(least * (1 - least) / len(validation))
    chosen = min(
        (m, i) for i, (m, error) in enumerate(zip(macs, errors, strict=True)) if error <= enough
    )
    return tried[chosen[1]]


def tune(train: ImageSet, effort: Effort) -> Choice:
    """Choose kernels and grid, then the penalty, on parts of the training images."""
    n = QUICK_FEATURES if effort.quick else FEATURES
    sides, grids = (SIDES[:2], GRIDS[:2]) if effort.quick else (SIDES, GRIDS)
    tried = [Kernels(*kernels) for kernels in itertools.product(sides, THRESHOLDS, grids)]
    with threads(effort.jobs):
        few, few_validation = two_parts(train, MOST, VALIDATION)
        kernels = _searched(few, few_validation, min(n, SEARCHED), tried)
        part, validation = two_parts(train)
        lift = draw(train.images, n, *kernels)
        errors = validation_errors(lift, sums(lift, part), validation)
    return {
        "kernels": list(kernels),
        "penalty": PENALTIES[int(np.argmin(errors))],
        "error": min(errors),
        "n": n,
        "sides": list(sides),
        "grids": list(grids),
        "n_search_train": len(few),
        "n_search_validation": len(few_validation),
        "n_train": len(part),
        "n_validation": len(validation),
    }


def learn(train: ImageSet, effort: Effort, choice: Choice) -> Trained:
    """Train on all images."""
    kernels, n = Kernels(*choice["kernels"]), choice["n"]
    with processor_stopwatch() as seconds, threads(effort.jobs):
        lift = draw(train.images, n, *kernels, effort.seed)
        weights, intercept = sums(lift, train).solve(choice["penalty"])
    settings = render(
        "peers/random_convolutions",
        n_kernels=len(lift.kernels),
        side=kernels.side,
        thresholds=kernels.thresholds,
        grid=kernels.grid,
        n_features=f"{lift.n_features:,}",
        jobs=effort.jobs,
        sides=listed(choice["sides"]),
        thresholds_tried=listed(THRESHOLDS),
        grids=listed(choice["grids"]),
        n_search_validation=choice["n_search_validation"],
        n_search_train=choice["n_search_train"],
        n_search_features=min(n, SEARCHED),
        penalties=listed(PENALTIES),
        n_validation=choice["n_validation"],
        n_train=choice["n_train"],
        penalty=f"{choice['penalty']:g}",
        error=f"{100 * choice['error']:.2f}",
    )
    macs = lift.macs(train.images.shape[1:]) + weights.size
    arrays = (lift.kernels, lift.dilations, lift.thresholds, weights, intercept)
    size = sum(values.nbytes for values in arrays)
    predict = RidgePredictor(lift, weights, intercept)
    return Trained(predict, macs, f"{macs:,}", size, settings, seconds[0])
