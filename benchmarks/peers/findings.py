"""What a comparison shows: which peers are better than one of ours, in error and in a cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.peers.plot import OURS, PANELS, TIMED, Point, points
from benchmarks.peers.record import Entry
from scripts.reproduce.results import render

__all__ = ["Better", "better_peers", "findings", "most_accurate_peers"]

# The panels of which a page says who is better, as its sentences name them.
_COSTS = {
    "multiply-accumulates per image": "multiply-accumulates",
    TIMED: "µs of one image",
}


class Better(NamedTuple):
    """One of ours, and the peers whose error and cost are both lower."""

    name: str
    peers: list[str]


def _parted(entries: Sequence[Entry], panel: str, n_test: int) -> tuple[list[Point], list[Point]]:
    """Return the points of ours, in Python and in C, and those of all peers."""
    groups = points(entries, PANELS[panel], n_test)
    ours = [p for group, found in groups.items() if group.startswith(OURS) for p in found]
    return ours, [p for group, found in groups.items() if not group.startswith(OURS) for p in found]


def better_peers(entries: Sequence[Entry], panel: str, n_test: int) -> list[Better]:
    """Return those of ours that a peer is better than in error and in the cost of a panel.

    Microseconds are compared where both were measured on one processor.

    Parameters
    ----------
    entries : sequence of Entry
    panel : str
        A key of :data:`benchmarks.peers.plot.PANELS`.
    n_test : int
        Number of test images.
    """
    processors = dict.fromkeys(entry.timed_on for entry in entries)
    parts = (
        [[entry for entry in entries if entry.timed_on == name] for name in processors]
        if panel == TIMED
        else [entries]
    )
    found = []
    for part in parts:
        ours, peers = _parted(part, panel, n_test)
        for one in ours:
            names = [p.name for p in peers if p.error < one.error and p.cost < one.cost]
            if names:
                found.append(Better(one.name, names))
    return found


def most_accurate_peers(entries: Sequence[Entry], n_test: int) -> list[str]:
    """Return the peers of lower error than every one of ours, the lowest first."""

    def error(entry: Entry) -> float:
        return sum(run.errors for run in entry.runs.values()) / len(entry.runs)

    least = min((error(e) for e in entries if e.name.startswith(OURS)), default=-1.0)
    below = [e for e in entries if not e.name.startswith(OURS) and error(e) < least]
    return [e.name for e in sorted(below, key=error)]


def _short(name: str) -> str:
    """Return a name in quotes, without what all names of a page have."""
    return f"`{name.removeprefix(f'{OURS}, ').removesuffix(', deformed')}`"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_short, names))


def findings(entries: Sequence[Entry], n_test: int) -> str:
    """Return the sentences that a page begins with; empty where there are none of ours."""
    if not any(e.name.startswith(OURS) for e in entries):
        return ""
    sentences = []
    for panel, cost in _COSTS.items():
        better = better_peers(entries, panel, n_test)
        found = "; ".join(f"{_listed(one.peers)} than {_short(one.name)}" for one in better)
        sentences.append(
            render("peers/better", cost=cost, found=found)
            if better
            else render("peers/none-better", cost=cost)
        )
    best = most_accurate_peers(entries, n_test)
    sentences.append(
        render("peers/most-accurate", peers=_listed(best))
        if best
        else render("peers/none-more-accurate")
    )
    return "\n".join(sentences)
