"""Spambase: inputs, classes and splits, the published one first."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

INPUTS = ("raw", "log(1 + x)")


def load(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, classes and the file of the published split (1 tests)."""
    folder = data / "uci" / "spambase"
    with gzip.open(folder / "spambase.data.gz", "rt") as file:
        rows = np.loadtxt(file, delimiter=",")
    with gzip.open(folder / "spam.traintest.gz", "rt") as file:
        part = np.loadtxt(file).astype(int).ravel()
    return rows[:, :-1], rows[:, -1].astype(int), part


def scaled(X: np.ndarray, train: np.ndarray, kind: str) -> np.ndarray:
    """Return all inputs, transformed, of mean 0 and variance 1 on the training rows."""
    X = np.log1p(X) if kind == INPUTS[1] else X
    return StandardScaler().fit(X[train]).transform(X).astype(np.float32)


def splits(part: np.ndarray, n: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return the published split and random ones of the same sizes, training rows mixed."""
    published = np.random.default_rng(0).permutation(np.flatnonzero(part == 0))
    parts = [("published", published, np.flatnonzero(part == 1))]
    for seed in range(n - 1):
        order = np.random.default_rng(seed).permutation(len(part))
        parts.append((f"seed {seed}", order[: len(published)], order[len(published) :]))
    return parts
