"""Feature families: candidate image features, described by parameters. One folder a family.

To add a family, make a folder with a class derived from
:class:`visionshare.generators.base.FeatureFamily`, and add one line to
:data:`visionshare.generators.registry.FAMILIES`.
"""

from visionshare.generators.base import FeatureFamily
from visionshare.generators.registry import (
    FAMILIES,
    family_class,
    family_from_state,
    family_names,
)

__all__ = [
    "FAMILIES",
    "FeatureFamily",
    "family_class",
    "family_from_state",
    "family_names",
]
