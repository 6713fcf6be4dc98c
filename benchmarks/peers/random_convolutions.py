"""Random dilated convolutions of images, pooled to shares of positive values, and ridge regression.

References
----------
A. Dempster, D. F. Schmidt, G. I. Webb, "MiniRocket: a very fast (almost) deterministic transform
for time series classification", KDD 2021: thresholds are quantiles of responses, and what is kept
of a response is its share of values above them. Here in two dimensions, with random weights, and
with shares of each cell of a grid, as a digit's parts have places that a time series' have not.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from scipy.linalg import cho_factor, cho_solve

from benchmarks.peers.peer import Effort, Trained, two_parts
from benchmarks.peers.timing import threads
from scripts.reproduce.results import stopwatch
from visionshare.datasets import ImageSet

__all__ = ["Convolutions", "Ridge", "draw", "learn"]

FEATURES, QUICK_FEATURES = 10_000, 1_000
SIDES, GRIDS, THRESHOLDS = (3, 5, 7), (1, 2, 4, 7), (1, 4)
# Of the mean of the features' variances.
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# What the search for kernels sees.
MOST, JUDGES, SEARCHED = 10_000, 5_000, 2_000
BATCH = 1000


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
def _shares(image, kernels, dilations, thresholds, margin, edges, out):  # type: ignore[no-untyped-def]
    """Write the shares (kernels, thresholds, cells) of one image's responses above thresholds."""
    height, stride = image.shape[0], image.shape[1] + margin
    flat = np.empty((height + 2 * margin) * stride + 2 * margin, np.float32)
    response = np.empty((height, stride), np.float32)
    _pad(image, margin, flat)
    place = 0
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
                    out[place] = above / ((bottom - top) * (right - left))
                    place += 1


