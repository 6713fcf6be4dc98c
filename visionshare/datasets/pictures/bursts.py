"""Pictures that were taken one right after the other: they must not train and test."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import cv2
import numpy as np

_SIDE = 8
# Pictures of a burst are at least so much alike, and more than those of a class are by chance.
_ALIKE, _CHANCE = 0.9, 0.9
# Fewer neighbors than this part are no reason to speak of them.
_MANY, _FEWEST = 0.25, 5
_DRAWN = 2000


def bursts_note(images: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> list[str]:
    """Return what to say of pictures with numbered names whose neighbors are nearly the same."""
    # 1) Neighbors: the same name but for the last number, which follows.
    order = sorted(range(len(names)), key=lambda i: _numbered(names[i]))
    keys = [_numbered(names[i]) for i in order]
    pairs = [
        (order[i], order[i + 1])
        for i in range(len(order) - 1)
        if keys[i][0] == keys[i + 1][0] and 0 < keys[i + 1][1] - keys[i][1] <= 2
    ]
    if len(pairs) < _FEWEST:
        return []
    # 2) Correlations of coarse views: of neighbors, and of any two pictures of a class.
    views = np.stack([_view(image) for image in images])
    first, second = np.array(pairs).T
    rng = np.random.default_rng(0)
    one = rng.integers(0, len(images), _DRAWN)
    other = rng.integers(0, len(images), _DRAWN)
    same = (labels[one] == labels[other]) & (one != other)
    by_chance = (views[one[same]] * views[other[same]]).sum(axis=1)
    least = max(_ALIKE, float(np.quantile(by_chance, _CHANCE)) if same.any() else 0.0)
    alike = (views[first] * views[second]).sum(axis=1) > least
    if alike.sum() < max(_FEWEST, _MANY * len(pairs)):
        return []
    example = int(np.flatnonzero(alike)[0])
    shown = " and ".join(os.path.basename(names[i]) for i in (first[example], second[example]))
    return [
        f"bursts: {int(alike.sum())} of {len(pairs)} pictures look like the one before, such as "
        f"{shown}: an error on pictures of a burst that trains is too low; --groups keeps them "
        "together"
    ]


def _numbered(name: str) -> tuple[str, int]:
    """Return a name without its last number, and the number; -1 without one."""
    folder, file = os.path.split(name)
    found = re.match(r"(.*?)([0-9]{1,15})([^0-9]*)$", os.path.splitext(file)[0])
    if found is None:
        return name, -1
    return f"{folder}/{found[1]}#{found[3]}", int(found[2])


def _view(image: np.ndarray) -> np.ndarray:
    """Return a coarse view of an image without its mean, of length 1."""
    gray = image.reshape(*image.shape[:2], -1).mean(axis=2).astype(np.float32)
    small = cv2.resize(gray, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).ravel()
    small -= small.mean()
    return small / (np.linalg.norm(small) + 1e-6)
