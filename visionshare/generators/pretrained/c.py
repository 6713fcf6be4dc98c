"""Pretrained networks in C: there is no such form."""

from __future__ import annotations

from typing import Any

from visionshare.errors import InputError


def emit(family: Any, writer: Any) -> Any:
    """Raise an InputError that says what to do."""
    accepted = "features that C computes: learn a small classifier from this one's probabilities, "
    accepted += "`visionshare train FOLDER --teacher FILE --out small`"
    raise InputError("family", family.name, accepted)
