"""Products of two inputs in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_inputs import input_tables

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.products.family import Products

__all__ = ["emit"]


def emit(family: Products, writer: Writer) -> Unit:
    """Return the unit of chosen products and inputs."""
    used = np.unique(family.pairs_[family.pairs_ >= 0])
    # One place more holds the 1 that an input alone is multiplied with.
    pairs = np.where(family.pairs_ >= 0, np.searchsorted(used, family.pairs_), len(used))
    tables = input_tables(family.input_offset_, family.input_scale_, used, writer.bytes)
    words: dict[str, str | int] = {"features": family.n_features_, "inputs": len(used)}
    work = {"values": ("float", len(used) + 1)}
    name = writer.name("products")
    return writer.unit(__file__, name, {**tables, "pairs": pairs}, words, work)
