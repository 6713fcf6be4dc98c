"""Monomials in C: products of features of another unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.monomials.family import Monomials


def emit(family: Monomials, writer: Writer) -> Unit:
    """Return the unit of monomials, after the unit of their factors."""
    base = writer.add(family.base_)
    factors, starts = family._flat
    tables = {"starts": starts, "factors": factors}
    values = {"n_features": family.n_features_, "base": base.name}
    work = {"values": WorkArray("float", max(1, family.base_.n_features_))}
    return writer.unit(__file__, "monomials", tables, values, work, (base,))
