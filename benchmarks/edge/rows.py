"""Rows of the table: what a classifier takes on each core, and seeds that become one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.edge.contender import Contender
from benchmarks.edge.native import native_labels
from benchmarks.edge.prepared import behind_a_camera
from visionshare.export.targets import OPTIMIZATIONS, find_target, measure

__all__ = ["kept_and_new", "measured", "of_seeds"]

# Of several seeds the largest counts, as memory is planned by it; of the others the mean.
_LARGEST = ("flash", "ram", "stack", "most_instructions", "code", "constants", "work",
            "prepared_flash", "prepared_ram")  # fmt: skip
# Frames of a camera that are prepared and classified.
_FRAMES = 2


def measured(
    contender: Contender, targets: Sequence[str], optimize: str, count: int
) -> dict[str, Any]:
    """Return the figures of a contender: its error, and what it takes on each core.

    Raises
    ------
    RuntimeError
        If a core gives an image another label than this machine.
    """
    labels = native_labels(contender.sources, contender.images)
    chosen = np.linspace(0, len(labels) - 1, min(count, len(labels))).astype(np.int64)
    cores = {}
    first = replace(contender, images=contender.images[chosen[:_FRAMES]])
    framed = behind_a_camera(first)
    for name in targets:
        found = measure(contender.sources, find_target(name), contender.images[chosen], optimize)
        if not np.array_equal(found.labels, labels[chosen]):
            raise RuntimeError(f"{contender.name}: {name} and this machine differ")
        cores[name] = vars(found.figures)
        if framed is not None:
            seen = measure(framed.sources, find_target(name), framed.images, optimize)
            if not np.array_equal(seen.labels, native_labels(framed.sources, framed.images)):
                raise RuntimeError(f"{contender.name}, prepared: {name} and this machine differ")
            for figure in ("flash", "ram", "instructions"):
                cores[name][f"prepared_{figure}"] = getattr(seen.figures, figure)
    return {
        "name": contender.name, "optimize": OPTIMIZATIONS[optimize],
        "errors": [100 * float(np.mean(labels != contender.labels))], "images": len(labels),
        "macs": contender.macs, "seconds": contender.seconds, "memory": contender.memory,
        "cores": cores,
    }  # fmt: skip


def of_seeds(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for all rows of a name that were compiled alike, in the order of the first.

    Examples
    --------
    >>> row = {"name": "a", "optimize": "-Os", "images": 9, "macs": 4, "memory": 7, "seconds": 1.0}
    >>> first, second = ({**row, "errors": [error], "cores": {}} for error in (0.5, 0.4))
    >>> [made] = of_seeds([first, second])
    >>> made["errors"], made["seconds"]
    ([0.5, 0.4], 1.0)
    """
    alike: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        alike.setdefault((row["name"], row["optimize"]), []).append(row)
    return [_one(seeds) if len(seeds) > 1 else seeds[0] for seeds in alike.values()]


def _one(seeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = seeds[0]
    cores = {
        core: {
            name: value
            if value is None or isinstance(value, str)
            else (max if name in _LARGEST else _mean)([row["cores"][core][name] for row in seeds])
            for name, value in figures.items()
        }
        for core, figures in first["cores"].items()
    }
    seconds = [row["seconds"] for row in seeds if row["seconds"] is not None]
    memory = [row["memory"] for row in seeds if row["memory"] is not None]
    return {
        **first,
        "errors": [error for row in seeds for error in row["errors"]],
        "macs": None if first["macs"] is None else _mean([row["macs"] for row in seeds]),
        "seconds": sum(seconds) / len(seconds) if seconds else None,
        "memory": max(memory) if memory else None,
        "cores": cores,
    }


def _mean(values: Sequence[int]) -> int:
    return round(sum(values) / len(values))


def kept_and_new(
    kept: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]], *keys: str
) -> list[dict[str, Any]]:
    """Return entries of an earlier run that were not measured anew, in their places, and new ones.

    Examples
    --------
    >>> kept_and_new([{"name": "a", "x": 1}, {"name": "b"}], [{"name": "a", "x": 2}], "name")
    [{'name': 'a', 'x': 2}, {'name': 'b'}]
    """
    found = {tuple(entry[key] for key in keys): entry for entry in kept}
    found.update({tuple(entry[key] for key in keys): entry for entry in new})
    return list(found.values())
