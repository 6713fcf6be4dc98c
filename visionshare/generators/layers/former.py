"""Files of former versions: other names, and networks as families inside families.

``units(straightened(maps(patches)))`` becomes ``[deslant, templates, templates, units]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.inputs import raster_shape
from visionshare.generators.layers.channels.layer import ChannelLayer
from visionshare.generators.layers.depthwise.layer import DepthwiseLayer
from visionshare.generators.layers.deslant.layer import DeslantLayer
from visionshare.generators.layers.family.layer import FeatureLayer
from visionshare.generators.layers.layer import Fitted, Shape
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.registry import layer_class
from visionshare.generators.layers.states import float_array
from visionshare.generators.layers.templates.layer import TemplateLayer
from visionshare.generators.layers.units.layer import UnitLayer
from visionshare.generators.nested import check_depth
from visionshare.generators.registry import family_from_state
from visionshare.generators.states import (
    Arrays,
    State,
    StateAndArrays,
    arrays_below,
    check_image_shape,
)

#: Layers, and where the features are in the last one's output.
Layers = tuple[list[Fitted], np.ndarray]

_INTEGERS = {"deslant": "deslant-int", "cells": "templates-int", "units": "units-int"}
# Keys and values that have other names today.
_KEYS = {"centre": "center", "centres": "centers"}
_VALUES = {("family", "straightened"): "deslanted", ("fit", "centre"): "center"}


def current_header(header: State, arrays: Arrays, prefix: str = "") -> StateAndArrays:
    """Return a header of any version, and its arrays, as this version writes them.

    Parameters
    ----------
    header : mapping
        With a description of a family as "family".
    arrays : mapping of str to ndarray
        Of the whole file.
    prefix : str, default ""
        What names of the family's arrays begin with.

    Raises
    ------
    InputError
        If a former network does not fit together.
    """
    # Labels and metadata are users' own: their names stay.
    named = [name for name in ("family", "preprocessing") if name in header]
    renamed = {name: _renamed(header[name]) for name in named}
    family, own = _with_networks(renamed["family"], arrays_below(prefix, arrays))
    others = {name: array for name, array in arrays.items() if not name.startswith(prefix)}
    of_family = {f"{prefix}{name}": array for name, array in own.items()}
    return {**header, **renamed, "family": family}, {**others, **of_family}


def _renamed(value: Any) -> Any:
    """Return a part of a header with the names of today."""
    if isinstance(value, list):
        return [_renamed(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for key, inner in value.items():
        if isinstance(inner, str):
            inner = _VALUES.get((key, inner), inner)
        renamed[_KEYS.get(key, key)] = _renamed(inner)
    return renamed


def _with_networks(state: Any, arrays: Arrays) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a description, and its arrays, with lists of layers in place of nested families."""
    if not isinstance(state, Mapping):
        return state, dict(arrays)
    check_depth(state.get("parts", []))
    if _is_former(state):
        layers, places = _layers(state, arrays)
        network = Network.of(layers, places, check_image_shape(state.get("image_shape")))
        return network.to_state()
    parts = [
        _with_networks(part, arrays_below(f"{number}.", arrays))
        for number, part in enumerate(state.get("parts", ()))
    ]
    if not parts:
        return state, dict(arrays)
    named = {
        f"{number}.{name}": array
        for number, (_, own) in enumerate(parts)
        for name, array in own.items()
    }
    return {**state, "parts": [part for part, _ in parts]}, {**arrays, **named}


def _is_former(state: State) -> bool:
    """Return whether a description is of a family that is a network today."""
    if state.get("family") == "patches":
        parameters = state.get("parameters")
        return isinstance(parameters, Mapping) and parameters.get("masks") == "cells"
    return isinstance(state.get("family"), str) and state["family"] in FORMER


def _layers(state: State, arrays: Arrays) -> Layers:
    shape = raster_shape(check_image_shape(state.get("image_shape")))
    if _is_former(state):
        return FORMER[state["family"]](state, arrays, shape)
    family = family_from_state(*_with_networks(state, arrays))
    return [FeatureLayer(shape, family)], np.arange(family.n_features_)


