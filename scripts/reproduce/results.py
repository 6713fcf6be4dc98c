"""What the reproductions share: the data folder, tables, pages and runs under docs/results.

The prose of a page is a Markdown template, ``pages/NAME.md.j2``, with names of figures and nothing
else: no conditions, no loops. Parts that repeat or may be missing are templates of their own,
``pages/NAME/PART.md.j2``; a script renders them and hands them over as figures. Trials and raw runs
are in the JSON beside a page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from visionshare.files.durable import write_text

PAGES = Path(__file__).parent / "pages"
RESULTS = Path(__file__).parents[2] / "docs" / "results"
# Of a table: what fits a page.
_MOST_COLUMNS = 6


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every reproduction takes; its help shows the whole description."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--seeds", type=int, default=5, help="repetitions (default 5)")
    parser.add_argument("--jobs", type=int, default=1, help="threads (default 1)")
    parser.add_argument(
        "--quick", action=_Quick, nargs=0, default=False, help="small parts, one seed"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of page and pictures")
    return parser


class _Quick(argparse.Action):
    """Sets one seed too, and the constants in the script's QUICK."""

    def __call__(self, parser: Any, options: argparse.Namespace, *_: Any) -> None:
        """Set both options and the constants, also where the script has them from or uses them."""
        options.quick = True
        options.seeds = 1
        script = sys.modules["__main__"]
        reproductions = [m for n, m in sys.modules.items() if n.startswith("scripts.reproduce.")]
        for name, value in getattr(script, "QUICK", {}).items():
            own = vars(script).get(name)
            for module in (script, *reproductions):
                if name in vars(module) and (own is None or vars(module)[name] is own):
                    setattr(module, name, value)


def pyplot() -> Any:
    """Return matplotlib's pyplot, which draws to files alone."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table; one of many columns and few rows has its columns as rows."""
    if len(header) > _MOST_COLUMNS > len(rows):
        header, *rows = zip(header, *rows, strict=True)
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def spread(values: Sequence[float] | np.ndarray, digits: int = 2) -> str:
    """Return mean ± standard deviation (of the sample: n - 1), or the value where there is one."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {deviation(values):.{digits}f}"


def deviation(values: Sequence[float] | np.ndarray) -> float:
    """Return the standard deviation of the sample; 0 of one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def listed(values: Iterable[float]) -> str:
    """Return numbers as text, in their shortest form."""
    return ", ".join(f"{value:g}" for value in values)


@contextmanager
def stopwatch(clock: Callable[[], float] = time.perf_counter) -> Iterator[list[float]]:
    """Yield a list that holds the seconds of the block, by a clock, when it is left."""
    seconds: list[float] = []
    begun = clock()
    yield seconds
    seconds.append(clock() - begun)


@cache
def templates() -> jinja2.Environment:
    """Return the templates of all pages; a figure that is missing is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )


def render(page: str, **figures: Any) -> str:
    """Return a page, or a part of one, with its figures; empty figures leave no blank lines."""
    text = templates().get_template(f"{page}.md.j2").render(figures)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def write_page(out: Path, page: str, file_name: str | None = None, /, **figures: Any) -> None:
    """Print and write a page, with machine, commit and command of its figures."""
    figures["machine"] = f"{machine()} Commit {commit()}: `{command()}`"
    text = render(page, **figures) + "\n"
    print(text)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{file_name or page}.md").write_text(text, encoding="utf-8")


def keep_runs(out: Path, page: str, runs: Any) -> None:
    """Write the raw runs behind a page as JSON, with the commit and the command that made them.

    Arrays become lists, records become objects; numbers keep six digits.
    """
    out.mkdir(parents=True, exist_ok=True)
    content = {"command": command(), "commit": commit(), "machine": machine(), "runs": plain(runs)}
    write_text(out / f"{page}.json", json.dumps(content, ensure_ascii=False) + "\n")


def kept_runs(out: Path, page: str) -> Any:
    """Return the raw runs behind a page; None where there are none."""
    file = out / f"{page}.json"
    return json.loads(file.read_text(encoding="utf-8"))["runs"] if file.is_file() else None


def plain(value: Any) -> Any:
    """Return a value as JSON has it; what JSON has no form for is written as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        # JSON has no nan and no infinity.
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def _key(key: Any) -> str:
    return " | ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def command() -> str:
    """Return the command of this process; where the data lie is no part of it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    module = "" if spec is None else spec.name.removesuffix(".__main__")
    words = ["python", "-m", module] if module else ["python", sys.argv[0]]
    words += sys.argv[1:]
    # Folders are those of a machine; a remark stands on the page.
    names = {"--data": "DIR", "--remark": "TEXT"}
    names |= dict.fromkeys(("--out", "--runs", "--checkpoint"), "FOLDER")
    names |= dict.fromkeys(("--trained", "--classifier"), "FILE")
    for option, name in names.items():
        if option in words[:-1]:
            words[words.index(option) + 1] = name
    return shlex.join(_without_root(word) for word in words)


def _without_root(word: str) -> str:
    """Return the last two parts of an absolute path below FOLDER; other words as they are."""
    path = Path(word)
    return str(Path("FOLDER", *path.parts[-2:])) if path.is_absolute() else word


@cache
def commit() -> str:
    """Return the commit of the code that runs, with "+" where files differ from it."""
    root = Path(__file__).parents[2]

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        code = ("visionshare", "scripts", "benchmarks")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", *code)
        return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    """Return what the figures were measured on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counted = "1 core" if cores == 1 else f"{cores} cores"
    return (
        f"Measured on {platform.machine()}, {counted}, Python {platform.python_version()}, "
        f"numpy {np.__version__}."
    )
