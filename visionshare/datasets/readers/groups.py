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
    """Return the number of each picture's group (n,): by a column of a table, or by names."""
    # Empty cells, and names that a pattern does not match, are groups of their own. Of a name the
    # group is what the pattern's brackets hold, or else what it matches.
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
