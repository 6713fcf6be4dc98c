"""Files of arrays (IDX and .npz) whose headers announce what is not there."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

from scripts.attack.damage import NUMBERS, Inputs, mutated

__all__ = ["ARRAYS", "write_idx"]

_TYPES = (0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0x00, 0xFF)


def write_idx(path: Path, array: np.ndarray) -> None:
    """Write an array as IDX; gzip-compressed when the name ends in ``.gz``."""
    kinds = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
    code = kinds[array.dtype.str[1:]]
    head = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = head + array.astype(array.dtype.newbyteorder(">")).tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


@cache
def array_seeds() -> list[bytes]:
    """Return IDX files of every type, packed and not, and .npz files."""
    rng = np.random.default_rng(0)
    seeds = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("u1", "i1", "i2", "i4", "f4", "f8"):
            for name in ("a.idx", "a.idx.gz"):
                write_idx(Path(folder) / name, (100 * rng.random((5, 4, 3))).astype(kind))
                seeds.append((Path(folder) / name).read_bytes())
    images = rng.integers(0, 256, (5, 4, 3), np.uint8)
    labels = np.array([0, 1, 0, 1, 1])
    for write, names in ((np.savez, labels), (np.savez_compressed, labels.astype(str))):
        file = io.BytesIO()
        write(file, images=images, labels=names)
        seeds.append(file.getvalue())
    return seeds


def mutated_array(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a damaged file, or a whole one of a hostile header."""
    if rng.random() < 0.1:
        return _hostile_idx(rng)
    content = seeds[rng.integers(0, len(seeds))]
    if rng.random() < 0.4:
        return mutated(content, rng)
    if content[:2] == b"\x1f\x8b":
        return gzip.compress(mutated(gzip.decompress(content), rng), 1, mtime=0)
    if content[:2] == b"PK":
        return _packed_again(content, rng)
    # The magic number and the sizes.
    return mutated(content[:16], rng) + content[16:]


def _hostile_idx(rng: np.random.Generator) -> bytes:
    """Return a header of any type and sizes, with few bytes after it, or many packed zeros."""
    n = int(rng.choice([0, 1, 3, 8, 255]))
    head = bytes([0, 0, int(rng.choice(_TYPES)), n])
    sizes = b"".join(int(rng.choice(NUMBERS)).to_bytes(4, "big") for _ in range(n))
    if rng.random() < 0.05:
        return gzip.compress(head + sizes + bytes(1 << 24), 1, mtime=0)
    return head + sizes + rng.bytes(int(rng.integers(0, 64)))


def _packed_again(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a .npz with damaged parts in a valid archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if rng.random() < 0.7:
                # The header is text: shape, dtype and order.
                part = mutated(part[:128], rng) + part[128:]
            new.writestr(zipfile.ZipInfo(name if rng.random() < 0.9 else f"../{name}"), part)
    return made.getvalue()


def use_array(content: bytes, rng: np.random.Generator) -> None:
    """Read images and labels as `visionshare train FILE` would."""
    from visionshare.datasets import load_images

    packed = content[:2] == b"PK"
    name = f"attack-{os.getpid()}-images" + (".npz" if packed else ".idx")
    path = Path(tempfile.gettempdir()) / name
    labels = path.with_name(path.name.replace("images", "labels"))
    try:
        path.write_bytes(content)
        labels.write_bytes(b"\0\0\x08\1\0\0\0\5\0\1\0\1\1")
        made = load_images(path)
        if len(made.images) != len(made.labels):
            raise AssertionError(f"{len(made.images)} images, {len(made.labels)} labels")
    finally:
        path.unlink(missing_ok=True)
        labels.unlink(missing_ok=True)


ARRAYS = Inputs(array_seeds, mutated_array, use_array)
