"""Wavelet scattering of images, kymatio's in NumPy, with ridge.

References
----------
J. Bruna, S. Mallat, "Invariant scattering convolution networks", IEEE Transactions on Pattern
Analysis and Machine Intelligence 35, 2013. M. Andreux and others, "Kymatio: scattering transforms
in Python", Journal of Machine Learning Research 21, 2020.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.peer import Choice, Effort, Trained, processor_stopwatch, two_parts
from benchmarks.peers.ridge import PENALTIES, RidgePredictor, sums, validation_errors
from benchmarks.peers.timing import threads
from scripts.reproduce.results import listed, render
from visionshare.datasets import ImageSet

__all__ = ["Scattering", "learn", "tune"]

# Scales are octaves: a coefficient is the mean over 2^scales pixels.
SCALES, ANGLES = (2, 3), (6, 8)
MOST, VALIDATION = 10_000, 5_000
# Images that are transformed at once.
AT_ONCE = 100


@cache
def _transform(scales: int, angles: int, shape: tuple[int, int]) -> Any:
    # kymatio.numpy imports parts for volumes too, which need a function that SciPy 1.17 lacks.
    from kymatio.scattering2d.frontend.numpy_frontend import ScatteringNumPy2D

    return ScatteringNumPy2D(scales, shape, angles)


@dataclass(frozen=True)
class Scattering:
    """Scattering coefficients of orders 0 to 2 of images (n, H, W) of bytes.

    Parameters
    ----------
    scales : int
        Octaves of the wavelets.
    angles : int
        Directions of the wavelets.
    shape : tuple of int
        Of an image.
    """

    scales: int
    angles: int
    shape: tuple[int, int]

    @property
    def n_features(self) -> int:
        """Coefficients: of each path, at each position."""
        paths = 1 + self.scales * self.angles + self._n_pairs * self.angles**2
        return paths * (self.shape[0] >> self.scales) * (self.shape[1] >> self.scales)

    @property
    def _n_pairs(self) -> int:
        """Pairs of scales, the finer one first."""
        return self.scales * (self.scales - 1) // 2

    def transform(self, images: np.ndarray) -> np.ndarray:
        """Return coefficients (n, n_features), float32."""
        scattering = _transform(self.scales, self.angles, self.shape)
        out = np.empty((len(images), self.n_features), np.float32)
        for i in range(0, len(images), AT_ONCE):
            part = images[i : i + AT_ONCE].astype(np.float32) * np.float32(1 / 255)
            out[i : i + AT_ONCE] = scattering(part).reshape(len(part), -1)
        return out

    @property
    def n_bytes(self) -> int:
        """Bytes of the filters, in the frequencies of each resolution."""
        scattering = _transform(self.scales, self.angles, self.shape)
        filters = [scattering.phi, *scattering.psi]
        return sum(level.nbytes for one in filters for level in one["levels"])

    @property
    def macs(self) -> int:
        """Multiply-accumulates per image of Fourier transforms and filters; moduli not counted.

        A transform of n numbers has n/2·log₂ n butterflies of four multiplications each; a filter
        multiplies both parts of a frequency. The transforms are complex, as kymatio's are.
        """
        scattering = _transform(self.scales, self.angles, self.shape)
        sizes = [
            (scattering._M_padded >> level) * (scattering._N_padded >> level)
            for level in range(self.scales + 1)
        ]
        fourier = [2 * n * np.log2(n) for n in sizes]
        pooled = [2 * n + fourier[-1] for n in sizes]
        count = fourier[0] + pooled[0]
        for fine in range(self.scales):
            first = 2 * sizes[0] + 2 * fourier[fine] + pooled[fine]
            count += self.angles * first
            for coarse in range(fine + 1, self.scales):
                second = 2 * sizes[fine] + 2 * fourier[coarse] + pooled[coarse]
                count += self.angles**2 * second
        return round(count)


def tune(train: ImageSet, effort: Effort) -> Choice:
    """Choose scales and angles, then the penalty, on parts of the training images."""
    shape = train.images.shape[1:]
    scales = [s for s in SCALES if 1 << s <= min(shape)]
    tried = [Scattering(s, a, shape) for s, a in itertools.product(scales, ANGLES)]
    with threads(effort.jobs):
        few, few_validation = two_parts(train, MOST, VALIDATION)
        searched = [min(validation_errors(s, sums(s, few), few_validation)) for s in tried]
        best = tried[int(np.argmin(searched))]
        part, validation = two_parts(train)
        errors = validation_errors(best, sums(best, part), validation)
    return {
        "scales": best.scales,
        "angles": best.angles,
        "penalty": PENALTIES[int(np.argmin(errors))],
        "error": min(errors),
        "tried": scales,
        "n_search_train": len(few),
        "n_search_validation": len(few_validation),
        "n_train": len(part),
        "n_validation": len(validation),
    }


def learn(train: ImageSet, effort: Effort, choice: Choice) -> Trained:
    """Train on all images."""
    lift = Scattering(choice["scales"], choice["angles"], train.images.shape[1:])
    with processor_stopwatch() as seconds, threads(effort.jobs):
        weights, intercept = sums(lift, train).solve(choice["penalty"])
    settings = render(
        "peers/scattering",
        version=version("kymatio"),
        scales=lift.scales,
        angles=lift.angles,
        n_features=f"{lift.n_features:,}",
        jobs=effort.jobs,
        scales_tried=listed(choice["tried"]),
        angles_tried=listed(ANGLES),
        n_search_validation=choice["n_search_validation"],
        n_search_train=choice["n_search_train"],
        penalties=listed(PENALTIES),
        n_validation=choice["n_validation"],
        n_train=choice["n_train"],
        penalty=f"{choice['penalty']:g}",
        error=f"{100 * choice['error']:.2f}",
        weights=f"{weights.size:,}",
    )
    macs, size = lift.macs + weights.size, lift.n_bytes + weights.nbytes + intercept.nbytes
    predict = RidgePredictor(lift, weights, intercept)
    return Trained(predict, macs, f"{macs:,}", size, settings, seconds[0])
