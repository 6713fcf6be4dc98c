"""Classifiers that fit into the flash that a recipe allows."""

from __future__ import annotations

import logging

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import BudgetError
from visionshare.export.targets.flash import (
    FLASH_TARGET,
    TableSize,
    family_flash,
    flash_bytes,
)
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.tuning import quantized
from visionshare.learners import FineTuning
from visionshare.learners.fine_tuning.heads import UNITS
from visionshare.machine.resources import parse_size
from visionshare.recipes.schema import Recipe

_logger = logging.getLogger(__name__)

# Images that sizes of tables do not depend on.
_FEW = 32


def within_flash(
    recipe: Recipe, settings: FineTuning, classifier: CompactClassifier, images: np.ndarray
) -> CompactClassifier:
    """Return the classifier of as many rounds as fit, before it is fine-tuned."""
    limit = _limit(recipe)
    if limit is None:
        return classifier
    rounds = len(classifier.path)
    least = flash = _flash(settings, classifier, images)
    if flash <= limit:
        return classifier
    fits = 0
    beyond = rounds
    while beyond - fits > 1:
        t = (fits + beyond) // 2
        flash = _flash(settings, classifier.at(t), images)
        least = min(least, flash)
        fits, beyond = (t, beyond) if flash <= limit else (fits, t)
    if fits == 0:
        raise BudgetError(
            f"{FLASH_TARGET}: a single round would take about {least:,} bytes of flash, more than "
            f"{limit:,} (quantization.max_flash): fewer maps or units, or fewer bits"
        )
    _logger.info("%d of %d rounds fit into %d bytes of flash", fits, rounds, limit)
    return classifier.at(fits)


def check_flash(recipe: Recipe, classifier: CompactClassifier) -> CompactClassifier:
    """Return a classifier that was fine-tuned, if it fits."""
    limit = _limit(recipe)
    if limit is not None:
        flash = flash_bytes(classifier)
        if flash > limit:
            raise BudgetError(
                f"{FLASH_TARGET}: flash is {flash:,}, more than {limit:,} (quantization.max_flash)"
            )
    return classifier


def _limit(recipe: Recipe) -> int | None:
    text = None if recipe.quantization is None else recipe.quantization.max_flash
    return None if text is None else parse_size(text, "max_flash")


def _flash(settings: FineTuning, classifier: CompactClassifier, images: np.ndarray) -> int:
    """Return about the flash of a classifier's features in few bits, under the head's units."""
    assert settings.quantization is not None
    bits = settings.quantization.bits
    assert isinstance(classifier.family, Network)
    family = quantized(classifier.family, images[:_FEW], bits)
    values = int(np.prod(family.layers_[-1].out_shape))
    after = []
    if settings.head in UNITS:
        after.append(TableSize(settings.n_units, values, bits.weights))
        values = settings.n_units
    after.append(TableSize(len(classifier.classes), values, bits.scores or bits.weights))
    return family_flash(family, after, UNITS.get(settings.head) == "square")
