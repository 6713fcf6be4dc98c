"""Random Fourier features in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_inputs import input_tables
from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.fourier.family import RandomFourier


def emit(family: RandomFourier, writer: Writer) -> Unit:
    """Return the unit of chosen cosines and sines; inputs that are always 0 are omitted."""
    pairs, pair = np.unique(family.ids_ // 2, return_inverse=True)
    inputs = np.flatnonzero(family.input_scale_)
    tables = input_tables(family.input_offset_, family.input_scale_, inputs, writer.bytes)
    tables |= {"pair": pair.reshape(-1), "part": family.ids_ % 2}
    frequencies = family.frequencies_[pairs][:, inputs]
    if writer.bits is not None:
        frequencies, scales = quantize_rows(frequencies, writer.bits)
        tables["frequency_scales"] = scales.astype(np.float32)
    # One row per input: the loop over pairs is contiguous.
    tables["frequencies"] = frequencies.T
    values = {
        "n_features": family.n_features_, "n_inputs": len(inputs), "n_pairs": len(pairs)
    }  # fmt: skip
    sums = WorkArray(writer.sum_type, max(1, len(pairs)))
    work = {"phases": sums, "rests": sums}
    return writer.unit(__file__, "fourier", tables, values, work, math=True)
