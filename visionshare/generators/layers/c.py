"""Networks in C: one unit per layer, each hands its output to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.picked import picked

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.layer import LayerList


def emit(network: LayerList, writer: Writer) -> Unit:
    """Return the unit of the first layer; the other layers' units are added before it."""
    layers = network.layers_
    # Bytes stay bytes up to the first layer that computes with floats.
    floats = [any(not one.keeps_bytes for one in layers[:k]) for k in range(len(layers) + 1)]
    family = layers[-1].as_family(network.places_)
    if family is not None:
        if len(layers) == 1:
            return family.to_c(writer)
        with writer.seeing(floats[-2]):
            unit = writer.add(family)
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
