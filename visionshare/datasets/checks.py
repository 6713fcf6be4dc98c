"""Checks of settings, where they enter."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

from visionshare.errors import InputError


def check_number(
    name: str, value: Any, least: float, most: float | None = None, whole: bool = False
) -> None:
    """Refuse what is no number of a range."""
    is_number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not is_number or not least <= value or (most is not None and not value <= most):
        kind = "a whole number" if whole else "a number"
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(name, value, f"{kind} {limits}")


def check_choice(name: str, value: Any, known: Collection[Any]) -> None:
    """Refuse a value that is none of some known ones; texts of NumPy are texts."""
    if not any(value == one and isinstance(value, type(one)) for one in known):
        raise InputError(name, value, " or ".join(map(repr, known)))