@njit(cache=True, parallel=True)
def _all_shares(images, kernels, dilations, thresholds, margin, edges, out):  # type: ignore[no-untyped-def]
    for n in prange(len(images)):
        _shares(images[n], kernels, dilations, thresholds, margin, edges, out[n])


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
        """Zeros that the widest kernel wants beside the image."""
        return int(self.dilations.max()) * (self.kernels.shape[1] // 2)

    def transform(self, images: np.ndarray) -> np.ndarray:
        """Return shares (n, n_features) of images (n, H, W) of bytes, float32."""
        rows = images.astype(np.float32) * np.float32(1 / 255)
        out = np.empty((len(images), self.n_features), np.float32)
        edges = tuple(
            np.linspace(0, side, self.grid + 1).round().astype(np.int64) for side in rows.shape[1:]
        )
        held = self.kernels, self.dilations, self.thresholds, self.margin, edges
        if len(rows) == 1:
            _shares(rows[0], *held, out[0])
        else:
            _all_shares(rows, *held, out)
        return out

    def macs(self, shape: tuple[int, ...]) -> int:
        """Return the multiply-accumulates of an image; taps on zeros outside are not counted."""
        reach, found = self.kernels.shape[1] // 2, 0
        for dilation in self.dilations.tolist():
            shifts = [abs(a) * dilation for a in range(-reach, reach + 1)]
            rows, columns = ([max(0, side - shift) for shift in shifts] for side in shape)
            found += sum(rows) * sum(columns)
        return found


def draw(images: np.ndarray, n: int, side: int, thresholds: int, grid: int) -> Convolutions:
    """Return random kernels with about n features; their thresholds are quantiles of responses.

    Weights are normal and of mean 0. Dilations are even on a logarithmic scale, up to where a
    kernel is as wide as the image. Each threshold is a random quantile of the response of one of
    the images.
    """
    rng = np.random.default_rng(0)
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


class Ridge:
    """Least squares for ±1 of each class with a penalty on the weights, from sums over batches."""

    def __init__(self, p: int, classes: int) -> None:
        self._gram = np.zeros((p, p), np.float64)
        self._products = np.zeros((p, classes), np.float64)
        self._sums, self._targets, self._n = np.zeros(p), np.zeros(classes), 0
        self._shift = np.zeros(p, np.float32)

    def add(self, Z: np.ndarray, y: np.ndarray) -> None:
        """Add examples."""
        if not self._n:
            # Features far from 0 beside their spread would lose their digits in float32.
            self._shift = Z.mean(axis=0, dtype=np.float64).astype(np.float32)
        Z = Z - self._shift
        T = np.where(np.arange(len(self._targets)) == y[:, None], 1, -1).astype(np.float32)
        self._gram += Z.T @ Z
        self._products += Z.T @ T
        self._sums += Z.sum(axis=0, dtype=np.float64)
        self._targets += T.sum(axis=0, dtype=np.float64)
        self._n += len(Z)

    def solve(self, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (p, classes) and intercepts for a penalty in shares of mean variance."""
        mean, target = self._sums / self._n, self._targets / self._n
        covariance = self._gram / self._n
        covariance -= np.outer(mean, mean)
        held = np.einsum("ii->i", covariance)
        held += penalty * held.mean()
        products = self._products / self._n - np.outer(mean, target)
        weights = cho_solve(cho_factor(covariance, overwrite_a=True), products)
        return weights.astype(np.float32), (target - (mean + self._shift) @ weights).astype(
            np.float32
        )


def _tried(
    part: ImageSet, judges: ImageSet, settings: tuple[int, int, int], n: int
) -> dict[float, float]:
    """Return the error on the images that judge, for each penalty."""
    side, thresholds, grid = settings
    lift = draw(part.images, n, side, thresholds, grid)
    ridge = Ridge(lift.n_features, len(part.classes))
    _add(ridge, lift, part)
    Q, found = lift.transform(judges.images), {}
    for penalty in PENALTIES:
        weights, intercept = ridge.solve(penalty)
        wrong = np.argmax(Q @ weights + intercept, axis=1) != judges.labels
        found[penalty] = float(np.mean(wrong))
    return found


def _add(ridge: Ridge, lift: Convolutions, held: ImageSet) -> None:
    for i in range(0, len(held), BATCH):
        ridge.add(lift.transform(held.images[i : i + BATCH]), held.labels[i : i + BATCH])


def _least(errors: dict[float, float]) -> float:
    return min(errors, key=lambda penalty: errors[penalty])


def learn(train: ImageSet, effort: Effort) -> Trained:
    """Choose kernels, grid and penalty on parts of the training images and train on all."""
    n = QUICK_FEATURES if effort.quick else FEATURES
    sides, grids = (SIDES[:2], GRIDS[:3]) if effort.quick else (SIDES, GRIDS)
    fitting = [side for side in sides if side <= min(train.images.shape[1:])]
    tried = list(itertools.product(fitting, THRESHOLDS, grids))
    with threads(effort.jobs):
        with stopwatch() as tuning:
            part, judges = two_parts(train, MOST, JUDGES)
            searched = [_tried(part, judges, each, min(n, SEARCHED)) for each in tried]
            chosen = tried[int(np.argmin([min(errors.values()) for errors in searched]))]
            at_full = _tried(part, judges, chosen, n)
            penalty = _least(at_full)
        with stopwatch() as seconds:
            side, thresholds, grid = chosen
            lift = draw(train.images, n, side, thresholds, grid)
            ridge = Ridge(lift.n_features, len(train.classes))
            _add(ridge, lift, train)
            weights, intercept = ridge.solve(penalty)
    settings = (
        f"{len(lift.kernels)} random {side}×{side} kernels of mean 0, each with a random dilation "
        f"and {thresholds} thresholds, which are quantiles of responses on training images; the "
        f"features are the shares of responses above them in each cell of a {grid}×{grid} grid, "
        f"{lift.n_features:,} in all. Numba, training on {effort.jobs} threads, prediction on one. "
        f"Sides among {_listed(fitting)}, thresholds among {_listed(THRESHOLDS)}, grids among "
        f"{_listed(grids)} by the errors on {len(judges)} training images after learning from "
        f"{len(part)} others with {min(n, SEARCHED)} features; then, with all features, the ridge "
        f"penalty among {_listed(PENALTIES)} of the mean variance: {penalty:g} "
        f"({100 * at_full[penalty]:.2f} % there)."
    )

    def predict(images: np.ndarray) -> np.ndarray:
        return np.argmax(lift.transform(images) @ weights + intercept, axis=1)

    macs = lift.macs(train.images.shape[1:]) + weights.size
    return Trained(predict, f"{macs:,}", settings, seconds[0], tuning[0])


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
