"""Kinds of layers by name; a new kind adds a line here for floats, and one for integers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from visionshare.errors import InputError

_HERE = "visionshare.generators.layers"
#: Of each kind the module, and the names of the layer before and after it is fitted.
KINDS: dict[str, tuple[str, str, str]] = {
    "channels": ("channels.layer", "Channels", "ChannelLayer"),
    "depthwise": ("depthwise.layer", "Depthwise", "DepthwiseLayer"),
    "depthwise-int": ("depthwise.integers", "", "IntegerDepthwise"),
    "deslant": ("deslant.layer", "Deslant", "DeslantLayer"),
    "deslant-int": ("deslant.integers", "", "IntegerDeslant"),
    "family": ("family.layer", "Features", "FeatureLayer"),
    "means": ("means.layer", "Means", "MeanLayer"),
    "means-int": ("means.integers", "", "IntegerMeans"),
    "residual": ("residual.layer", "Residual", "ResidualLayer"),
    "residual-int": ("residual.integers", "", "IntegerResidual"),
    "templates": ("templates.layer", "Templates", "TemplateLayer"),
    "templates-int": ("templates.integers", "", "IntegerTemplates"),
    "units": ("units.layer", "Units", "UnitLayer"),
    "units-int": ("units.integers", "", "IntegerUnits"),
}


def layer_class(kind: Any, *, fitted: bool = False) -> Any:
    """Return the class of layers of a kind, before they are fitted or afterwards.

    Examples
    --------
    >>> layer_class("units").__name__, layer_class("units", fitted=True).__name__
    ('Units', 'UnitLayer')
    """
    known = [name for name, (_, unfitted, _) in KINDS.items() if fitted or unfitted]
    if not isinstance(kind, str) or kind not in known:
        raise InputError("kind", kind, " or ".join(map(repr, known)))
    module, unfitted, fitted_name = KINDS[kind]
    return getattr(import_module(f"{_HERE}.{module}"), fitted_name if fitted else unfitted)
