"""Heads: what follows the chosen features of a classifier that is fine-tuned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

#: The units of a head, for heads that have any.
UNITS: dict[str, str] = {"hidden": "relu", "low-rank": "square"}
#: Weights of the features; of all products of their pairs too; of rectified weighted sums of
#: them; of squares of weighted sums, a few of which stand for all products.
HEADS: tuple[str, ...] = ("linear", "products", *UNITS)


def with_units(
    classifier: CompactClassifier, X: np.ndarray, head: str, n_units: int, random_state: int
) -> CompactClassifier:
    """Return a classifier of units of another one's features, all of them drawn at random."""
    from visionshare.generators.layers.network import with_units as network_with
    from visionshare.generators.layers.units.layer import drawn_units

    drawn = drawn_units(
        X, (1, 1, X.shape[1]), n_units, UNITS[head], np.random.default_rng(random_state)
    )
    family = network_with(classifier.family, drawn)
    values = drawn.outputs(X)
    deviation = values.std(axis=0)
    # Of standardized units the weights have a variance of 1 / n_units.
    rng = np.random.default_rng([random_state, 2])
    weights = rng.standard_normal((len(classifier.classes), n_units)) / np.sqrt(n_units)
    weights /= np.where(deviation > 0, deviation, 1)
    intercept = -weights @ values.mean(axis=0, dtype=np.float64)
    return replace(
        classifier, family=family, weights=weights, intercept=intercept, path=(), exit_rule=None
    )
