"""Checks of learners' parameters; each says what is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.errors.ranges import check_range
from visionshare.generators.checks import check_whole
from visionshare.learners.class_weights import check_class_weight
from visionshare.machine.resources import resolve_jobs

_NUMBER_LIMITS = (1e-30, 1e30)


def check_whole_numbers(owner: Any, least: int, *names: str, optional: bool = False) -> None:
    """Check that attributes are whole numbers of at least ``least``, or None where optional."""
    for name in names:
        check_whole(name, getattr(owner, name), least, optional=optional)


def check_numbers(
    owner: Any,
    *names: str,
    positive: bool = False,
    optional: bool = False,
    least: float = _NUMBER_LIMITS[0],
) -> None:
    """Check that attributes are finite numbers of at least 0, or above 0, or None."""
    # Beyond the limits a number is as good as 0 or infinity, and nothing is learned.
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
        check_range(name, float(value), least, _NUMBER_LIMITS[1])


def check_fraction(name: str, value: Any, *, zero: bool = False, one: bool = False) -> None:
    """Check that a value is a fraction between 0 and 1, of which each may be included."""
    inside = isinstance(value, Real) and 0 <= float(value) <= 1
    if not inside or (not zero and value == 0) or (not one and value == 1):
        interval = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise InputError(name, value, f"a fraction in {interval}")


def check_run(owner: Any, *, any_seed: bool = False) -> None:
    """Check what all learners have: threads, the seed and, of some, weights of classes."""
    # With ``any_seed`` the seed may be None.
    resolve_jobs(owner.n_jobs)
    check_whole("random_state", owner.random_state, 0, optional=any_seed)
    check_class_weight(getattr(owner, "class_weight", None))


def checked_options(name: str, value: Any) -> dict[str, Any]:
    """Return arguments by name, where they are a dict or None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(name, value, "a dict of arguments by their names, or None")
    return dict(value)


def check_flags(owner: Any, *names: str) -> None:
    """Check that attributes are True or False."""
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, (bool, np.bool_)):
            raise InputError(name, value, "True or False")
