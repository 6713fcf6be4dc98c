"""Names: those that nobody knows, and those that would give orders to a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from itertools import islice
from pathlib import Path

# Names that a message suggests, or lists where none is near, at most.
_SUGGESTED = 2
_LISTED = 8
# A second name is suggested where it is about as near as the first.
_AS_NEAR = 0.1
# Characters of a name that are enough to suggest names that begin with them.
_BEGINNING = 3
# Characters of a name that a message repeats.
_REPEATED = 200
# Entries of a folder that are compared with a misspelled name.
_COMPARED = 5000
# What terminals obey: all control characters but tabs and ends of lines.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """Return a text of any number of lines with control characters as escapes."""
    # Names of classes and files come from strangers; a text with their escape sequences would
    # color, clear or retitle the terminal that shows it.
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message about an unknown name: the nearest names, or all of a few."""
    names = list(known)
    near = near_names(name, names)
    if near:
        return f". Did you mean {' or '.join(map(repr, near))}?"
    if 0 < len(names) <= _LISTED:
        return f". Known: {', '.join(names)}."
    return f". {otherwise}" if otherwise else "."


def nothing_named(
    name: str | os.PathLike[str], kind: str, known: Iterable[str] = (), otherwise: str = ""
) -> str:
    """Return the message of an error: there is no such path or name, and which is the nearest."""
    text = os.fspath(name)
    if os.path.islink(text):
        return f"{text!r} is a link that leads nowhere"
    near = did_you_mean(text, [*known, *near_paths(text)], otherwise)
    shown = text if len(text) <= _REPEATED else f"{text[:_REPEATED]}…"
    return f"no {kind} named {shown!r}{near}"


def choices(name: object, known: Iterable[str]) -> str:
    """Return what is accepted instead of a name, for an InputError."""
    names = list(known)
    near = near_names(name, names) if isinstance(name, str) else []
    accepted = " or ".join(map(repr, names))
    return f"{accepted} (did you mean {near[0]!r}?)" if near else accepted


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that begin with one, or are spelled nearly like it, in any case."""
    by_folded: dict[str, str] = {}
    for one in known:
        by_folded.setdefault(one.casefold(), one)
    given = name.casefold()[:_REPEATED]
    longer = [one for folded, one in by_folded.items() if folded.startswith(given)]
    if longer and len(given) >= _BEGINNING and given not in by_folded:
        return sorted(longer, key=len)[:_SUGGESTED]
    close = get_close_matches(given, by_folded, _SUGGESTED)
    ratios = [SequenceMatcher(None, near, given).ratio() for near in close]
    return [
        by_folded[near]
        for near, ratio in zip(close, ratios, strict=True)
        if ratio > ratios[0] - _AS_NEAR
    ]


def near_paths(path: str | os.PathLike[str]) -> list[str]:
    """Return existing paths that are spelled nearly like a missing one, the nearest first."""
    # Each name on the way that is missing is replaced by the nearest one of its folder.
    parts = Path(path).parts
    if not parts:
        return []
    *way, last = parts
    folder = Path()
    for name in way:
        if not os.path.isdir(folder / name):
            near = near_names(name, _entries(folder))
            if not near:
                return []
            name = near[0]
        folder /= name
    if os.path.lexists(folder / last):
        return [str(folder / last)]
    return [str(folder / name) for name in near_names(last, _entries(folder))]


def _entries(folder: Path) -> list[str]:
    """Return the names in a folder; none of one that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, _COMPARED)]
    except (OSError, ValueError):
        return []
