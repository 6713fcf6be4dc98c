"""Feature learning for fast image classifiers: few shared features, found by greedy search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier, load
    from visionshare.generators.anchors import KernelAnchors
    from visionshare.generators.deslanted import Deslanted
    from visionshare.generators.fourier import RandomFourier
    from visionshare.generators.gabor import GaborBank
    from visionshare.generators.monomials import Monomials
    from visionshare.generators.patches import PatchTemplates
    from visionshare.generators.pixels import Pixels
    from visionshare.generators.products import Products
    from visionshare.generators.sources import SourceClassifiers
    from visionshare.generators.stumps import Stumps
    from visionshare.generators.union import UnionOfFamilies
    from visionshare.learners.fine_tuning import FineTuning, fine_tune
    from visionshare.learners.forward_greedy import (
        ForwardGreedyClassifier,
        ForwardGreedyRegressor,
    )
    from visionshare.learners.greedytl import GreedyTL
    from visionshare.learners.group_features import GroupFeatureClassifier, GroupFeatureRegressor
    from visionshare.learners.jointboost import JointBoost
    from visionshare.learners.mixed_norm import MixedNormClassifier
    from visionshare.learners.one_against_rest import OneAgainstRest
    from visionshare.learners.shareboost import ShareBoost
    from visionshare.learners.structural_boosting import (
        StructuralBoostingClassifier,
        StructuralBoostingRegressor,
    )

__version__ = "0.1.0"
__all__ = [
    "CompactClassifier",
    "Deslanted",
    "FineTuning",
    "ForwardGreedyClassifier",
    "ForwardGreedyRegressor",
    "GaborBank",
    "GreedyTL",
    "GroupFeatureClassifier",
    "GroupFeatureRegressor",
    "JointBoost",
    "KernelAnchors",
    "MixedNormClassifier",
    "Monomials",
    "OneAgainstRest",
    "PatchTemplates",
    "Pixels",
    "Products",
    "RandomFourier",
    "ShareBoost",
    "SourceClassifiers",
    "StructuralBoostingClassifier",
    "StructuralBoostingRegressor",
    "Stumps",
    "UnionOfFamilies",
    "__version__",
    "fine_tune",
    "load",
]

_HOMES = {
    "CompactClassifier": "visionshare.classifier",
    "FineTuning": "visionshare.learners.fine_tuning",
    "ForwardGreedyClassifier": "visionshare.learners.forward_greedy",
    "ForwardGreedyRegressor": "visionshare.learners.forward_greedy",
    "GaborBank": "visionshare.generators.gabor.family",
    "GreedyTL": "visionshare.learners.greedytl",
    "GroupFeatureClassifier": "visionshare.learners.group_features",
    "GroupFeatureRegressor": "visionshare.learners.group_features",
    "JointBoost": "visionshare.learners.jointboost",
    "KernelAnchors": "visionshare.generators.anchors.family",
    "MixedNormClassifier": "visionshare.learners.mixed_norm",
    "Monomials": "visionshare.generators.monomials.family",
    "OneAgainstRest": "visionshare.learners.one_against_rest",
    "PatchTemplates": "visionshare.generators.patches.family",
    "Pixels": "visionshare.generators.pixels.family",
    "Products": "visionshare.generators.products.family",
    "RandomFourier": "visionshare.generators.fourier.family",
    "ShareBoost": "visionshare.learners.shareboost",
    "SourceClassifiers": "visionshare.generators.sources.family",
    "Deslanted": "visionshare.generators.deslanted.family",
    "StructuralBoostingClassifier": "visionshare.learners.structural_boosting",
    "StructuralBoostingRegressor": "visionshare.learners.structural_boosting",
    "Stumps": "visionshare.generators.stumps.family",
    "UnionOfFamilies": "visionshare.generators.union.family",
    "fine_tune": "visionshare.learners.fine_tuning",
    "load": "visionshare.classifier",
}


def __getattr__(name: str) -> Any:
    # Rooms are imported when first used: `import visionshare` alone takes milliseconds.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'visionshare' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
