"""Monomials in C: products of features of another unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.monomials.family import Monomials

__all__ = ["emit"]


def emit(family: Monomials, writer: Writer) -> Unit:
    """Return the unit of monomials, after the unit of their factors."""
    base = writer.add(family.base_)
    sizes = [len(factors) for factors in family.factors_]
    tables = {
        "starts": np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
        "factors": np.concatenate([np.empty(0, np.int64), *family.factors_]),
    }
    values = {"n_features": family.n_features_, "base": base.name}
    work = {"values": WorkArray("float", max(1, family.base_.n_features_))}
    return writer.unit(__file__, "monomials", tables, values, work, (base,))
