"""Files of arrays and plain values: safetensors with a JSON header. Nothing in them can run.

The safetensors package writes them; they are read here, strictly: every size is checked against
the file before memory is allocated, and every dtype, shape and number against what is accepted.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.errors import VisionshareError
from visionshare.errors.names import nothing_named
from visionshare.files.durable import write_bytes
from visionshare.files.fingerprints import spec_fingerprint

_KEY = "visionshare"
_CHECKSUM = "sha256"
_DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
}
_INVALID = (ValueError, TypeError, KeyError, OverflowError, RecursionError)


def write_tensor_file(
    path: str | os.PathLike[str],
    format_name: str,
    version: int,
    values: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write plain values and arrays (float32, float64 or int64), atomically."""
    from safetensors.numpy import save

    from visionshare import __version__

    header = {"format": format_name, "version": version, "library": __version__, **values}
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    checksum = spec_fingerprint(header, contiguous)
    text = json.dumps({**header, _CHECKSUM: checksum}, allow_nan=False)
    write_bytes(path, save(contiguous, metadata={_KEY: text}))


def read_tensor_file(
    path: Path,
    format_name: str,
    versions: Collection[int],
    error: type[VisionshareError],
    *,
    dtypes: Collection[str] = ("F32", "I64"),
    max_bytes: int = 1 << 30,
    max_header_bytes: int = 4 << 20,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the values and arrays of a file."""
    try:
        header, table, body = _header(path, max_bytes, max_header_bytes)
        if header.get("format") != format_name:
            raise error(f"{path}: format {header.get('format')!r}; accepted: {format_name!r}")
        version = header.get("version")
        if type(version) is not int or version not in versions:
            known = ", ".join(map(str, sorted(versions)))
            raise error(
                f"{path}: format version {version!r}; this library reads {known}: "
                "install a newer visionshare"
            )
        arrays = {name: _array(name, entry, body, dtypes) for name, entry in table.items()}
        if header.pop(_CHECKSUM, None) != spec_fingerprint(header, arrays):
            raise ValueError("its sha256 differs: the file is damaged")
        return header, arrays
    except error:
        raise
    except FileNotFoundError:
        raise error(nothing_named(path, "file")) from None
    except OSError as problem:
        raise error(f"{path}: {problem.strerror or 'cannot be read'}") from None
    except _INVALID as problem:
        raise error(f"{path}: invalid {format_name} file ({problem})") from None


def tensor_file_format(path: str | os.PathLike[str]) -> str | None:
    """Return the name of a file's format, None where it is no tensor file of this library."""
    try:
        name = _header(Path(path), max_bytes=1 << 30, max_header_bytes=4 << 20)[0].get("format")
    except (OSError, *_INVALID):
        return None
    return name if isinstance(name, str) else None


def _header(
    path: Path, max_bytes: int, max_header_bytes: int
) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return the values, the table of arrays and the bytes of the arrays."""
    size = path.stat().st_size
    if size > max_bytes:
        raise ValueError(f"{size} bytes are too many")
    with open(path, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        if size < 8 or length > min(size - 8, max_header_bytes):
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
    return json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_int64)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]}")
    return value


def _int64(text: str) -> int:
    # What arrays can index; Python's own integers have no bound.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"the number {text[:20]}")
    return int(text)


def _array(name: str, entry: Any, body: bytes, dtypes: Collection[str]) -> np.ndarray:
    dtype, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    sizes = (*shape, start, stop)
    if dtype not in dtypes or any(type(v) is not int or v < 0 for v in sizes) or len(shape) > 8:
        raise ValueError(f"array {name}: dtype {dtype!r} or its shape")
    count = math.prod(shape)
    kind = _DTYPES[dtype]
    if stop > len(body) or stop - start != count * kind.itemsize:
        raise ValueError(f"array {name}: {stop - start} bytes for shape {shape}")
    return np.frombuffer(body, kind, count, start).reshape(shape)
