"""Scores of all products of pairs of features, in whole numbers, without a product in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_clipped
from visionshare.codegen.rounding import round_on_examples
from visionshare.codegen.whole_numbers import WholeScores, class_scales

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Writer
    from visionshare.generators.monomials.family import Monomials

__all__ = ["scores"]

# Sums of sums, as class_scales takes them.
_LARGEST_SUM = 2**48
_LINEAR_BITS = 16
# As many examples as there are products make rounding as good as it gets.
_MOST_EXAMPLES = 4096


def scores(
    family: Monomials, writer: Writer, weights: np.ndarray, intercept: np.ndarray
) -> WholeScores | None:
    """Return the unit of scores; None unless features and most products of their pairs are there.

    With W_k the weights of pairs and l_k those of features, the score of class k is
    Σ_i f_i (l_ki + Σ_{j ≤ i} W_kij f_j): a product is never made, and a feature that is 0 costs
    nothing. Two classes share each byte of weights of 4 bits.

    Parameters
    ----------
    family : Monomials
    writer : Writer
    weights : ndarray of shape (k, n_features_)
    intercept : ndarray of shape (k,)
    """
    n = family.base_.n_features_
    sizes = np.array([len(factors) for factors in family.factors_])
    if sizes.max(initial=0) > 2 or np.sum(sizes == 2) < n * (n + 1) / 4:
        return None
    base = family.base_.to_whole_features(writer)
    if base is None:
        return None
    linear, pairs = _worths(family, weights, base.order, base.scales)
    k, bits = len(weights), 4 if writer.bits == 4 else 8
    i, j = np.tril_indices(n)
    if writer.examples is not None:
        values_of = base.evaluate(_few(writer.examples)).astype(np.float32) / base.top

        def products(start: int, stop: int) -> np.ndarray:
            return values_of[:, i[start:stop]] * values_of[:, j[start:stop]]

        integers, units = round_on_examples(pairs, bits, products)
    else:
        integers, units = quantize_clipped(pairs, bits)
    of_features = linear / units[:, None]
    shift = _shift(of_features)
    singles = np.rint(of_features / 2.0**shift).astype(np.int64)
    inner = (np.abs(singles) << shift).max(initial=0) + np.abs(integers).max() * base.top * n
    largest = np.full(k, inner * base.top * n)
    if inner >= 2**31 or largest.max() >= _LARGEST_SUM:
        return None
    scales = class_scales(units, largest, intercept)
    values = {
        "base": base.unit.name, "n": n, "k": k, "packed": bits == 4, "shift": scales.shift,
        "linear_shift": shift,
    }  # fmt: skip
    tables = {
        "pairs": _by_two(integers, bits), "linear": _by_two(singles, 8),
        "multipliers": scales.multipliers, "offsets": scales.offsets,
    }  # fmt: skip
    work = {"features": WorkArray("uint16_t", n)}
    unit = writer.unit(__file__, "products", tables, values, work, (base.unit,))
    writer.units.append(unit)

    def evaluate(images: np.ndarray) -> np.ndarray:
        f = base.evaluate(images)
        sums = np.empty((len(f), k), np.int64)
        for c in range(k):
            table = np.zeros((n, n), np.int64)
            table[i, j] = integers[c]
            sums[:, c] = (f * (f @ table.T + (singles[c] << shift))).sum(axis=1)
        return scales.scores(sums)

    return WholeScores(unit, scales.scale, evaluate)


def _worths(
    family: Monomials, weights: np.ndarray, order: np.ndarray, scales: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights of features (k, n) and of pairs (k, n (n + 1) / 2), j ≤ i, row after row.

    Both of whole numbers of features, in the order in which they are computed.
    """
    n, k = family.base_.n_features_, len(weights)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    linear, pairs = np.zeros((k, n)), np.zeros((k, n, n))
    for number, factors in enumerate(family.factors_):
        high, low = place[factors].max(), place[factors].min()
        if len(factors) == 1:
            linear[:, high] += weights[:, number] * scales[high]
        else:
            pairs[:, high, low] += weights[:, number] * scales[high] * scales[low]
    i, j = np.tril_indices(n)
    return linear, pairs[:, i, j]


def _few(examples: np.ndarray) -> np.ndarray:
    """Return examples, evenly drawn where there are many: they may be sorted by class."""
    number = min(len(examples), _MOST_EXAMPLES)
    chosen: np.ndarray = examples[np.linspace(0, len(examples) - 1, number).astype(np.int64)]
    return chosen


def _shift(values: np.ndarray) -> int:
    """Return by how many bits values are shifted so that those of a table hold them."""
    largest = float(np.abs(values).max(initial=0)) / (2 ** (_LINEAR_BITS - 1) - 1)
    return max(0, int(np.ceil(np.log2(max(largest, 1e-30)))))


def _by_two(integers: np.ndarray, bits: int) -> np.ndarray:
    """Return a table of two classes at a time, value after value; of 4 bits in one byte, plus 8."""
    k, n = integers.shape
    even = np.zeros((k + k % 2, n), np.int64)
    even[:k] = integers
    first, second = even[0::2], even[1::2]
    if bits == 4:
        return first + 8 | (second + 8) << 4
    return np.stack([first, second], axis=2)
