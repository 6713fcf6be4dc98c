"""The folder of a run: marked, so that a run replaces and removes only what runs made."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from visionshare.errors import InputError, VisionshareError
from visionshare.files.durable import is_partial, make_folder, remove_folder, write_text
from visionshare.recipes.schema import Recipe, as_settings
from visionshare.store.writer_lock import writer_lock

MARK = "run.json"
LOCK = "run.lock"
WORK = "work"
IDENTITY = "recipe.json"
MANIFEST = "pictures.json"
#: Which pictures trained and tested, and the classifier that was tested where another is written.
SPLIT = "split.json"
MEASURED = "measured.safetensors"
RESULTS = ("classifier.safetensors", "classifier.md", "metrics.json", "path.csv", "report.html")

_FORMAT = "visionshare-run"


@contextmanager
def run_folder(out: str | os.PathLike[str], recipe: Recipe) -> Iterator[Path]:
    """Make a folder a run's own while a block runs; nothing is touched where it is refused."""
    # A run takes a folder that does not exist, an empty one, or one that an earlier run marked.
    # Files that are neither results nor in ``work/`` stay as they are.
    folder = Path(out)
    check_run_folder(folder)
    is_new = not folder.exists()
    make_folder(folder)
    try:
        with writer_lock(folder, LOCK):
            # Another process may have come first.
            check_run_folder(folder)
            mark = {"format": _FORMAT, "pipeline": recipe.name, "recipe": as_settings(recipe)}
            write_text(folder / MARK, json.dumps(mark, indent=2) + "\n")
            yield folder
            remove_folder(folder / WORK)
    except VisionshareError:
        # Nothing was done in it.
        if is_new and {path.name for path in folder.iterdir()} <= {LOCK, MARK}:
            remove_folder(folder)
        raise


def check_run_folder(folder: Path) -> None:
    """Raise an error where a folder holds what no run made."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("out", str(folder), "a folder")
    names = [path.name for path in folder.iterdir() if not is_partial(path) and path.name != LOCK]
    if not names:
        return
    accepted = "a new or empty folder, or one of an earlier run; choose another"
    if not _is_marked(folder):
        other = min(set(names) - {*RESULTS, WORK}, default=min(names))
        why = f"it has {other!r} and was not created by visionshare"
        raise InputError("out", str(folder), f"{accepted} ({why})")
    work = folder / WORK
    if work.is_symlink() or (work.exists() and not _is_work(work)):
        raise InputError(
            "out", str(folder), f"{accepted} (its {WORK!r} was not created by visionshare)"
        )


def _is_marked(folder: Path) -> bool:
    try:
        mark = json.loads((folder / MARK).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(mark, dict) and mark.get("format") == _FORMAT


def _is_work(work: Path) -> bool:
    if not work.is_dir():
        return False
    return (work / IDENTITY).is_file() or all(is_partial(path) for path in work.iterdir())
