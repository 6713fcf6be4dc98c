"""Units of C in whole numbers, from the bytes of an image to scores, with the same in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import Unit, WorkArray, Writer
from visionshare.codegen.quantization import quantize_rows

# Scores are within it, so that two can be subtracted.
_LARGEST_SCORE = 2**29
# Multipliers of classes have so many bits: what is left of a rounding is far below a weight's.
_MULTIPLIER_BITS = 14


@dataclass(frozen=True)
class WholeFeatures:
    """Features as whole numbers: a unit of C, and the same numbers from Python."""

    unit: Unit
    order: np.ndarray
    scales: np.ndarray
    top: int
    evaluate: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class WholeScores:
    """Scores as whole numbers: a unit of C, and the same numbers from Python."""

    unit: Unit
    scale: float
    evaluate: Callable[[np.ndarray], np.ndarray]


class ClassScales(NamedTuple):
    """How the sums of each class become scores: ``(sum * multipliers >> shift) + offsets``."""

    multipliers: np.ndarray
    shift: int
    offsets: np.ndarray
    scale: float

    def scores(self, sums: np.ndarray) -> np.ndarray:
        """Return scores of sums (n_images, k), both int64."""
        return (sums * self.multipliers >> self.shift) + self.offsets


def class_scales(units: np.ndarray, largest: np.ndarray, intercept: np.ndarray) -> ClassScales:
    """Return multipliers that bring the sums of all classes to one scale."""
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
    """Return units of classes for :func:`class_scales`, where some have no sums."""
    # What 1 stands for in a sum that is always 0 is arbitrary. It is made no larger than what is
    # in use: multipliers of the other classes would lose their bits to it.
    limit = np.max(units, where=used, initial=0)
    return np.where(used, units, np.minimum(units, limit))


def weighted_scores(
    features: WholeFeatures, writer: Writer, weights: np.ndarray, intercept: np.ndarray
) -> WholeScores:
    """Return the scores of weighted features."""
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
    unit = writer.unit(__file__, "scores", tables, values, work, (features.unit,), in_flash=True)
    writer.units.append(unit)

    def evaluate(images: np.ndarray) -> np.ndarray:
        return scales.scores(features.evaluate(images) @ integers.T)

    return WholeScores(unit, scales.scale, evaluate)
