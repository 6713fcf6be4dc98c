"""Arrays from ``.npz`` and HDF5 files, their sizes checked before they are read."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError

import numpy as np

from visionshare.datasets.bounds import BoundedFile, unpacked_limit
from visionshare.datasets.hdf5 import hdf5_array
from visionshare.errors import DataError
from visionshare.errors.names import nothing_named

__all__ = ["read_hdf5", "read_npz"]

_MAX_BYTES = 8 << 30
# Of a .npz file's list of arrays, and of the file's end, where it is searched.
_MAX_DIRECTORY = 200_000


def read_npz(path: str | os.PathLike[str], max_bytes: int = _MAX_BYTES) -> dict[str, np.ndarray]:
    """Read all arrays of a ``.npz`` file; objects that would need pickle are refused."""
    path = Path(path)
    try:
        with open(path, "rb") as handle:
            # The list of arrays is read at once, and that of a few is short.
            directory = BoundedFile(handle, _MAX_DIRECTORY, forward=False)
            with zipfile.ZipFile(directory) as packed:
                size = sum(member.file_size for member in packed.infolist())
            most = unpacked_limit(handle.seek(0, os.SEEK_END), max_bytes)
            if size > most:
                raise DataError(f"{path}: {size} bytes of arrays, at most {most} are accepted")
            handle.seek(0)
            with np.load(handle, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, EOFError, MemoryError) as error:
        raise DataError(f"{path}: invalid .npz file ({_first_line(error)})") from None
    except (
        SyntaxError,
        TokenError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise DataError(f"{path}: invalid .npz file ({_first_line(error)})") from None
    # NumPy returns the bytes of what is no array.
    if others := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
        raise DataError(f"{path}: invalid .npz file ({others[0]!r} is no array)")
    return arrays


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def read_hdf5(
    path: str | os.PathLike[str], names: tuple[str, ...], max_bytes: int = _MAX_BYTES
) -> dict[str, np.ndarray]:
    """Read these datasets of an HDF5 file."""
    import h5py

    path = Path(path)
    if not os.path.isfile(path):
        raise DataError(nothing_named(path, "file"))
    try:
        with open(path, "rb") as handle, h5py.File(handle, "r") as file:
            arrays = {}
            for name in names:
                array = hdf5_array(file, handle, name, str(path))
                if math.prod(array.shape) * array.dtype.itemsize > max_bytes:
                    raise DataError(f"{path}: {name} is larger than {max_bytes} bytes")
                arrays[name] = array[:]
            return arrays
    except DataError:
        raise
    except (OSError, RuntimeError, ValueError, TypeError, OverflowError, zlib.error) as error:
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"{path}: {error.strerror}") from None
        raise DataError(f"{path}: invalid HDF5 file ({_first_line(error)})") from None
