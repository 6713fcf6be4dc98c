"""Kinds of layers by name; a new kind adds a line here, and one to :mod:`.chain`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from visionshare.errors import InputError
from visionshare.generators.layers.layer import Fitted, Layer

__all__ = ["KINDS", "fitted_class", "layer_class"]

_HERE = "visionshare.generators.layers"
#: Of each kind the module, and the names of the layer before and after it is fitted.
KINDS: dict[str, tuple[str, str, str]] = {
    "channels": ("channels.layer", "Channels", "ChannelLayer"),
    "deslant-int": ("deslant.integers", "", "IntegerDeslant"),
    "templates-int": ("templates.integers", "", "IntegerTemplates"),
    "units-int": ("units.integers", "", "IntegerUnits"),
    "depthwise": ("depthwise.layer", "Depthwise", "DepthwiseLayer"),
    "deslant": ("deslant.layer", "Deslant", "DeslantLayer"),
    "family": ("family.layer", "Features", "FeatureLayer"),
    "templates": ("templates.layer", "Templates", "TemplateLayer"),
    "units": ("units.layer", "Units", "UnitLayer"),
}


def layer_class(kind: Any) -> type[Layer]:
    """Return the class of layers of a kind, before they are fitted."""
    found: type[Layer] = _named(kind, 1)
    return found


def fitted_class(kind: Any) -> type[Fitted]:
    """Return the class of fitted layers of a kind."""
    found: type[Fitted] = _named(kind, 2)
    return found


def _named(kind: Any, position: int) -> Any:
    if not isinstance(kind, str) or kind not in KINDS or not KINDS[kind][position]:
        raise InputError("kind", kind, " or ".join(map(repr, KINDS)))
    names = KINDS[kind]
    return getattr(import_module(f"{_HERE}.{names[0]}"), names[position])
