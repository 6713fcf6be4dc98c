"""Small instances of sources, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from visionshare.generators.base import FeatureFamily
from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.sources.family import SourceClassifiers
from visionshare.generators.sources.scores import LinearSource
from visionshare.generators.stumps.family import Stumps

__all__ = ["EXAMPLES"]


def _source(family: FeatureFamily, name: str, n_features: int = 25, k: int = 4) -> LinearSource:
    """Return a predictor of random weights: sources come fitted, so their images are made up."""
    rng = np.random.default_rng(7)
    fitted = family.fit(rng.integers(0, 256, (60, 8, 8), np.uint8))
    chosen = fitted.take(rng.permutation(fitted.n_features_)[:n_features])
    weights = rng.normal(size=(k, chosen.n_features_)).astype(np.float32)
    classes = [f"class {c}" for c in range(k)]
    return LinearSource(chosen, weights, rng.normal(size=k).astype(np.float32), name, classes)


def _patches_and_stumps() -> SourceClassifiers:
    patches = _source(PatchTemplates(3, 10, 2, (2.0,), n_patches=2000), "patches")
    return SourceClassifiers([patches, _source(Stumps(3), "stumps")])


EXAMPLES: dict[str, Callable[[], SourceClassifiers]] = {"sources": _patches_and_stumps}
