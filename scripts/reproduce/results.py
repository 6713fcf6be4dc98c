"""What the reproductions share: the data folder, tables and pages under docs/results."""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with what every reproduction takes."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--seeds", type=int, default=5, help="repetitions (default 5)")
    parser.add_argument("--jobs", type=int, default=1, help="threads (default 1)")
    parser.add_argument("--quick", action="store_true", help="a small part, to see it run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of page and pictures")
    return parser


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table; numbers are written as they are given."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return mean ± standard deviation, or the value where there is one."""
    import numpy as np

    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


@contextmanager
def stopwatch() -> Iterator[list[float]]:
    """Yield a list that holds the seconds of the block when it is left."""
    held: list[float] = []
    begun = time.perf_counter()
    yield held
    held.append(time.perf_counter() - begun)


def write_page(out: Path, name: str, title: str, parts: Sequence[str]) -> None:
    """Print the parts and write them as a page, with the machine they were measured on."""
    import numpy as np

    text = "\n\n".join([f"# {title}", *parts, _machine(np.__version__)]) + "\n"
    print(text)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text(text, encoding="utf-8")


def _machine(numpy_version: str) -> str:
    import os

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"Measured on {platform.machine()}, {cores} cores, Python {platform.python_version()}, "
        f"numpy {numpy_version}."
    )
