"""Times, counts and budgets, as users write them in options."""

from __future__ import annotations

import re

from visionshare.errors import InputError

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_TIMES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_BUDGETS = (
    "multiply-accumulates such as 200k, bytes such as 64KiB, microseconds such as 20us, flash of a "
    "small core such as flash=10KiB, or several with commas between"
)


def seconds_of(text: str, option: str) -> float:
    """Return the seconds of a time."""
    value = _value(text, _SECONDS)
    if value <= 0:
        raise InputError(option, text, "a time such as 90s, 30m or 2h")
    return value


def count_of(text: str, option: str) -> int:
    """Return a whole number from 1 on."""
    value = _value(text.replace("_", ""), _TIMES)
    if value < 1:
        raise InputError(option, text, "a number such as 400k or 1.5M")
    return int(value)


def budget_limits(text: str, option: str) -> dict[str, float]:
    """Return the limits of a budget by name, as ``ImageClassifier`` takes them."""
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, limit = _limit(part.strip())
        if limit <= 0 or name in limits:
            raise InputError(option, text, _BUDGETS)
        limits[name] = limit
    return limits


def _limit(text: str) -> tuple[str, float]:
    """Return the name of a limit, and its value: 0 where it is none."""
    from visionshare.machine.resources import parse_size

    if time := re.fullmatch(r"(.*?) ?[uµμ]s", text):
        return "microseconds", _value(time[1], {"": 1})
    name = "flash" if text.startswith("flash") else "bytes"
    if text.endswith("B"):
        try:
            return name, parse_size(re.sub(r"^flash ?= ?", "", text))
        except InputError:
            return name, 0
    return "macs", int(_value(text.replace("_", ""), _TIMES))


def _value(text: str, units: dict[str, int]) -> float:
    """Return a number with a unit: 0 where it is none."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?) ?([a-zA-Z]?)", text, flags=re.ASCII)
    return float(match[1]) * units.get(match[2], 0) if match else 0.0
