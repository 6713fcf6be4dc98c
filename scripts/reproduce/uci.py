"""UCI tables as arrays: inputs, targets, and the split where one is official."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

CLASSES = ("isolet", "landsat", "letter", "mfeat", "optdigits", "pendigits", "texture", "wine")
NUMBERS = ("ailerons", "housing")
_KEEL = ("letter", "optdigits", "texture")


# Inputs, targets, and which rows are the official training part.
Parts = tuple[np.ndarray, np.ndarray, np.ndarray | None]


class Table(NamedTuple):
    """Inputs (m, d) float64, targets (m,), and which rows are the official training part."""

    X: np.ndarray
    y: np.ndarray
    train: np.ndarray | None


def load(data: Path, name: str) -> Table:
    """Return a table of the data folder; ``name`` is one of CLASSES or NUMBERS.

    Classes are whole numbers from 0, in the order of their names in the file.
    """
    X, y, train = _READERS[name](data / "uci", name)
    if name in CLASSES:
        y = np.unique(y, return_inverse=True)[1].astype(np.int64)
    return Table(np.asarray(X, np.float64), y, train)


def standardized(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the inputs with mean 0 and variance 1 over the rows that train."""
    scale = X[train].std(axis=0)
    return (X - X[train].mean(axis=0)) / np.where(scale > 0, scale, 1)


def _cells(path: Path, separator: str | None = ",") -> np.ndarray:
    with gzip.open(path, "rt") as file:
        lines = (line.strip() for line in file)
        rows = [line.split(separator) for line in lines if line and line[0] not in "@%"]
    return np.array(rows)


def _last(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return cells[:, :-1].astype(np.float64), np.char.strip(cells[:, -1])


def _two_files(first: Path, second: Path, separator: str | None) -> Parts:
    parts = [_cells(path, separator) for path in (first, second)]
    train = np.arange(sum(map(len, parts))) < len(parts[0])
    return *_last(np.vstack(parts)), train


def _landsat(folder: Path, name: str) -> Parts:
    return _two_files(folder / "satimage" / "sat.trn.gz", folder / "satimage" / "sat.tst.gz", None)


def _pendigits(folder: Path, name: str) -> Parts:
    first, second = (folder / name / f"{name}.{part}.gz" for part in ("tra", "tes"))
    return _two_files(first, second, ",")


def _keel(folder: Path, name: str) -> Parts:
    return *_last(_cells(folder / "keel" / f"{name}.dat.gz")), None


def _numbers(folder: Path, name: str) -> Parts:
    file, separator = ("ailerons.arff.gz", ",") if name == "ailerons" else ("housing.data.gz", None)
    X, y = _last(_cells(folder / name / file, separator))
    return X, y.astype(np.float64), None


def _wine(folder: Path, name: str) -> Parts:
    cells = _cells(folder / "wine" / "wine.data.gz")
    return cells[:, 1:].astype(np.float64), cells[:, 0], None


def _isolet(folder: Path, name: str) -> Parts:
    from scipy.io import loadmat

    arrays = loadmat(folder / name / "isolet1.mat")
    return arrays["fea"], arrays["gnd"].ravel(), None


def _mfeat(folder: Path, name: str) -> Parts:
    from scipy.io import loadmat

    arrays = loadmat(folder / name / "Mfeat.mat")
    return (
        np.hstack([view.astype(float) for view in arrays["X"].ravel()]),
        arrays["y"].ravel(),
        None,
    )


_READERS: dict[str, Callable[[Path, str], Parts]] = {
    **dict.fromkeys(_KEEL, _keel),
    **dict.fromkeys(NUMBERS, _numbers),
    "landsat": _landsat,
    "pendigits": _pendigits,
    "wine": _wine,
    "isolet": _isolet,
    "mfeat": _mfeat,
}
