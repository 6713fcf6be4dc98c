"""Scores of all products of pairs of features, in whole numbers, without a product in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import Quantized, quantize_clipped
from visionshare.codegen.rounding import round_on_examples
from visionshare.codegen.whole_numbers import (
    ClassScales,
    WholeFeatures,
    WholeScores,
    class_scales,
    units_in_use,
)
from visionshare.generators.monomials.chosen_pairs import emit_chosen, saves_room
from visionshare.generators.monomials.pair_table import PairTable, by_two

if TYPE_CHECKING:
    from collections.abc import Sequence

    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.base import FeatureFamily
    from visionshare.generators.monomials.family import Monomials

_LINEAR_BITS = 16
# As many examples as there are products make rounding as good as it gets.
_MOST_EXAMPLES = 4096


def scores(
    family: Monomials, writer: Writer, weights: np.ndarray, intercept: np.ndarray
) -> WholeScores | None:
    """Return the unit of scores; None unless all are features and products of two of them."""
    # With W_k the weights of pairs and l_k those of features, the score of class k is Σ_i f_i
    # (l_ki + Σ_{j ≤ i} W_kij f_j): a product is never made, and a feature that is 0 costs
    # nothing. Two classes share each byte of weights of 4 bits. Where many pairs were left out,
    # bits say which are there.
    sizes = np.array([len(factors) for factors in family.factors_])
    if sizes.max(initial=0) > 2:
        return None
    base = family.base_.to_whole_features(writer)
    if base is None:
        return None
    pairs, linear, pair_weights = _whole_weights(family, weights, base.order, base.scales)
    bits = 4 if writer.bits == 4 else 8
    integers, units = _rounded(pair_weights, pairs, bits, base, writer.examples)
    units = _of_all_classes(units, integers, linear, base.top)
    of_features = linear / units[:, None]
    shift = _shift(of_features)
    singles = np.rint(of_features / 2.0**shift).astype(np.int64)
    table = PairTable(base, pairs, integers, singles, shift, bits)
    largest = table.largest()
    if largest is None:
        return None
    scales = class_scales(units, largest, intercept)
    emit = emit_chosen if saves_room(table) else _emit_all
    unit = emit(table, scales, writer)
    writer.units.append(unit)
    return WholeScores(unit, scales.scale, lambda images: scales.scores(table.sums(images)))


def joined(families: Sequence[Monomials]) -> Monomials | None:
    """Return all monomials of one family of all factors; None where factors cannot be joined."""
    bases = [part.base_ for part in families]
    join = bases[0]._whole("joined")
    if join is None or len({type(base) for base in bases}) > 1:
        return None
    base: FeatureFamily | None = join(bases)
    if base is None:
        return None
    starts = np.cumsum([0, *(b.n_features_ for b in bases)])
    factors = [
        f + start for part, start in zip(families, starts, strict=False) for f in part.factors_
    ]
    return type(families[0]).of(base, factors)


def _emit_all(table: PairTable, scales: ClassScales, writer: Writer) -> Unit:
    """Return the unit of all pairs, those that were left out with weights of 0."""
    k, n = table.singles.shape
    i, j = np.tril_indices(n)
    pairs = table.square()[:, i, j]
    tables = {
        "pairs": by_two(pairs, table.bits), "linear": by_two(table.singles, 8),
        "multipliers": scales.multipliers, "offsets": scales.offsets,
    }  # fmt: skip
    base = table.base.unit
    values = {
        "base": base.name, "n": n, "k": k, "packed": table.bits == 4, "shift": scales.shift,
        "linear_shift": table.shift, "pair_type": integer_type(tables["pairs"]),
        "linear_type": integer_type(tables["linear"]),
    }  # fmt: skip
    work = {"features": WorkArray("uint16_t", n)}
    return writer.unit(__file__, "products", tables, values, work, (base,), in_flash=True)


def _whole_weights(
    family: Monomials, weights: np.ndarray, order: np.ndarray, scales: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of places (p, 2), weights of features (k, n) and of pairs (k, p)."""
    # Pairs stand row after row, and all weights are of whole numbers of features, in the
    # order in which they are computed.
    n = family.base_.n_features_
    k = len(weights)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    linear = np.zeros((k, n))
    single = np.array([len(factors) == 1 for factors in family.factors_])
    of_places = [place[factors] for factors in family.factors_]
    for number in np.flatnonzero(single):
        (i,) = of_places[number]
        linear[:, i] += weights[:, number] * scales[i]
    ends = np.array([of_places[number] for number in np.flatnonzero(~single)], np.int64)
    ends = ends.reshape(-1, 2)
    high = ends.max(axis=1)
    low = ends.min(axis=1)
    numbers, column = np.unique(high * n + low, return_inverse=True)
    pairs = np.stack([numbers // n, numbers % n], axis=1)
    pair_weights = np.zeros((k, len(pairs)))
    np.add.at(
        pair_weights.T, column.reshape(-1), (weights[:, ~single] * scales[high] * scales[low]).T
    )
    return pairs, linear, pair_weights


def _rounded(
    pair_weights: np.ndarray, pairs: np.ndarray, bits: int, base: WholeFeatures, examples: Any
) -> Quantized:
    """Return weights of pairs in few bits, rounded on examples where there are some."""
    if examples is None or len(pairs) == 0:
        return quantize_clipped(pair_weights, bits)
    values_of = base.evaluate(_few(examples)).astype(np.float32) / base.top

    def products(start: int, stop: int) -> np.ndarray:
        i, j = pairs[start:stop].T
        return values_of[:, i] * values_of[:, j]

    return round_on_examples(pair_weights, bits, products)


def _of_all_classes(
    units: np.ndarray, integers: np.ndarray, linear: np.ndarray, top: int
) -> np.ndarray:
    """Return units of classes, where those without pairs have one that suits their features."""
    # It makes the largest weight of a feature as large as those of the other classes are, or as
    # what a pair adds to it.
    paired = integers.any(axis=1)
    largest = np.abs(linear).max(axis=1, initial=0)
    of_pairs = np.max(largest / units, where=paired, initial=2 ** (_LINEAR_BITS - 1) - 1)
    wanted = max(of_pairs, int(np.abs(integers).max(initial=0)) * top)
    alone = ~paired & (largest > 0)
    return units_in_use(np.where(alone, largest / wanted, units), paired | alone)


def _few(examples: np.ndarray) -> np.ndarray:
    """Return examples, evenly drawn where there are many: they may be sorted by class."""
    number = min(len(examples), _MOST_EXAMPLES)
    return examples[np.linspace(0, len(examples) - 1, number).astype(np.int64)]


def _shift(values: np.ndarray) -> int:
    """Return by how many bits values are shifted so that those of a table hold them."""
    largest = float(np.abs(values).max(initial=0)) / (2 ** (_LINEAR_BITS - 1) - 1)
    return max(0, int(np.ceil(np.log2(max(largest, 1e-30)))))
