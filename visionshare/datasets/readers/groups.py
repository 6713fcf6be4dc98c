"""Groups of pictures that must not stand on both sides of a split."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from visionshare.datasets.copies import group_numbers
from visionshare.datasets.readers.picture_set import PictureSet
from visionshare.datasets.readers.tables import table_column
from visionshare.errors import InputError


def picture_groups(
    source: str | os.PathLike[str], pictures: PictureSet, groups: str, argument: str = "data.groups"
) -> np.ndarray:
    """Return the number of each picture's group (n,).

    Parameters
    ----------
    source : path-like
        Where the pictures are.
    pictures : PictureSet
    groups : str
        A column of the table, whose empty cells are groups of their own; or a regular expression
        that is searched in the names of files: what its brackets hold, or else what it matches, is
        the group. Other pictures are groups of their own.
    argument : str, default "data.groups"
        For messages.
    """
    cells = table_column(Path(source), groups)
    if cells is not None:
        return group_numbers(cell or number for number, cell in enumerate(cells))
    try:
        pattern = re.compile(groups)
    except re.error as error:
        accepted = f"a column of the table, or a pattern ({error})"
        raise InputError(argument, groups, accepted) from None
    names = [Path(content.name).name for content in pictures.contents()]
    found = [pattern.search(name) for name in names]
    if not any(found):
        accepted = f"a column of the table, or a pattern of file names such as {names[0]!r}"
        raise InputError(argument, groups, accepted)
    return group_numbers(
        number if match is None else (match.groups() or match[0])
        for number, match in enumerate(found)
    )
