"""A pretrained network as trials of a search: which features, on which images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visionshare.datasets import Augmentation, Preprocessing
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.copies import Parts
from visionshare.image_classifier.kept_trials import KeptTrials
from visionshare.image_classifier.proposals import Data, Dense, Proposal
from visionshare.image_classifier.trials import ProposalLearner, Trials
from visionshare.recipes import Recipe

_POOL = "efficientnet-lite0"
_BOTH = "efficientnet-lite0-cells"


@dataclass(frozen=True)
class Transfer:
    """What a search needs to try a network."""

    #: Parameters of the pool, see :func:`visionshare.image_classifier.pretrained.asked_for`.
    parameters: dict[str, Any]
    #: What classifiers may cost; without multiply-accumulates where the user says none.
    budget: Budget
    #: Returns images by their rows, and whether they are the validation images.
    read: Callable[[np.ndarray, bool], np.ndarray]
    #: How picture files are prepared, for the recipes.
    preprocessing: Preprocessing | None = None
    #: With the size of these images, where a recipe was given.
    base: Recipe | None = None
    #: Assumed seconds for the features of one picture and its copies, until they are measured.
    per_picture: float = 0.02
    n_sample: int = 500
    n_sample_compared: int = 300
    n_copied: int = 300
    n_few: int = 400

    def suits(self, own: ProposalLearner) -> bool:
        """Return whether the network is to be tried on such images."""
        is_picture = own.images.images.ndim > 2 and own.data.raster[2] in (1, 3)
        return is_picture and self.budget.flash is None

    def learner(self, own: ProposalLearner, rows: np.ndarray) -> ProposalLearner:
        """Return the learner of some of the training images, as the network sees them."""
        part = own.images.subset(rows)
        seen = replace(part, images=self.read(rows, False))
        return replace(own, data=Data.of(seen), images=seen, preprocessing=self.preprocessing)

    def trials(self, own: ProposalLearner, parts: Parts, kept: KeptTrials | None = None) -> Trials:
        """Return trials on some images, compared on others."""
        learner = replace(self.learner(own, parts.learning), preprocessing=None, max_flash=None)
        compared = parts.compared_of.subset(parts.compared)
        seen = self.read(parts.compared, parts.validates)
        return Trials(learner, replace(compared, images=seen), None, kept)

    def proposals(self, data: Data) -> Iterator[Proposal]:
        """Yield the network alone, and beside features of small cells."""
        # The network's own copies: few pictures say more when they are seen in several ways.
        copies = Proposal(Dense(_POOL, self.parameters))
        if data.n <= self.n_copied:
            side = min(data.raster[:2])
            deformed = Augmentation(
                alpha=0, rotation=8, scale=0.15, shear=0, shift=max(1, side // 12),
                flip=0.5 if data.raster[2] == 3 and not data.is_glyphs else 0.0,
                border="reflect" if side > 16 else "zero",
            )  # fmt: skip
            copies = replace(copies, augmentation=deformed, words="deformed copies")
        yield copies
        cells = {"channels-1": {"pool": max(2, round(min(data.raster[:2]) / 8))}}
        parts = {_POOL: self.parameters, "gradient-cells": cells}
        parts["lbp"] = {"codes": "uniform", "grid": 2}
        yield replace(copies, features=Dense(_BOTH, parts))
