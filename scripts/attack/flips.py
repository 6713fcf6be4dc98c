"""Changed bytes and runs of zeros in every file that the library writes and reads again."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scripts.attack.results import Kind, Result
from visionshare.errors import VisionshareError

__all__ = ["FORMATS", "flips"]

_MEMORY = 1 << 30
_SECONDS = 20
# Tries that one child process makes: a fork costs more than a try.
_BATCH = 200


@dataclass(frozen=True)
class Format:
    """A kind of file or folder.

    Attributes
    ----------
    write : callable
        Writes a sample into a folder.
    read : callable
        Returns what the sample holds, as arrays; raises a typed error where it is damaged.
    """

    write: Callable[[Path], None]
    read: Callable[[Path], list[np.ndarray]]


def flips(n: int, seed: int) -> Result:
    """Damage samples of every format ``n`` times, and read each: the same values or a typed error.

    Every other try changes one to four bits; the others write zeros over 1 to 4096 bytes.
    """
    result = Result()
    with tempfile.TemporaryDirectory() as made:
        for number, (name, kind) in enumerate(FORMATS.items()):
            sample = Path(made) / name
            sample.mkdir()
            _fork(partial(kind.write, sample))
            tries = range(number, n, len(FORMATS))
            for ended, fault in _tried(kind, sample, seed, tries):
                result.add(ended, f"{name}, {fault}" if fault else "")
    return result


def _tried(kind: Format, sample: Path, seed: int, tries: range) -> Iterator[tuple[Kind, str]]:
    """Yield how each try ended; a child process makes many, until one ends it."""
    position = 0
    while position < len(tries):
        batch = tries[position : position + _BATCH]
        endings, status = _in_child(kind, sample, seed, batch)
        yield from endings
        position += len(endings)
        if len(endings) < len(batch):
            position += 1
            yield "crashed", f"try {batch[len(endings)]}: the process ended with {status}"


def _fork(work: Callable[[], object]) -> int:
    """Return the exit code of a child process that does some work.

    This process itself runs nothing that has threads: they do not survive a fork.
    """
    child = os.fork()
    if child == 0:
        status = 70
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _in_child(
    kind: Format, sample: Path, seed: int, tries: range
) -> tuple[list[tuple[Kind, str]], int]:
    """Return how tries ended in a child process, and its exit code."""
    with tempfile.TemporaryFile("w+") as answers:

        def work() -> None:
            # What is damaged is warned of.
            logging.disable()
            expected = kind.read(sample)
            with open(f"/proc/{os.getpid()}/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
            for number in tries:
                signal.alarm(_SECONDS)
                rng = np.random.default_rng((seed, number))
                ended, fault = _damaged(kind, sample, rng, expected)
                said = " ".join(f"try {number}: {fault}".split())[:200] if fault else ""
                answers.write(f"{ended}\t{said}\n")
                answers.flush()

        before = {path: path.read_bytes() for path in sample.rglob("*") if path.is_file()}
        status = _fork(work)
        for path, content in before.items():
            # A process that died left the damage.
            if path.read_bytes() != content:
                path.write_bytes(content)
        answers.seek(0)
        rows = [row.rstrip("\n").split("\t") for row in answers if row.endswith("\n")]
    return [(ended, fault) for ended, fault in rows], status  # type: ignore[misc]


def _damaged(
    kind: Format, sample: Path, rng: np.random.Generator, expected: list[np.ndarray]
) -> tuple[Kind, str]:
    """Damage one file of a sample, read it, and put the file back."""
    files = sorted(path for path in sample.rglob("*") if path.is_file() and path.stat().st_size)
    target = files[int(rng.integers(len(files)))]
    whole, about = target.read_bytes(), target.stat()
    content = bytearray(whole)
    position = int(rng.integers(len(content)))
    if rng.integers(2):
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
    except VisionshareError:
        return "survived", ""
    except Exception as error:
        return "crashed", f"{target.name}: {type(error).__name__}: {error}"
    finally:
        target.write_bytes(whole)
        os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))
    same = len(values) == len(expected) and all(
        a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(values, expected, strict=True)
    )
    return ("survived", "") if same else ("silent", f"{target.name}: other values at {position}")


_IMAGES = np.random.default_rng(0).integers(0, 256, (40, 6, 6), np.uint8)


def _family() -> Any:
    from visionshare import PatchTemplates

    return PatchTemplates(3, 6, 2, (2.0,), n_patches=200).fit(_IMAGES)


def _write_classifier(folder: Path) -> None:
    from visionshare import ShareBoost
    from visionshare.columns import ArrayColumns

    family, y = _family(), np.arange(40) % 3
    model = ShareBoost(rounds=4).fit(ArrayColumns.from_family(family, _IMAGES), y)
    model.to_classifier(family).save(folder / "a.safetensors")


def _read_classifier(folder: Path) -> list[np.ndarray]:
    import visionshare

    model = visionshare.load(folder / "a.safetensors")
    return [model.decision_function(_IMAGES), model.classes_, *(s.weights for s in model.path)]


def _write_family(folder: Path) -> None:
    from visionshare.generators.family_file import write_family

    write_family(folder / "a.safetensors", _family())


def _read_family(folder: Path) -> list[np.ndarray]:
    from visionshare.generators.family_file import read_family

    return [read_family(folder / "a.safetensors").transform(_IMAGES)]


def _write_store(folder: Path) -> None:
    from visionshare.store import create_store

    columns = create_store(folder, _family(), _IMAGES)
    for start in (0, 12):
        columns.fill(np.arange(start, start + 12))


def _read_store(folder: Path) -> list[np.ndarray]:
    from visionshare.store import open_store

    columns = open_store(folder, _family(), _IMAGES)
    if len(columns.missing):
        raise VisionshareError("columns are missing")
    return [columns.take()]


def _verify_store(folder: Path) -> list[np.ndarray]:
    from visionshare.store import verify_store

    if problems := verify_store(folder):
        raise VisionshareError(str(problems))
    return _read_store(folder)


def _write_checkpoint(folder: Path) -> None:
    from visionshare import ShareBoost

    X = _IMAGES.reshape(40, -1).astype(np.float32)
    ShareBoost(rounds=3, checkpoint=folder / "rounds").fit(X, np.arange(40) % 3)


def _read_checkpoint(folder: Path) -> list[np.ndarray]:
    from visionshare import ShareBoost

    X = _IMAGES.reshape(40, -1).astype(np.float32)
    with tempfile.TemporaryDirectory() as made:
        # A run that resumes writes what is missing.
        shutil.copytree(folder / "rounds", Path(made) / "rounds")
        model = ShareBoost(rounds=3, checkpoint=Path(made) / "rounds").fit(X, np.arange(40) % 3)
    return [model.coef_, model.intercept_, model.support_]


def _write_idx(folder: Path) -> None:
    from visionshare.datasets.idx import write_idx

    write_idx(folder / "a-idx3-ubyte.gz", _IMAGES)


def _read_idx(folder: Path) -> list[np.ndarray]:
    from visionshare.datasets.idx import read_idx

    return [read_idx(folder / "a-idx3-ubyte.gz")]


def _pictures(folder: Path) -> list[str]:
    """Return picture files beside a sample, written once: they have no sums, and are not attacked.

    There are more than one part has.
    """
    import cv2

    pictures = folder.parent / f"{folder.name}-pictures"
    paths = [str(pictures / f"{number:03d}.png") for number in range(300)]
    if not pictures.exists():
        pictures.mkdir()
        for number, path in enumerate(paths):
            cv2.imwrite(path, np.roll(_IMAGES[number % 40], number // 40))
    return paths


def _write_parts(folder: Path) -> None:
    from visionshare.apps import extract_features

    paths = _pictures(folder)
    last = Path(paths[-1])
    whole = last.read_bytes()
    last.write_bytes(b"broken")
    try:
        # It stops at the last picture: the first part is committed.
        extract_features(_family(), paths, folder / "a.store")
    except VisionshareError:
        last.write_bytes(whole)


def _read_parts(folder: Path) -> list[np.ndarray]:
    from visionshare.apps import extract_features
    from visionshare.store import open_store

    paths, family = _pictures(folder), _family()
    with tempfile.TemporaryDirectory() as made:
        target = shutil.copytree(folder / "a.store", Path(made) / "a.store")
        extract_features(family, paths, target)
        names = np.array((target / "images.txt").read_text().splitlines())
        return [open_store(target, family).take(), names]


def _write_extraction(folder: Path) -> None:
    from visionshare.apps import extract_features

    extract_features(_family(), _pictures(folder), folder / "a.store")


def _read_extraction(folder: Path) -> list[np.ndarray]:
    from visionshare.apps import extract_features

    # The command reads the lists of images too.
    extraction = extract_features(_family(), _pictures(folder), folder / "a.store")
    from visionshare.store import open_store

    names = np.array((folder / "a.store" / "images.txt").read_text().splitlines())
    columns = open_store(folder / "a.store", _family())
    return [columns.take(), names, np.array(extraction.broken, str)]


FORMATS: dict[str, Format] = {
    "classifier": Format(_write_classifier, _read_classifier),
    "family": Format(_write_family, _read_family),
    "store": Format(_write_store, _read_store),
    "store-verify": Format(_write_store, _verify_store),
    "checkpoint": Format(_write_checkpoint, _read_checkpoint),
    "idx": Format(_write_idx, _read_idx),
    "parts": Format(_write_parts, _read_parts),
    "extraction": Format(_write_extraction, _read_extraction),
}
