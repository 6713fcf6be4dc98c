"""Changed bytes and runs of zeros in every file that the library writes and reads again."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from scripts.attack.forked import Attempt, forked, in_child, judged, said
from scripts.attack.formats import FORMATS, Format, schedule
from scripts.attack.results import Ending
from visionshare.errors import VisionshareError

__all__ = ["flips"]

_SCHEDULE = schedule()


def flips(tries: range, seed: int) -> Iterator[Ending]:
    """Damage samples of every format, and read each: the same values or a typed error.

    Every other try changes one to four bits; the others write zeros over 1 to 4096 bytes.
    """
    with tempfile.TemporaryDirectory() as made:
        whole = Path(made) / "whole"
        work = Path(made) / "work"

        def write() -> None:
            for name, kind in FORMATS.items():
                (work / name).mkdir(parents=True)
                kind.write(work / name)
            shutil.copytree(work, whole)

        in_child(write)
        yield from forked(partial(_ready, whole, work, seed), tries, format_of)


def format_of(number: int) -> str:
    """Return the name of the format that a try damages: slow ones come less often."""
    return _SCHEDULE[number % len(_SCHEDULE)]


def _ready(whole: Path, work: Path, seed: int) -> Attempt:
    # A process that died left its damage.
    shutil.rmtree(work)
    shutil.copytree(whole, work)
    expected = {name: kind.read(work / name) for name, kind in FORMATS.items()}

    def attempt(number: int) -> Ending:
        name = format_of(number)
        rng = np.random.default_rng((seed, number))
        return _damaged(FORMATS[name], work / name, rng, expected[name])

    return attempt


def _damaged(
    kind: Format, sample: Path, rng: np.random.Generator, expected: list[np.ndarray]
) -> Ending:
    """Damage one file of a sample, read it, and put the file back."""
    files = sorted(path for path in sample.rglob("*") if path.is_file() and path.stat().st_size)
    target = files[int(rng.integers(len(files)))]
    whole = target.read_bytes()
    about = target.stat()
    content = bytearray(whole)
    position = int(rng.integers(len(content)))
    if rng.integers(2) or not kind.zeros:
        for _ in range(int(rng.integers(1, 5))):
            content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    else:
        stop = min(len(content), position + int(rng.integers(1, 4097)))
        content[position:stop] = bytes(stop - position)
    target.write_bytes(content)
    # Damage that keeps size and time.
    os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))
    try:
        values = kind.read(sample)
    except VisionshareError as error:
        return judged(error)
    except Exception as error:
        return Ending("crashed", f"{target.name}: {said(error)}")
    finally:
        target.write_bytes(whole)
        os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))
    same = len(values) == len(expected) and all(
        a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(values, expected, strict=True)
    )
    return Ending("survived") if same else Ending("silent", f"{target.name}: other values")
