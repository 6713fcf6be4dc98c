"""Random Fourier features in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_inputs import input_tables
from visionshare.codegen.quantization import quantized

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.fourier.family import RandomFourier

__all__ = ["emit"]


def emit(family: RandomFourier, writer: Writer) -> Unit:
    """Return the unit of chosen cosines and sines; inputs that are always 0 are left out."""
    pairs, place = np.unique(family.ids_ // 2, return_inverse=True)
    used = np.flatnonzero(family.input_scale_)
    tables = input_tables(family.input_offset_, family.input_scale_, used, writer.bytes)
    tables["pair"], tables["part"] = place.reshape(-1), family.ids_ % 2
    frequencies, scales = family.frequencies_[pairs][:, used], ""
    name = writer.name("fourier")
    if writer.bits is not None:
        frequencies, scale = quantized(frequencies, writer.bits)
        tables["steps"] = scale.astype(np.float32)
        scales = f" * {name}_steps[$NAME$_pair[j]]".replace("$NAME$", name)
    # An input after the other: the loop over pairs is contiguous.
    tables["frequencies"] = frequencies.T
    words: dict[str, str | int] = {
        "features": family.n_features_,
        "inputs": len(used),
        "pairs": len(pairs),
        "step": scales,
    }
    sums = (f"{writer.prefix.upper()}_SUM", max(1, len(pairs)))
    work = {"phases": sums, "rests": sums}
    return writer.unit(__file__, name, tables, words, work, math=True)
