"""Training that ends in a classifier which refuses pictures of no class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier, learn_unknown_rule
from visionshare.classifier.unknown import check_rate, checked_unknown_label
from visionshare.datasets import ImageSet
from visionshare.datasets.image_kinds import listed_images
from visionshare.errors import InputError
from visionshare.recipes.stages.refusal import calibrating_mask


@dataclass(frozen=True)
class RefusalSettings:
    """What share of known pictures may be refused, and what refused ones are called."""

    reject: float | None
    label: Any = None
    unknown: Any = None

    @staticmethod
    def of(reject: Any, label: Any, unknown: Any, classes: np.ndarray) -> RefusalSettings:
        """Return it, checked; nothing is refused where ``reject`` is None."""
        if reject is None:
            for name, value in (("unknown", unknown), ("unknown_label", label)):
                if value is not None:
                    raise InputError(name, value, "None without reject, such as reject=0.01")
            return RefusalSettings(None)
        check_rate("reject", reject)
        return RefusalSettings(reject, checked_unknown_label(label, classes), unknown)

    def split(self, images: ImageSet, given: Any, seed: int) -> tuple[ImageSet, Any, Any]:
        """Return images that train; and of those given, the ones that train and that calibrate."""
        if self.reject is None:
            return images, given, None
        calibrates = calibrating_mask(images, seed)
        listed = listed_images(given)

        def part(mask: np.ndarray) -> Any:
            rows = np.flatnonzero(mask)
            return (
                listed[rows] if isinstance(listed, np.ndarray) else [listed[int(i)] for i in rows]
            )

        return images.subset(np.flatnonzero(~calibrates)), part(~calibrates), part(calibrates)

    def added_to(
        self, classifier: CompactClassifier, images: Any, calibrating: Any, jobs: int
    ) -> CompactClassifier:
        """Return a classifier that refuses."""
        if self.reject is None:
            return classifier
        rule = learn_unknown_rule(
            classifier, images, calibrating,
            reject=self.reject, unknown=self.unknown, unknown_label=self.label, n_jobs=jobs,
        )  # fmt: skip
        return replace(classifier, unknown=rule)
