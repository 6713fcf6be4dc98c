"""Checks of learners' parameters, beside those of families; each says what is accepted."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import check_whole

__all__ = ["check_flags", "check_fraction", "check_numbers", "check_whole_numbers"]


def check_whole_numbers(owner: Any, least: int, *names: str, optional: bool = False) -> None:
    """Check that attributes are whole numbers of at least ``least``, or None where optional."""
    for name in names:
        check_whole(name, getattr(owner, name), least, optional=optional)


def check_numbers(owner: Any, *names: str, positive: bool = False, optional: bool = False) -> None:
    """Check that attributes are finite numbers of at least 0, or above 0, or None."""
    for name in names:
        value = getattr(owner, name)
        if optional and value is None:
            continue
        if (
            not isinstance(value, Real)
            or not 0 <= float(value) < np.inf
            or (positive and not value)
        ):
            accepted = "a finite number above 0" if positive else "a finite number of at least 0"
            raise InputError(name, value, accepted + (", or None" if optional else ""))


def check_fraction(name: str, value: Any, *, zero: bool = False, one: bool = False) -> None:
    """Check that a value is a fraction between 0 and 1, of which each may be included."""
    inside = isinstance(value, Real) and 0 <= float(value) <= 1
    if not inside or (not zero and value == 0) or (not one and value == 1):
        interval = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise InputError(name, value, f"a fraction in {interval}")


def check_flags(owner: Any, *names: str) -> None:
    """Check that attributes are True or False."""
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, (bool, np.bool_)):
            raise InputError(name, value, "True or False")
