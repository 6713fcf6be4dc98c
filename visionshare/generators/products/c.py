"""Products of two inputs in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_inputs import input_tables
from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.products.family import Products


def emit(family: Products, writer: Writer) -> Unit:
    """Return the unit of chosen products and inputs."""
    inputs = np.unique(family.pairs_[family.pairs_ >= 0])
    # The value after the last input is the 1 that an input alone is multiplied with.
    pairs = np.where(family.pairs_ >= 0, np.searchsorted(inputs, family.pairs_), len(inputs))
    tables = input_tables(family.input_offset_, family.input_scale_, inputs, writer.bytes)
    values = {"n_features": family.n_features_, "n_inputs": len(inputs)}
    work = {"values": WorkArray("float", len(inputs) + 1)}
    return writer.unit(__file__, "products", {**tables, "pairs": pairs}, values, work)
