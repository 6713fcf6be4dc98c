"""Units of C in whole numbers, from the bytes of an image to scores, with the same in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import Unit, WorkArray, Writer
from visionshare.codegen.quantization import quantize_rows

__all__ = [
    "ClassScales",
    "WholeFeatures",
    "WholeScores",
    "class_scales",
    "units_in_use",
    "weighted_scores",
]

# Scores are within it, so that two can be subtracted.
_LARGEST_SCORE = 2**29
# Multipliers of classes have so many bits: what is left of a rounding is far below a weight's.
_MULTIPLIER_BITS = 14


@dataclass(frozen=True)
class WholeFeatures:
    """Features as whole numbers: a unit of C, and the same numbers from Python.

    Parameters
    ----------
    unit : Unit
        Of a function ``static void name(image, work, uint16_t *features)``.
    order : ndarray of shape (n,), int64
        Id of the feature at each place of what the function writes.
    scales : ndarray of shape (n,), float64
        A feature is about its whole number times this, place by place.
    top : int
        No whole number is larger.
    evaluate : callable
        Whole numbers (n_images, n), int64, of images.
    """

    unit: Unit
    order: np.ndarray
    scales: np.ndarray
    top: int
    evaluate: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class WholeScores:
    """Scores as whole numbers: a unit of C, and the same numbers from Python.

    Parameters
    ----------
    unit : Unit
        Of a function ``static void name(image, work, int32_t *scores)``.
    scale : float
        A score is about its whole number times this.
    evaluate : callable
        Whole numbers (n_images, k), int64, of images.
    """

    unit: Unit
    scale: float
    evaluate: Callable[[np.ndarray], np.ndarray]


class ClassScales(NamedTuple):
    """How the sums of each class become scores: ``(sum * multipliers >> shift) + offsets``.

    Examples
    --------
    >>> scales = ClassScales(np.array([3]), 1, np.array([10]), 0.5)
    >>> scales.scores(np.array([[7]])).tolist()
    [[20]]
    """

    multipliers: np.ndarray
    shift: int
    offsets: np.ndarray
    scale: float

    def scores(self, sums: np.ndarray) -> np.ndarray:
        """Return scores of sums (n_images, k), both int64."""
        scaled: np.ndarray = (sums * self.multipliers >> self.shift) + self.offsets
        return scaled


def class_scales(units: np.ndarray, largest: np.ndarray, intercept: np.ndarray) -> ClassScales:
    """Return multipliers that bring the sums of all classes to one scale.

    Parameters
    ----------
    units : ndarray of shape (k,)
        What 1 stands for in the sum of each class.
    largest : ndarray of shape (k,)
        Bounds of the sums' absolute values, below 2^48.
    intercept : ndarray of shape (k,)

    Examples
    --------
    >>> made = class_scales(np.array([0.5, 0.25]), np.array([1000, 1000]), np.array([1.0, -1.0]))
    >>> (made.scores(np.array([[100, 100]])) * made.scale).round(3).tolist()
    [[51.0, 24.0]]
    """
    units = np.asarray(units, np.float64)
    bound = float(np.max(units * largest + np.abs(intercept), initial=1e-30))
    # A power of two above the bound, so that the largest score is within what is said above.
    scale = 2.0 ** np.ceil(np.log2(bound)) / _LARGEST_SCORE
    # The largest multiplier has all of its bits.
    shift = int(_MULTIPLIER_BITS - np.ceil(np.log2(float(units.max(initial=1e-30)) / scale)))
    shift = min(max(shift, 0), 62)
    multipliers = np.rint(units / scale * 2.0**shift).astype(np.int64)
    offsets = np.rint(np.asarray(intercept, np.float64) / scale).astype(np.int64)
    return ClassScales(multipliers, shift, offsets, float(scale))


def units_in_use(units: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return units of classes for :func:`class_scales`, where some have no sums.

    What 1 stands for in a sum that is always 0 is arbitrary. It is made no larger than what is in
    use: multipliers of the other classes would lose their bits to it.

    Parameters
    ----------
    units : ndarray of shape (k,)
    used : ndarray of shape (k,), bool
        Whether a class has weights that are not 0.

    Examples
    --------
    >>> units_in_use(np.array([0.5, 0.25, 1.0]), np.array([True, True, False])).tolist()
    [0.5, 0.25, 0.5]
    """
    limit = np.max(units, where=used, initial=0)
    limited: np.ndarray = np.where(used, units, np.minimum(units, limit))
    return limited


def weighted_scores(
    features: WholeFeatures, writer: Writer, weights: np.ndarray, intercept: np.ndarray
) -> WholeScores:
    """Return the scores of weighted features.

    Parameters
    ----------
    features : WholeFeatures
        Of a unit that the writer has.
    writer : Writer
    weights : ndarray of shape (k, n)
        Of the features by their ids.
    intercept : ndarray of shape (k,)
    """
    # What a feature's whole number is worth goes into its weights: one scale a class is left.
    worth = weights[:, features.order].astype(np.float64) * features.scales
    integers, units = quantize_rows(worth, 8 if writer.bits == 4 else writer.bits or 8)
    largest = np.abs(integers).sum(axis=1) * features.top
    scales = class_scales(units_in_use(units, largest > 0), largest, intercept)
    k, n = integers.shape
    values = {
        "features": features.unit.name, "n_features": n, "n_classes": k,
        "weight_type": integer_type(integers), "shift": scales.shift,
        "sum_type": "int32_t" if largest.max(initial=0) < 2**31 else "int64_t",
    }  # fmt: skip
    tables = {"weights": integers, "multipliers": scales.multipliers, "offsets": scales.offsets}
    work = {"features": WorkArray("uint16_t", n)}
    unit = writer.unit(__file__, "scores", tables, values, work, (features.unit,))
    writer.units.append(unit)

    def evaluate(images: np.ndarray) -> np.ndarray:
        return scales.scores(features.evaluate(images) @ integers.T)

    return WholeScores(unit, scales.scale, evaluate)
