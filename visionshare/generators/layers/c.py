"""Networks in C: one unit per layer, each hands its output to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.family.layer import FeatureLayer

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.network import Network

__all__ = ["emit"]


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
            values = {"n_features": network.n_features_, "unit": scale}
            unit = writer.unit(__file__, "picked", {"inputs": network.places_}, values)
        writer.units.append(unit)
    for number in range(len(layers) - 1, -1, -1):
        with writer.seeing(floats[number]):
            unit = layers[number].to_c(writer, unit)
        if number:
            writer.units.append(unit)
    return unit