def _part(state: State, arrays: Arrays) -> Layers:
    """Return the layers of the one family inside."""
    parts = state.get("parts")
    if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], Mapping):
        raise InputError("parts", type(parts).__name__, "a list of one family")
    return _layers(parts[0], arrays_below("0.", arrays))


def _parameters(state: State, *names: str) -> list[Any]:
    """Return parameters of a description: whole numbers from 0 to 65536."""
    given = state.get("parameters")
    values = [given.get(name) if isinstance(given, Mapping) else None for name in names]
    for name, value in zip(names, values, strict=True):
        if type(value) is not int or not 0 <= value <= 65536:
            raise InputError(name, value, "a whole number")
    return values


def _deslanted(state: State, arrays: Arrays, shape: Shape) -> Layers:
    layers, places = _part(state, arrays)
    return [DeslantLayer(shape), *layers], places


def _channels(state: State, arrays: Arrays, shape: Shape) -> Layers:
    layers, places = _part(state, arrays)
    parameters = state.get("parameters")
    if not isinstance(parameters, Mapping):
        raise InputError("parameters", type(parameters).__name__, "a table")
    return [ChannelLayer.from_state(parameters, {}, shape), *layers], places


def _maps(state: State, arrays: Arrays, shape: Shape) -> Layers:
    layers, places = _part(state, arrays)
    pool, padding = _parameters(state, "pool", "padding")
    return [_template_layer(arrays, "", shape, pool, padding), *layers], places


def _template_layer(
    arrays: Arrays, number: str, shape: Shape, pool: int, padding: int
) -> TemplateLayer:
    """Return templates whose maxima are taken in regular cells of pool × pool positions."""
    templates = float_array(arrays, f"templates{number}", 4)
    cells = []
    for side in shape[:2]:
        n_cells = (side + 2 * padding - templates.shape[1] + 1) // max(1, pool)
        cells.append(np.repeat(np.arange(max(0, n_cells)), pool).tolist())
    state = {"pads": [padding, padding], "row_cells": cells[0], "col_cells": cells[1]}
    own = {"templates": templates, "biases": float_array(arrays, f"biases{number}", 1)}
    return TemplateLayer.from_state(state, own, shape)


def _units(state: State, arrays: Arrays, shape: Shape) -> Layers:
    layers, places = _part(state, arrays)
    seen = layers[-1].out_shape
    given = float_array(arrays, "directions", 2)
    if given.shape[1] != len(places):
        raise InputError("directions", given.shape, f"shape (n, {len(places)})")
    directions = np.zeros((len(given), int(np.prod(seen))), np.float32)
    np.add.at(directions.T, places, given.T)
    parameters = state.get("parameters")
    activation = parameters.get("activation") if isinstance(parameters, Mapping) else None
    own = {"directions": directions, "offsets": float_array(arrays, "offsets", 1)}
    units = UnitLayer.from_state({"activation": activation}, own, seen)
    return [*layers, units], np.arange(len(given))


