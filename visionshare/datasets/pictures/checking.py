"""What is wrong with pictures, before they train: broken, copied, unequal; and how they look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from visionshare.datasets.notices import pages_sentence
from visionshare.datasets.pictures.preparation import Preparation, propose_preparation
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.pictures.survey import Survey, median_size, survey_pictures
from visionshare.datasets.readers.picture_set import PictureSet

# Of a contact sheet: pictures of a class, classes, sides of a picture, width of a row's name.
_PER_CLASS, _CLASSES, _TILE, _NAME = 12, 40, 64, 130
_GAP, _LINE = 4, 14
# Classes of fewer training pictures are named: one or none of so few is kept aside to test.
_FEW = 10


@dataclass(frozen=True)
class ClassCounts:
    """A class and its numbers of pictures that train, test and validate."""

    name: str
    train: int
    test: int
    validation: int


@dataclass(frozen=True)
class PictureCheck:
    """What is known of pictures."""

    n: int
    has_test: bool
    has_validation: bool
    classes: tuple[ClassCounts, ...]
    survey: Survey
    preparation: Preparation
    broken: tuple[str, ...]
    copies: tuple[tuple[str, ...], ...]
    leaked: tuple[tuple[str, ...], ...]
    ambiguous: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    images: np.ndarray
    labels: np.ndarray

    @property
    def imbalance(self) -> float:
        """How many times as many training pictures the largest class has as the smallest."""
        counts = [entry.train for entry in self.classes]
        return max(counts) / max(1, min(counts))


def check_pictures(
    pictures: PictureSet,
    size: tuple[int, int] | None = None,
    color: bool | None = None,
    n_jobs: int = 1,
) -> PictureCheck:
    """Return what is known of pictures, each of which is read."""
    survey = survey_pictures(pictures, n_jobs)
    made = propose_preparation(pictures, size=size, color=color, sizes=survey.sizes)
    read = read_pictures(
        pictures, made.size, made.mode, made.preprocessing, skip_broken=True, n_jobs=n_jobs
    )
    labels = pictures.labels[read.numbers]
    roles = np.zeros(len(pictures), np.int64) if pictures.roles is None else pictures.roles
    kept = roles[read.numbers]
    groups: dict[bytes, list[int]] = {}
    for position, digest in enumerate(read.digests):
        groups.setdefault(digest, []).append(position)
    copies = [members for members in groups.values() if len(members) > 1]

    def named(chosen: Sequence[list[int]]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(read.names[i] for i in members) for members in chosen)

    counts = _counts(pictures.classes, labels, kept)
    return PictureCheck(
        len(pictures),
        pictures.has_test,
        pictures.n_validation > 0,
        counts,
        survey,
        made,
        tuple(read.broken),
        named(copies),
        named([m for m in copies if len(set(kept[m].tolist())) > 1]),
        named([m for m in copies if len(set(labels[m].tolist())) > 1]),
        (*pictures.notes, *filter(None, [pages_sentence(read.left_out)]), *_shortages(counts)),
        read.images,
        labels,
    )


def _counts(
    classes: Sequence[str], labels: np.ndarray, roles: np.ndarray
) -> tuple[ClassCounts, ...]:
    table = np.zeros((len(classes), 3), np.int64)
    np.add.at(table, (labels, roles), 1)
    return tuple(
        ClassCounts(name, *map(int, row)) for name, row in zip(classes, table, strict=True)
    )


def _shortages(counts: Sequence[ClassCounts]) -> list[str]:
    """Return what there is too little of, in sentences."""
    said = []
    if len(counts) < 2:
        said.append("one class: a classifier needs two at least")
    few = [f"{entry.name} ({entry.train})" for entry in counts if entry.train < _FEW]
    if few:
        more = f" and {len(few) - _FEW} more" if len(few) > _FEW else ""
        said.append(f"fewer than {_FEW} pictures to train on: {', '.join(few[:_FEW])}{more}")
    return said


def describe_sizes(sizes: np.ndarray) -> str:
    """Return the sizes of pictures in words."""
    if len(sizes) == 0:
        return "none"
    low, high = sizes.min(axis=0), sizes.max(axis=0)
    if (low == high).all():
        return f"{low[0]}×{low[1]}"
    height, width = median_size(sizes)
    return f"{low[0]}×{low[1]} to {high[0]}×{high[1]} (median {height}×{width})"


def contact_sheet(
    images: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
    per_class: int = _PER_CLASS,
    max_classes: int = _CLASSES,
) -> np.ndarray:
    """Return a sheet of some images of each class, a row for each."""
    from PIL import Image, ImageDraw

    shown = list(classes[:max_classes])
    height, width = images.shape[1:3]
    scale = _TILE / max(height, width)
    tile = max(1, round(scale * width)), max(1, round(scale * height))
    step = _TILE + _GAP
    sheet = Image.new("RGB", (_NAME + per_class * step + _GAP, len(shown) * step + _GAP), "#888")
    draw = ImageDraw.Draw(sheet)
    for row, name in enumerate(shown):
        members = np.flatnonzero(labels == row)
        top = _GAP + row * step
        # The font of Pillow itself knows few letters.
        text = name.encode("ascii", "replace").decode()
        draw.text((_GAP, top), text[:20], fill="white")
        draw.text((_GAP, top + _LINE), f"{len(members)} pictures", fill="white")
        drawn = np.unique(np.linspace(0, len(members) - 1, per_class).astype(int))
        for column, i in enumerate(members[drawn] if len(members) else []):
            # Small images grow in squares, so that their pixels show.
            method = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BOX
            picture = Image.fromarray(images[i]).convert("RGB").resize(tile, method)
            sheet.paste(picture, (_NAME + column * step, top))
    return np.asarray(sheet)
