"""Adult as inputs of a kernel machine: both files, one-hot categories, splits and scalings."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

NUMERIC = (0, 2, 4, 10, 11, 12)
INPUTS = ("numbers to variance 1", "all into [0, 1]")
TRAINING, DEVELOPMENT, FOLDS = 0.7, 0.15, 2


@dataclass
class Adult:
    """Adult's numbers, its categories one-hot (? is one of them), and the classes."""

    numbers: np.ndarray
    categories: np.ndarray
    y: np.ndarray

    def inputs(self, kind: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return offset and scale of the inputs, learned from some rows."""
        X = self.numbers[rows]
        if kind == INPUTS[0]:
            return X.mean(axis=0), X.std(axis=0)
        return X.min(axis=0), np.ptp(X, axis=0)

    def table(self, kind: str, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the inputs of some rows, scaled as the training rows say, float32."""
        offset, scale = self.inputs(kind, train)
        numbers = (self.numbers[rows] - offset) / np.where(scale > 0, scale, 1)
        return np.hstack([numbers, self.categories[rows]]).astype(np.float32)


def load(data: Path) -> Adult:
    """Return both files of Adult as one set."""
    rows = []
    for name in ("adult.data.gz", "adult.test.gz"):
        with gzip.open(data / "uci" / "adult" / name, "rt") as file:
            lines = ([cell.strip(" .\n") for cell in line.split(",")] for line in file)
            rows += [row for row in lines if len(row) == 15]
    cells = np.array(rows)
    others = [j for j in range(14) if j not in NUMERIC]
    one_hot = [cells[:, [j]] == np.unique(cells[:, j]) for j in others]
    numbers = cells[:, list(NUMERIC)].astype(np.float64)
    return Adult(
        numbers, np.hstack(one_hot).astype(np.float64), (cells[:, 14] == ">50K").astype(int)
    )


def sets_of(data: Adult, kind: str, train: np.ndarray, test: np.ndarray) -> Any:
    """Return training and test inputs and classes."""
    X, X_test = data.table(kind, train, train), data.table(kind, train, test)
    return X, data.y[train], X_test, data.y[test]


def folds_of(rows: np.ndarray, n: int = FOLDS) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and validation rows of each fold."""
    parts = np.array_split(rows, n)
    return [(np.concatenate(parts[:i] + parts[i + 1 :]), parts[i]) for i in range(n)]


def splits(m: int, n: int) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return development rows, which train in every split, and the splits' rows."""
    order = np.random.default_rng(1000).permutation(m)
    development, others = order[: int(DEVELOPMENT * m)], order[int(DEVELOPMENT * m) :]
    parts = []
    for seed in range(n):
        mixed = np.random.default_rng(seed).permutation(others)
        cut = int(TRAINING * m) - len(development)
        parts.append((np.concatenate([development, mixed[:cut]]), mixed[cut:]))
    return development, parts
