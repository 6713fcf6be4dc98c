"""Networks in C: one unit per layer, each hands its output to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.family.layer import FeatureLayer

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.network import Network

__all__ = ["emit", "picked"]


def picked(writer: Writer, places: np.ndarray | None, scale: np.float32, n: int = 0) -> Unit:
    """Return the unit of the values at some places of an image, or of all ``n`` values."""
    values = {"n_features": n if places is None else len(places), "unit": scale, "all": n != 0}
    tables = {} if places is None else {"inputs": places}
    return writer.unit(__file__, "picked", tables, values)


def emit(network: Network, writer: Writer) -> Unit:
    """Return the unit of the first layer; those of the others are added before it."""
    layers = network.layers_
    # Bytes stay bytes up to the first layer that computes with floats.
    floats = [any(not one.keeps_bytes for one in layers[:k]) for k in range(len(layers) + 1)]
    last = layers[-1]
    if isinstance(last, FeatureLayer):
        restricted = last.take(network.places_).layer
        assert isinstance(restricted, FeatureLayer)
        if len(layers) == 1:
            return restricted.family.to_c(writer)
        with writer.seeing(floats[-2]):
            unit = writer.add(restricted.family)
        layers = layers[:-1]
    else:
        with writer.seeing(floats[-1]):
            scale = np.float32(1 / 255 if writer.bytes else 1)
            unit = picked(writer, network.places_, scale)
        writer.units.append(unit)
    for number in range(len(layers) - 1, -1, -1):
        with writer.seeing(floats[number]):
            unit = layers[number].to_c(writer, unit)
        if number:
            writer.units.append(unit)
    return unit
