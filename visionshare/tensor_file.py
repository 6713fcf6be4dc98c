"""Files of arrays and plain values: safetensors with a JSON header. Nothing in them can run."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.durable import write_bytes
from visionshare.errors import VisionshareError
from visionshare.fingerprints import spec_fingerprint

__all__ = ["read_tensor_file", "tensor_file_format", "write_tensor_file"]

_LARGEST_HEADER = 16 << 20
_LARGEST_FILE = 1 << 30
_KEY = "visionshare"
_SUM = "sha256"
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


def write_tensor_file(
    path: str | os.PathLike[str],
    format_name: str,
    version: int,
    values: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write plain values and arrays (float32 or int64), whole or not at all."""
    from safetensors.numpy import save

    from visionshare import __version__

    header = {"format": format_name, "version": version, "library": __version__, **values}
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps({**header, _SUM: spec_fingerprint(header, held)}, allow_nan=False)
    write_bytes(path, save(held, metadata={_KEY: text}))


def read_tensor_file(
    path: Path, format_name: str, version: int, error: type[VisionshareError]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return values and arrays; sizes are checked against the file before anything is held.

    Parameters
    ----------
    path : pathlib.Path
    format_name, version
        What the file must say of itself.
    error : type
        What to raise.

    Raises
    ------
    error
        If the file is missing, broken, foreign, too large, or of another version.
    """
    try:
        header, table, body = _header(path)
        if header.get("format") != format_name:
            raise error(f"{path}: a {header.get('format')!r} file where {format_name!r} is wanted")
        if header.get("version") != version:
            raise error(
                f"{path}: format version {header.get('version')!r}; this library reads "
                f"{version}: install a newer visionshare"
            )
        arrays = {name: _array(name, entry, body) for name, entry in table.items()}
        if header.pop(_SUM, None) != spec_fingerprint(header, arrays):
            raise ValueError("its sha256 is another: the file is damaged")
        return header, arrays
    except OSError as problem:
        raise error(f"{path}: {problem.strerror or 'cannot be read'}") from None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as problem:
        raise error(f"{path}: not a sound {format_name} file ({problem})") from None


def tensor_file_format(path: str | os.PathLike[str]) -> str | None:
    """Return the name of a file's format, None where it is no tensor file of this library."""
    try:
        name = _header(Path(path))[0].get("format")
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return name if isinstance(name, str) else None


def _header(path: Path) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise ValueError(f"{size} bytes are too many")
    with open(path, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        if size < 8 or length > min(size - 8, _LARGEST_HEADER):
            raise ValueError("no safetensors header")
        table = _plain(handle.read(length))
        body = handle.read()
    if not isinstance(table, dict):
        raise ValueError("no safetensors header")
    about = table.pop("__metadata__", None)
    text = about.get(_KEY) if isinstance(about, dict) else None
    header = _plain(text) if isinstance(text, str) else None
    if not isinstance(header, dict):
        raise ValueError("a safetensors file, but not of visionshare")
    return header, table, body


def _plain(text: str | bytes) -> Any:
    """Return the plain values of a JSON text; numbers that no array holds are refused."""
    return json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_whole)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]}")
    return value


def _whole(text: str) -> int:
    # What arrays can index; Python's own numbers have no end.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"the number {text[:20]}")
    return int(text)


def _array(name: str, entry: Any, body: bytes) -> np.ndarray:
    dtype, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    whole = (*shape, start, stop)
    if dtype not in _DTYPES or any(type(v) is not int or v < 0 for v in whole) or len(shape) > 8:
        raise ValueError(f"array {name}: dtype {dtype!r} or its shape")
    count = 1
    for side in shape:
        count *= side
    kind = _DTYPES[dtype]
    if stop > len(body) or stop - start != count * kind.itemsize:
        raise ValueError(f"array {name}: {stop - start} bytes for shape {shape}")
    return np.frombuffer(body, kind, count, start).reshape(shape)
