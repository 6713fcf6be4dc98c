"""What is wrong with pictures, before they train: broken, copied, unequal; and how they look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from visionshare.datasets.notices import pages_sentence
from visionshare.datasets.pictures.bursts import bursts_note
from visionshare.datasets.pictures.preparation import Preparation, propose_preparation
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.pictures.survey import Headers, median_size, survey_pictures
from visionshare.datasets.readers.picture_set import PictureSet

# Of a contact sheet: pictures of a class, classes, and pixels of a picture's longer side, of a
# row's name, between pictures and of a line of text.
_PER_CLASS = 12
_CLASSES = 40
_TILE = 64
_NAME = 130
_GAP = 4
_LINE = 14
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
    survey: Headers
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
    roles = roles[read.numbers]
    # 1) pictures of each class
    table = np.zeros((len(pictures.classes), 3), np.int64)
    np.add.at(table, (labels, roles), 1)
    counts = [
        ClassCounts(name, *map(int, row)) for name, row in zip(pictures.classes, table, strict=True)
    ]
    # 2) equal pictures
    groups: dict[bytes, list[int]] = {}
    for position, digest in enumerate(read.digests):
        groups.setdefault(digest, []).append(position)
    copies = []
    leaked = []
    ambiguous = []
    for members in groups.values():
        names = tuple(read.names[i] for i in members)
        if len(members) > 1:
            copies.append(names)
        if len(set(roles[members].tolist())) > 1:
            leaked.append(names)
        if len(set(labels[members].tolist())) > 1:
            ambiguous.append(names)
    # 3) what else a user should know
    notes = list(pictures.notes)
    if read.left_out:
        notes.append(pages_sentence(read.left_out))
    if len(counts) < 2:
        notes.append("one class: a classifier needs two at least")
    few = [f"{entry.name} ({entry.train})" for entry in counts if entry.train < _FEW]
    if few:
        more = f" and {len(few) - _FEW} more" if len(few) > _FEW else ""
        notes.append(f"fewer than {_FEW} pictures to train on: {', '.join(few[:_FEW])}{more}")
    notes += bursts_note(read.images, labels, read.names)
    return PictureCheck(
        len(pictures), pictures.has_test, pictures.n_validation > 0, tuple(counts), survey, made,
        tuple(read.broken), tuple(copies), tuple(leaked), tuple(ambiguous), tuple(notes),
        read.images, labels,
    )  # fmt: skip


def describe_sizes(sizes: np.ndarray) -> str:
    """Return the sizes of pictures in words."""
    if len(sizes) == 0:
        return "none"
    low = sizes.min(axis=0)
    high = sizes.max(axis=0)
    if (low == high).all():
        return f"{low[0]}×{low[1]}"
    height, width = median_size(sizes)
    return f"{low[0]}×{low[1]} to {high[0]}×{high[1]} (median {height}×{width})"


def contact_sheet(images: np.ndarray, labels: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Return a sheet of some images of each class, a row for each."""
    from PIL import Image, ImageDraw

    shown = list(classes[:_CLASSES])
    height, width = images.shape[1:3]
    scale = _TILE / max(height, width)
    tile = max(1, round(scale * width)), max(1, round(scale * height))
    step = _TILE + _GAP
    sheet = Image.new("RGB", (_NAME + _PER_CLASS * step + _GAP, len(shown) * step + _GAP), "#888")
    draw = ImageDraw.Draw(sheet)
    for row, name in enumerate(shown):
        members = np.flatnonzero(labels == row)
        top = _GAP + row * step
        # The font of Pillow itself knows few letters.
        text = name.encode("ascii", "replace").decode()
        draw.text((_GAP, top), text[:20], fill="white")
        draw.text((_GAP, top + _LINE), f"{len(members)} pictures", fill="white")
        drawn = np.unique(np.linspace(0, len(members) - 1, _PER_CLASS).astype(int))
        for column, i in enumerate(members[drawn] if len(members) else []):
            # Small images grow in squares, so that their pixels show.
            method = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BOX
            picture = Image.fromarray(images[i]).convert("RGB").resize(tile, method)
            sheet.paste(picture, (_NAME + column * step, top))
    return np.asarray(sheet)
