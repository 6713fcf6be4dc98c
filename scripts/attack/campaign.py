"""A campaign: many tries of some kinds, which goes on where it was stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.attack.kinds import Attack
from scripts.attack.results import Result
from visionshare.files.durable import write_text

__all__ = ["read_campaign", "run_campaign", "table"]

_EVERY = 5.0


def read_campaign(out: Path | None, seed: int) -> dict[str, Result]:
    """Return what a campaign that was stopped has counted; nothing where there was none.

    Raises
    ------
    ValueError
        If the file is of another seed, or no campaign's.
    """
    if out is None or not out.exists():
        return {}
    values = json.loads(out.read_text())
    if values.get("seed") != seed:
        raise ValueError(f"{out}: seed {values.get('seed')}; accepted: a file of seed {seed}")
    return {name: Result.from_values(kind) for name, kind in values["kinds"].items()}


def run_campaign(
    kinds: Mapping[str, Attack],
    n: int,
    seed: int,
    out: Path | None,
    said: Callable[[str], None],
    *,
    stop: bool = False,
) -> dict[str, Result]:
    """Make the tries of each kind that are not made yet, up to ``n`` of each.

    Parameters
    ----------
    kinds : mapping of str to callable
    n : int
        Tries of each kind, with those that were made before.
    seed : int
    out : Path or None
        File of counts, replaced every few seconds: what is not in it is tried again.
    said : callable
        Called with a line for each fault and for each kind.
    stop : bool, default False
        Whether a kind ends with its first fault.

    Returns
    -------
    dict of str to Result
        Of these kinds.
    """
    results = read_campaign(out, seed)

    def keep() -> None:
        if out is not None:
            kept = {name: result.to_values() for name, result in results.items()}
            write_text(out, json.dumps({"seed": seed, "kinds": kept}) + "\n")

    for name, attack in kinds.items():
        result = results.setdefault(name, Result())
        first = result.tries
        begun = time.monotonic()
        kept = begun
        try:
            for ending in attack(range(first, n), seed) if first < n else ():
                result.add(ending)
                if ending.fault:
                    said(f"{name} {result.tries - 1} {ending.part}: {ending.fault}")
                    if stop:
                        break
                if time.monotonic() - kept > _EVERY:
                    keep()
                    kept = time.monotonic()
        finally:
            keep()
        if made := result.tries - first:
            rate = made / (time.monotonic() - begun)
            said(f"{name}: {made} tries, {rate:.3g} tries/s")
    return {name: results[name] for name in kinds}


def table(results: Mapping[str, Result]) -> str:
    """Return a table of the counts, with a row for each part that was attacked."""
    names = list(Result().counts())
    rows = [["kind", *names, "operations hit", "most CPU s"]]
    for kind, result in results.items():
        rows.append([kind, *map(str, result.counts().values()), "", ""])
        for name, part in sorted(result.parts.items()):
            hit = f"{len(part.hit)} of {part.points}" if part.points else ""
            seconds = f"{part.seconds:.2f}" if part.seconds else ""
            rows.append([f"  {name}", str(part.tries), "", "", "", "", hit, seconds])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: list[str], widths: list[int]) -> str:
    cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
    return "  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip()