def _cells(state: State, arrays: Arrays, shape: Shape) -> Layers:
    """Return templates whose masks are ones in cells of a grid."""
    templates = float_array(arrays, "templates", 4)
    layout = arrays.get("layout")
    if layout is None or layout.dtype != np.int64 or layout.ndim != 2 or layout.shape[1] != 3:
        raise InputError("layout", None if layout is None else layout.shape, "int64 (n, 3)")
    size, padding = _parameters(state, "patch_size", "padding")
    pads = [max(padding, -(-(size - side) // 2)) for side in shape[:2]]
    cells: list[list[int]] = []
    numbers: list[np.ndarray] = []
    for name, column in (("row_masks", 1), ("col_masks", 2)):
        masks = float_array(arrays, name, 2)
        inside = (layout[:, column] >= 0).all() and (layout[:, column] < len(masks)).all()
        if not inside or not np.isin(masks, (0, 1)).all():
            raise InputError(name, masks.shape, "masks of ones, as many as the layout names")
        distinct, index = np.unique(-masks[layout[:, column]], axis=0, return_inverse=True)
        reached = distinct < 0
        if (reached.sum(axis=0) > 1).any() or not reached.any(axis=1).all():
            raise InputError(name, "overlapping masks", "cells")
        cell = np.where(reached.any(axis=0), reached.argmax(axis=0), -1)
        cells.append(cell.tolist())
        numbers.append(index.reshape(-1))
    if (layout[:, 0] < 0).any() or (layout[:, 0] >= len(templates)).any():
        raise InputError("layout", "numbers out of range", "templates that exist")
    biases = np.zeros(len(templates), np.float32)
    described = {"pads": pads, "row_cells": cells[0], "col_cells": cells[1]}
    own = {"templates": templates, "biases": biases}
    layer = TemplateLayer.from_state(described, own, shape)
    cell_numbers = numbers[0] * layer.out_shape[1] + numbers[1]
    return [layer], cell_numbers * len(templates) + layout[:, 0]


def _chains(state: State, arrays: Arrays, shape: Shape) -> Layers:
    """Return templates that each saw one map of the layer before."""
    parameters = state.get("parameters")
    pools = parameters.get("pools") if isinstance(parameters, Mapping) else None
    (grid,) = _parameters(state, "grid")
    listed = isinstance(pools, list) and len(pools) in (2, 3)
    if not listed or not all(type(pool) is int and 1 <= pool <= 64 for pool in pools or ()):
        raise InputError("pools", pools, "two or three whole numbers")
    assert pools is not None
    layers: list[Fitted] = [_template_layer(arrays, "1", shape, pools[0], 0)]
    for number, pool in enumerate(pools[1:], 2):
        seen = layers[-1].out_shape
        plain = _template_layer(arrays, str(number), (*seen[:2], 1), pool, 0)
        described = plain.to_state()
        if number == len(pools):
            described |= _grid_of(plain, grid)
        parents = arrays.get(f"parents{number}")
        if parents is None or parents.ndim != 1:
            raise InputError(f"parents{number}", None, "a vector of channels")
        described["sources"] = parents.tolist()
        layers.append(DepthwiseLayer.from_state(described, plain.arrays, seen))
    layout = arrays.get("layout")
    n_chains = layers[-1].out_shape[2]
    if layout is None or layout.ndim != 2 or layout.shape[1] != 2 or layout.dtype != np.int64:
        raise InputError("layout", None if layout is None else layout.shape, "int64 (n, 2)")
    if (layout < 0).any() or (layout >= [n_chains, grid**2]).any():
        raise InputError("layout", "numbers out of range", "chains and cells that exist")
    return layers, layout[:, 1] * n_chains + layout[:, 0]


def _grid_of(layer: TemplateLayer, grid: int) -> dict[str, list[int]]:
    """Return the cells of the last layer of chains: a grid over its pooled maps."""
    cells = {}
    for name in ("row_cells", "col_cells"):
        regular = getattr(layer, name)
        side = int(regular.max()) + 1
        bounds = -(-np.arange(grid + 1) * side // max(1, grid))
        cells[name] = (np.searchsorted(bounds, regular, "right") - 1).tolist()
    return cells


def _quantized(state: State, arrays: Arrays, shape: Shape) -> Layers:
    """Return layers of integers, which had other names."""
    states = state.get("layers")
    if not isinstance(states, list) or not 1 <= len(states) <= 16:
        raise InputError("layers", type(states).__name__, "a list of 1 to 16 layers")
    layers: list[Fitted] = []
    for number, own in enumerate(states):
        kind = own.get("kind") if isinstance(own, Mapping) else None
        if kind not in _INTEGERS:
            raise InputError("kind", kind, " or ".join(map(repr, _INTEGERS)))
        part = arrays_below(f"{number}.", arrays)
        layers.append(layer_class(_INTEGERS[kind], fitted=True).from_state(own, part, shape))
        shape = layers[-1].out_shape
    places = arrays.get("places")
    if places is None or places.ndim != 1 or places.dtype != np.int64:
        raise InputError("places", None if places is None else places.shape, "int64 (n,)")
    return layers, places


#: How each former family becomes layers.
FORMER: dict[str, Callable[[State, Arrays, Shape], Layers]] = {
    "chains": _chains,
    "channels": _channels,
    "deslanted": _deslanted,
    "maps": _maps,
    "patches": _cells,
    "quantized": _quantized,
    "units": _units,
}
