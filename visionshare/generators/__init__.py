"""Feature families: candidate image features, described by parameters.

To add a family, write one file with a class that has the methods of
:class:`visionshare.generators.base.FeatureFamily` and one line in :data:`FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily

__all__ = ["FAMILIES", "FeatureFamily", "family_class", "family_from_state"]

FAMILIES: dict[str, str] = {
    "anchors": "visionshare.generators.anchors:KernelAnchors",
    "fourier": "visionshare.generators.fourier:RandomFourier",
    "gabor": "visionshare.generators.gabor:GaborBank",
    "monomials": "visionshare.generators.monomials:Monomials",
    "patches": "visionshare.generators.patches:PatchTemplates",
    "pixels": "visionshare.generators.pixels:Pixels",
    "products": "visionshare.generators.products:Products",
    "sources": "visionshare.generators.sources:SourceClassifiers",
    "straightened": "visionshare.generators.straightened:Straightened",
    "stumps": "visionshare.generators.stumps:Stumps",
    "union": "visionshare.generators.union:UnionOfFamilies",
}


def family_class(name: str) -> Any:
    """Return the class of the family registered as ``name``.

    Raises
    ------
    InputError
        If no family has that name.

    Examples
    --------
    >>> family_class("pixels").__name__
    'Pixels'
    """
    if not isinstance(name, str) or name not in FAMILIES:
        raise InputError("family", name, " or ".join(map(repr, FAMILIES)))
    module, attribute = FAMILIES[name].split(":")
    return getattr(import_module(module), attribute)


def family_from_state(state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FeatureFamily:
    """Return the family that :meth:`FeatureFamily.to_state` described.

    Raises
    ------
    InputError
        If the description is of no known family or does not fit together.
    """
    family: FeatureFamily = family_class(state.get("family", "")).from_state(state, arrays)
    return family
