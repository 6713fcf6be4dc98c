"""Arrays of ``.npz`` files, their sizes checked before they are read."""

from __future__ import annotations

import os
import zipfile

import numpy as np

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.readers.bounds import BoundedFile, unpacked_limit
from visionshare.errors import DataError

_MAX_BYTES = 8 << 30
# Of the list of arrays, and of the file's end, where it is searched.
_MAX_DIRECTORY = 200_000


def read_npz(path: str | os.PathLike[str], max_bytes: int = _MAX_BYTES) -> dict[str, np.ndarray]:
    """Read all arrays of a ``.npz`` file; objects that would need pickle are refused."""
    with file_errors(path, ".npz"), open(path, "rb") as handle:
        # The list of arrays is read at once, and that of a few is short.
        with zipfile.ZipFile(BoundedFile(handle, _MAX_DIRECTORY)) as packed:
            size = sum(member.file_size for member in packed.infolist())
        most = unpacked_limit(handle.seek(0, os.SEEK_END), max_bytes)
        if size > most:
            raise DataError(f"{path}: {size} bytes of arrays, at most {most} are accepted")
        handle.seek(0)
        try:
            with np.load(handle, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except MemoryError as error:
            # A header may announce any shape.
            raise DataError(f"{path}: cannot be read as .npz ({error})") from None
    for name, array in arrays.items():
        # NumPy returns the bytes of what is no array.
        if not isinstance(array, np.ndarray):
            raise DataError(f"{path}: cannot be read as .npz ({name!r} is no array)")
    return arrays
