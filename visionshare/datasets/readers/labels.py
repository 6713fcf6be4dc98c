"""Labels of pictures: their classes, and the parts (train, test, validation) that names mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from visionshare.class_labels import in_order, quoted
from visionshare.errors import DataError

#: What a picture is for, as its source says.
TRAIN = 0
TEST = 1
VALIDATION = 2
_MAX_CLASSES = 50_000
_ROLES = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "validation": ("val", "valid", "validation", "dev"),
}
_NUMBERS = {"train": TRAIN, None: TRAIN, "test": TEST, "validation": VALIDATION}
#: Words that stand for a role, in any case of letters.
ROLE_WORDS = tuple(word for words in _ROLES.values() for word in words)


@lru_cache(4096)
def role_of(name: str) -> str | None:
    """Return "train", "test" or "validation" where a name stands for it."""
    return next((role for role, words in _ROLES.items() if name.strip().lower() in words), None)


def roles_of(given: Sequence[str | None], source: str) -> np.ndarray | None:
    """Return what each picture is for, from the roles that a source names."""
    named = set(given)
    if not named & {"test", "validation"}:
        return None
    if not named & {"train", None}:
        raise DataError(f"{source}: pictures for {max(map(str, named))}, and none for training")
    return np.array([_NUMBERS[role] for role in given], np.int64)


def classes_of(
    names: Sequence[str], given: Sequence[str | None], source: str
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the classes of the pictures, in order, and the number of each picture's."""
    trained = {name for name, role in zip(names, given, strict=True) if role in ("train", None)}
    distinct = set(names)
    if len(distinct) > _MAX_CLASSES:
        raise DataError(
            f"{source}: {len(distinct)} different labels; accepted: at most {_MAX_CLASSES} classes"
        )
    classes = in_order(distinct)
    if unknown := [name for name in classes if name not in trained]:
        raise DataError(f"{source}: classes without a training picture: {quoted(unknown)}")
    number = {name: i for i, name in enumerate(classes)}
    return classes, np.array([number[name] for name in names], np.int64)


def label_names(labels: np.ndarray, source: str) -> list[str]:
    """Return labels of a file as names of classes: whole numbers or texts."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"{source}: labels of shape {labels.shape}")
    # "T" are texts of Zarr.
    if labels.dtype.kind not in "iuUSOT":
        raise DataError(f"{source}: labels of {labels.dtype} are neither whole numbers nor text")
    try:
        # A label of many images is decoded once, and kept once.
        values = labels.tolist()
        texts = {v: v.decode() if isinstance(v, bytes) else str(v) for v in set(values)}
    except (ValueError, TypeError, SystemError) as error:
        # Bytes that are no text, or numbers that are no characters.
        raise DataError(f"{source}: labels that are no text ({error})") from None
    return [texts[value] for value in values]
