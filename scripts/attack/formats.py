"""The formats that are damaged: a sample of each, and how it is read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from scripts.attack.arrays import write_idx
from visionshare.errors import VisionshareError

__all__ = ["FORMATS", "Format", "schedule"]

_ARCHIVES = Path(__file__).parents[2] / "tests" / "archives"


@dataclass(frozen=True)
class Format:
    """A kind of file or folder.

    Attributes
    ----------
    write : callable
        Writes a sample into a folder.
    read : callable
        Returns what the sample holds, as arrays; raises a typed error where it is damaged.
    weight : int, default 10
        How often it comes: less where reading takes longer.
    zeros : bool, default True
        Whether runs of zeros are found, as changed bits are.
    """

    write: Callable[[Path], None]
    read: Callable[[Path], list[np.ndarray]]
    weight: int = 10
    zeros: bool = True


def schedule() -> list[str]:
    """Return the names of the formats, each as often as its weight says, spread evenly."""
    spread = [
        ((place + 0.5) / kind.weight, name)
        for name, kind in FORMATS.items()
        for place in range(kind.weight)
    ]
    return [name for _, name in sorted(spread)]


_IMAGES = np.random.default_rng(0).integers(0, 256, (40, 6, 6), np.uint8)


@cache
def _family() -> Any:
    from visionshare import PatchTemplates

    return PatchTemplates(3, 6, 2, (2.0,), n_patches=200).fit(_IMAGES)


def _write_classifier(folder: Path) -> None:
    from visionshare import ShareBoost
    from visionshare.columns import ArrayColumns

    family = _family()
    y = np.arange(40) % 3
    model = ShareBoost(rounds=4).fit(ArrayColumns.from_family(family, _IMAGES), y)
    model.to_classifier(family).save(folder / "a.safetensors")


def _read_classifier(folder: Path) -> list[np.ndarray]:
    import visionshare

    model = visionshare.load(folder / "a.safetensors")
    return [model.decision_function(_IMAGES), model.classes_, *(s.weights for s in model.path)]


def _write_classifier_v1(folder: Path) -> None:
    shutil.copy2(_ARCHIVES / "prepared-v1.safetensors", folder / "a.safetensors")


def _read_classifier_v1(folder: Path) -> list[np.ndarray]:
    import visionshare

    model = visionshare.load(folder / "a.safetensors")
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8), np.uint8)
    about = np.array([repr(model.exit_rule), repr(model.preprocessing), repr(model.metadata)])
    return [model.decision_function(images), model.classes_, about]


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
    write_idx(folder / "a-idx3-ubyte.gz", _IMAGES)


def _read_idx(folder: Path) -> list[np.ndarray]:
    from visionshare.datasets.readers.idx import read_idx

    return [read_idx(folder / "a-idx3-ubyte.gz")]


def _write_catalog(folder: Path) -> None:
    write_idx(folder / "images.idx", _IMAGES)
    write_idx(folder / "labels.idx", np.arange(40, dtype=np.uint8) % 3)
    known = folder.parent / f"{folder.name}-known"
    known.mkdir()
    (known / "made.toml").write_text(_entry(folder))


def _read_catalog(folder: Path) -> list[np.ndarray]:
    from visionshare.datasets import load_dataset

    known = folder.parent / f"{folder.name}-known"
    made = load_dataset("made", "train", folder, catalog=known)
    return [made.images, made.labels]


def _entry(data: Path) -> str:
    """Return the catalog entry of two IDX files; it is not attacked itself."""
    files = "".join(
        f'[[files]]\npath = "{path.name}"\nsha256 = "{sha256(path.read_bytes()).hexdigest()}"\n'
        for path in sorted(data.iterdir())
    )
    about = 'name = "made"\ntitle = "made"\nkind = "idx"\nlicense = "none"\ncitation = ""\n'
    split = '[splits.train]\nimages = "images.idx"\nlabels = "labels.idx"\nshape = [40, 6, 6]\n'
    return about + 'classes = ["a", "b", "c"]\n' + files + split


def _write_npz(folder: Path) -> None:
    np.savez_compressed(folder / "a.npz", images=_IMAGES, labels=np.arange(40) % 3)


def _read_npz(folder: Path) -> list[np.ndarray]:
    from visionshare.datasets import load_images

    made = load_images(folder / "a.npz")
    return [made.images, made.labels, np.array(made.classes)]


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
    from visionshare.batch import extract_features

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
    from visionshare.batch import extract_features
    from visionshare.store import open_store

    paths = _pictures(folder)
    family = _family()
    with tempfile.TemporaryDirectory() as made:
        target = shutil.copytree(folder / "a.store", Path(made) / "a.store")
        extract_features(family, paths, target)
        names = np.array((target / "images.txt").read_text().splitlines())
        return [open_store(target, family).take(), names]


def _write_extraction(folder: Path) -> None:
    from visionshare.batch import extract_features

    extract_features(_family(), _pictures(folder), folder / "a.store")


def _read_extraction(folder: Path) -> list[np.ndarray]:
    from visionshare.batch import extract_features

    # The command reads the lists of images too.
    extraction = extract_features(_family(), _pictures(folder), folder / "a.store")
    from visionshare.store import open_store

    names = np.array((folder / "a.store" / "images.txt").read_text().splitlines())
    columns = open_store(folder / "a.store", _family())
    return [columns.take(), names, np.array(extraction.broken, str)]


FORMATS: dict[str, Format] = {
    "classifier": Format(_write_classifier, _read_classifier),
    "classifier-v1": Format(_write_classifier_v1, _read_classifier_v1),
    "family": Format(_write_family, _read_family),
    "store": Format(_write_store, _read_store),
    "store-verify": Format(_write_store, _verify_store),
    # The checksum of version 1 is zero for a column of zeros: version 2 has a digest.
    "checkpoint": Format(_write_checkpoint, _read_checkpoint),
    "idx-gz": Format(_write_idx, _read_idx),
    "catalog": Format(_write_catalog, _read_catalog),
    "npz": Format(_write_npz, _read_npz),
    "parts": Format(_write_parts, _read_parts, 2),
    "extraction": Format(_write_extraction, _read_extraction, 2),
}
