"""Tensors of a checkpoint of torch, read without torch and without running pickled code."""

from __future__ import annotations

import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.errors import DataError

_LARGEST = 256 << 20
_MAGIC = 0x1950A86A20F9469CFC6C


class _Storage(NamedTuple):
    """Numbers that follow in the file."""

    key: str
    dtype: str
    size: int


class _Tensor:
    """Where a tensor stands in a storage; what the pickle calls in place of torch's function."""

    def __init__(self, storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> None:
        self.storage = storage
        self.offset = offset
        self.shape = shape
        self.strides = strides

    def array(self, storages: dict[str, np.ndarray]) -> np.ndarray:
        """Return the numbers, in order; all of them have to be in the storage."""
        values = storages[self.storage.key]
        last = self.offset + sum(
            (side - 1) * step for side, step in zip(self.shape, self.strides, strict=True)
        )
        if min(self.offset, *self.shape, *self.strides, 0) < 0 or last >= len(values):
            raise ValueError("a tensor outside of its storage")
        if int(np.prod(self.shape, dtype=np.float64)) > len(values):
            raise ValueError("a tensor larger than its storage")
        # Strides are in numbers, as torch counts them.
        strides = tuple(step * values.itemsize for step in self.strides)
        view = np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, strides)
        return np.ascontiguousarray(view)


# All that a pickle may name.
_ACCEPTED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _Tensor,
    ("torch", "FloatStorage"): "<f4",
    ("torch", "LongStorage"): "<i8",
}


class _Reader(pickle.Unpickler):
    """Knows tensors, their storages and ordered dictionaries, nothing else."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ACCEPTED:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return _ACCEPTED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        kind, dtype, key, _, size, view = pid
        if kind != "storage" or dtype not in ("<f4", "<i8") or view is not None:
            raise pickle.UnpicklingError("persistent_load")
        return self.storages.setdefault(key, _Storage(key, dtype, int(size)))


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the tensors of a checkpoint by name."""
    try:
        size = Path(path).stat().st_size
        if size > _LARGEST:
            raise DataError(f"{path}: {size} bytes; at most {_LARGEST} are read")
        return _tensors(io.BytesIO(Path(path).read_bytes()))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    # What a damaged or hostile pickle raises is anything.
    except (
        pickle.UnpicklingError, ValueError, TypeError, KeyError, EOFError, AttributeError,
        IndexError, OverflowError, MemoryError, RecursionError, ImportError,
    ) as error:  # fmt: skip
        raise DataError(f"{path}: not a checkpoint of tensors alone ({error})") from None


def _tensors(file: io.BytesIO) -> dict[str, np.ndarray]:
    # 1) three pickles of the format, then the dictionary, then the order of the storages
    if _Reader(file).load() != _MAGIC:
        raise ValueError("no file of torch")
    for _ in range(2):
        _Reader(file).load()
    reader = _Reader(file)
    found = reader.load()
    keys = _Reader(file).load()
    # 2) the storages
    storages = {}
    for key in keys:
        storage = reader.storages[key]
        if int.from_bytes(file.read(8), "little") != storage.size:
            raise ValueError(f"storage {key}")
        data = file.read(storage.size * np.dtype(storage.dtype).itemsize)
        storages[key] = np.frombuffer(data, storage.dtype, storage.size)
    # 3) the tensors
    if not isinstance(found, dict) or not all(isinstance(t, _Tensor) for t in found.values()):
        raise ValueError("other objects")
    return {str(name): tensor.array(storages) for name, tensor in found.items()}
