"""A file for a fitted family, so that other images can be given the same features."""

from __future__ import annotations

import os
from pathlib import Path

from visionshare.errors import DataError
from visionshare.files.tensors import read_tensor_file, write_tensor_file
from visionshare.generators.base import FeatureFamily
from visionshare.generators.layers.former import current_header
from visionshare.generators.registry import family_from_state

FORMAT = "visionshare-features"
_VERSION = 1


# A parameter may be a list in a list in a list.
_INVALID = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


def write_family(path: str | os.PathLike[str], family: FeatureFamily) -> None:
    """Write a fitted family, atomically."""
    state, arrays = family.to_state()
    write_tensor_file(path, FORMAT, _VERSION, {"family": state}, arrays)


def read_family(path: str | os.PathLike[str]) -> FeatureFamily:
    """Read a family that :func:`write_family` wrote."""
    path = Path(path)
    header, arrays = read_tensor_file(path, FORMAT, {_VERSION}, DataError)
    try:
        header, arrays = current_header(header, arrays)
        return family_from_state(header["family"], arrays)
    except _INVALID as error:
        raise DataError(f"{path}: invalid {FORMAT} file ({error})") from None
