"""The registry of feature families: a name, and where its class is.

A family of this library is one line of :data:`FAMILIES`. A family of another package is found by
an entry point of the group ``visionshare.families`` whose name is the family's::

    [project.entry-points."visionshare.families"]
    wavelets = "my_package.wavelets:Wavelets"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from visionshare.errors import InputError
from visionshare.errors.names import choices
from visionshare.generators.base import FeatureFamily
from visionshare.generators.states import Arrays, State

FAMILIES: dict[str, str] = {
    "anchors": "visionshare.generators.anchors.family:KernelAnchors",
    "fourier": "visionshare.generators.fourier.family:RandomFourier",
    "gabor": "visionshare.generators.gabor.family:GaborBank",
    "lbp": "visionshare.generators.lbp.family:LocalBinaryPatterns",
    "network": "visionshare.generators.layers.network:Network",
    "monomials": "visionshare.generators.monomials.family:Monomials",
    "patches": "visionshare.generators.patches.family:PatchTemplates",
    "pretrained": "visionshare.generators.pretrained.family:PretrainedNetwork",
    "pixels": "visionshare.generators.pixels.family:Pixels",
    "products": "visionshare.generators.products.family:Products",
    "sources": "visionshare.generators.sources.family:SourceClassifiers",
    "stumps": "visionshare.generators.stumps.family:Stumps",
    "union": "visionshare.generators.union.family:UnionOfFamilies",
}
_GROUP = "visionshare.families"


@cache
def _homes() -> dict[str, str]:
    """Return where the class of each family is; ours come before other packages' families."""
    others = {point.name: point.value for point in entry_points(group=_GROUP)}
    return {**others, **FAMILIES}


def family_names() -> list[str]:
    """Return the names of all families that are installed.

    Examples
    --------
    >>> "pixels" in family_names()
    True
    """
    return sorted(_homes())


def family_class(name: str) -> type[FeatureFamily]:
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
    homes = _homes()
    if not isinstance(name, str) or name not in homes:
        raise InputError("family", name, choices(name, sorted(homes)))
    return EntryPoint(name, homes[name], _GROUP).load()


def family_from_state(state: State, arrays: Arrays) -> FeatureFamily:
    """Return the family that :meth:`FeatureFamily.to_state` described.

    Raises
    ------
    InputError
        If the description is of no known family or does not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import Pixels
    >>> state, arrays = Pixels().fit(np.zeros((1, 2, 2))).to_state()
    >>> family_from_state(state, arrays).n_features_
    4
    """
    return family_class(state.get("family", "")).from_state(state, arrays)
