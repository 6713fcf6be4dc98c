"""Data sets in packed files and tables: bombs, very many small parts, and headers without end."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import struct
import tarfile
import zipfile
from typing import Any

import numpy as np

from scripts.attack.arrays import array_seeds
from scripts.attack.costs.costly import Builder, Costly, loaded, repeated, written
from scripts.attack.images import image_seeds

__all__ = ["IDX", "LIBSVM", "NPZ", "PARQUET", "TABLE", "TAR"]

_ZEROS = 1 << 24


def _gzipped(start: bytes, zeros: int, size: int) -> bytes:
    """Return a gzip of a start and of zeros, in several members."""
    part = gzip.compress(bytes(_ZEROS), 9, mtime=0)
    return gzip.compress(start, mtime=0) + part * min(zeros // _ZEROS, size // len(part))


def _text(start: bytes, part: bytes, end: bytes = b"") -> Builder:
    return lambda size, rng: start + repeated(part, size) + end


# --- npz ---


def _npz(images: np.ndarray, labels: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, images=images, labels=labels)
    return file.getvalue()


def _npz_pixels(size: int, rng: np.random.Generator) -> bytes:
    n = size // 2
    return _npz(images=np.zeros((n, 1, 1), np.uint8), labels=np.zeros(n, np.uint8))


def _npz_small(size: int, rng: np.random.Generator) -> bytes:
    n = size // 65
    return _npz(images=np.zeros((n, 8, 8), np.uint8), labels=np.zeros(n, np.uint8))


def _npz_labels(size: int, rng: np.random.Generator) -> bytes:
    """Labels all of which are different texts."""
    n = size // 72
    return _npz(images=np.zeros((n, 8, 8), np.uint8), labels=np.arange(n).astype("S8"))


def _npz_bomb(size: int, rng: np.random.Generator) -> bytes:
    """A .npz of 256 MiB of zeros."""
    head = io.BytesIO()
    about = {"descr": "|u1", "fortran_order": False, "shape": (256, 1024, 1024)}
    np.lib.format.write_array_header_1_0(head, about)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        with made.open("images.npy", "w", force_zip64=True) as part:
            part.write(head.getvalue())
            for _ in range(256):
                part.write(bytes(1 << 20))
        made.writestr("labels.npy", _npy(np.arange(256) % 2))
    return file.getvalue()


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz_members(size: int, rng: np.random.Generator) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for number in range(size // 90):
            made.writestr(zipfile.ZipInfo(f"{number:06}"), b"")
    return file.getvalue()


def _npz_arrays(size: int, rng: np.random.Generator) -> bytes:
    file = io.BytesIO()
    part = _npy(np.zeros(1, np.uint8))
    with zipfile.ZipFile(file, "w") as made:
        for number in range(size // 350):
            made.writestr(zipfile.ZipInfo(f"{number:06}.npy"), part)
    return file.getvalue()


def _npz_wide(size: int, rng: np.random.Generator) -> bytes:
    """Labels as wide as the longest of them."""
    labels = np.array(["a"] * 900 + ["b" * 20_000])
    file = io.BytesIO()
    np.savez_compressed(file, images=np.zeros((901, 2, 2), np.uint8), labels=labels)
    return file.getvalue()


def _npz_floats(size: int, rng: np.random.Generator) -> bytes:
    images = rng.random((size // 400, 10, 10)).astype(np.float32)
    return _npz(images=images, labels=np.zeros(len(images), np.uint8))


def _npz_seeds() -> list[bytes]:
    return [content for content in array_seeds() if content[:2] == b"PK"]


NPZ = Costly(
    {
        "images of a pixel": _npz_pixels,
        "small images": _npz_small,
        "floats": _npz_floats,
        "different labels": _npz_labels,
        "256 MiB of zeros": _npz_bomb,
        "members": _npz_members,
        "arrays": _npz_arrays,
        "wide labels": _npz_wide,
    },
    _npz_seeds,
    loaded(".npz"),
)


# --- IDX ---


def _idx(shape: tuple[int, ...]) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)


def _idx_pixels(size: int, rng: np.random.Generator) -> bytes:
    return _idx((size, 1, 1)) + bytes(size)


def _idx_bomb(size: int, rng: np.random.Generator) -> bytes:
    return _gzipped(_idx((1 << 20, 32, 32)), 1 << 30, size)


def _idx_lie(size: int, rng: np.random.Generator) -> bytes:
    """A small array, and zeros after its end."""
    return _gzipped(_idx((1, 8, 8)), 1 << 30, size)


def _idx_members(size: int, rng: np.random.Generator) -> bytes:
    """A gzip of very many members, of a byte each."""
    part = gzip.compress(b"\0", 9, mtime=0)
    n = size // len(part)
    return gzip.compress(_idx((n, 1, 1)), mtime=0) + part * n


def _use_idx(content: bytes) -> int:
    from visionshare.datasets import load_images

    path = written(content, "-images-idx3-ubyte.gz")
    # As many labels as the images announce, in few bytes.
    announced = 5
    if content[:2] != b"\x1f\x8b":
        announced = int.from_bytes(content[4:8], "big")
    written(_idx((announced,)) + bytes(min(announced, 1 << 24)), "-labels-idx1-ubyte.gz")
    load_images(path)
    return 0


def _idx_seeds() -> list[bytes]:
    return [content for content in array_seeds() if content[:2] != b"PK"]


IDX = Costly(
    {
        "images of a pixel": _idx_pixels,
        "a gigabyte of zeros": _idx_bomb,
        "zeros after the end": _idx_lie,
        "members of a byte": _idx_members,
    },
    _idx_seeds,
    _use_idx,
)


# --- tar ---


def _member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE) -> bytes:
    about = tarfile.TarInfo(name)
    about.size = len(content)
    about.type = kind
    return about.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)


def _record(name: str, value: str) -> bytes:
    """Return an entry of an extended header, which begins with its own length."""
    rest = f" {name}={value}\n"
    length = len(rest) + 1
    while len(f"{length}{rest}") != length:
        length += 1
    return f"{length}{rest}".encode()


def _global_headers(size: int, rng: np.random.Generator) -> bytes:
    """Headers that hold for all members after them, each of another key."""
    n = size // 1536
    parts = (
        _member("x", _record(f"key{number}", "a"), tarfile.XGLTYPE) + _member(f"a/{number}.txt")
        for number in range(n)
    )
    return b"".join(parts)


def _long_header(size: int, rng: np.random.Generator) -> bytes:
    return _member("x", repeated(b"9 abc=de\n", size), tarfile.XHDTYPE) + _member("a/1.png")


def _negative(size: int, rng: np.random.Generator) -> bytes:
    """A member of a negative size, which leads back to itself."""
    about = bytearray(_member("a/1.txt"))
    about[124:136] = b"\xff" * 10 + struct.pack(">h", -512)
    about[148:156] = b" " * 8
    about[148:156] = b"%06o\0 " % sum(about[:512])
    return bytes(about)


def _sparse(size: int, rng: np.random.Generator) -> bytes:
    """A member whose map of holes has no end."""
    records = _record("GNU.sparse.major", "1") + _record("GNU.sparse.minor", "0")
    records += _record("GNU.sparse.name", "a/1.png") + _record("GNU.sparse.realsize", "10")
    return _member("x", records, tarfile.XHDTYPE) + _member("a/1.png", b"9999999\n" + b"1" * size)


def _pictures(size: int, rng: np.random.Generator) -> bytes:
    return repeated(_member("a/1.png", image_seeds()[0]), size)


def _tar_seeds() -> list[bytes]:
    seeds = []
    for style in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=style) as tar:
            for number, picture in enumerate(image_seeds()[:4]):
                member = tarfile.TarInfo("ç" * 30 * number + f"{number % 2}/{number}.png")
                member.size = len(picture)
                tar.addfile(member, io.BytesIO(picture))
        seeds.append(file.getvalue())
    return seeds


def _use_tar(content: bytes) -> int:
    from visionshare.datasets import load_images

    return len(load_images(written(content, ".tar.gz"), size=(8, 8)))


TAR = Costly(
    {
        "empty members": _text(b"", _member("a/1.txt")),
        "empty labels": _text(b"", _member("1.cls")),
        "tiny pictures": _pictures,
        "headers for all": _global_headers,
        "a header without end": _long_header,
        "headers of headers": _text(b"", _member("x", _record("a", "b"), tarfile.XHDTYPE)),
        "long names": _text(b"", _member("x", b"a" * 500, tarfile.GNUTYPE_LONGNAME)),
        "a negative size": _negative,
        "a map of holes": _sparse,
        "a gigabyte of zeros": lambda size, rng: _gzipped(_member("a/1.txt")[:156], 1 << 30, size),
        "a gigabyte of a member": lambda size, rng: _gzipped(_large_member(), 1 << 30, size),
    },
    _tar_seeds,
    _use_tar,
)


def _large_member() -> bytes:
    about = tarfile.TarInfo("a/1.txt")
    about.size = 1 << 30
    return about.tobuf(tarfile.USTAR_FORMAT)


# --- LIBSVM and tables ---


def _use_libsvm(content: bytes) -> int:
    from visionshare.datasets.readers.libsvm import read_libsvm

    suffix = {b"\x1f\x8b": ".gz", b"BZ": ".bz2"}.get(content[:2], ".txt")
    images, _ = read_libsvm(written(content, suffix), (28, 28))
    # KiB that it unpacks to, of five bytes a number; to unpack it again would count as its cost.
    return 0 if suffix == ".txt" else images.size // 200


def _numbers(size: int, rng: np.random.Generator) -> bytes:
    """Rows of numbers that hardly pack."""
    rows = []
    for _ in range(size // 11_000):
        values = rng.integers(10**8, 10**9, 784)
        rows.append("1 " + " ".join(f"{i}:{v}" for i, v in enumerate(values.tolist(), 1)))
    return "\n".join(rows).encode()


def _gzipped_blanks(size: int, rng: np.random.Generator) -> bytes:
    part = gzip.compress(b"\n" * _ZEROS, 9, mtime=0)
    return gzip.compress(b"0\n", mtime=0) + part * min(64, size // len(part))


_PAIRS = b"1 " + b" ".join(b"%d:1" % i for i in range(1, 785)) + b"\n"

LIBSVM = Costly(
    {
        "rows of nothing": _text(b"", b"0\n"),
        "blank lines": _text(b"", b"\n"),
        "comments": _text(b"", b"#\n"),
        "blanks": _text(b"1", b" "),
        "digits": _text(b"1 1:", b"1"),
        "queries": _text(b"", b"1 qid:1 1:1\n"),
        "pairs": _text(b"", _PAIRS),
        "the same pair": _text(b"1", b" 1:1"),
        "a gigabyte of blanks": _gzipped_blanks,
        "packed pairs": lambda size, rng: gzip.compress(_PAIRS * (size // len(_PAIRS)), 1),
        "packed pairs, bzip2": lambda size, rng: bz2.compress(_PAIRS * (size // len(_PAIRS)), 1),
        "packed numbers": lambda size, rng: gzip.compress(_numbers(2 * size, rng), 1),
        "packed numbers, bzip2": lambda size, rng: bz2.compress(_numbers(2 * size, rng), 1),
    },
    lambda: [b"7 1:0.5 4:1\n1 2:3\n" * 20, gzip.compress(b"7 1:0.5 4:1\n" * 20, mtime=0)],
    _use_libsvm,
)


_HEAD = b"path,label\n"
_JSON_ROW = b'{"path":"costly.png","label":1}\n'


def _use_table(content: bytes) -> int:
    from visionshare.datasets import load_images

    written(image_seeds()[0], ".png")
    suffix = ".jsonl" if content[:1] == b"{" else ".csv"
    return len(load_images(written(content, suffix), size=(8, 8)))


TABLE = Costly(
    {
        "rows": _text(_HEAD, b"costly.png,b\n"),
        "rows of one picture by many paths": _text(_HEAD, b"./" * 20 + b"costly.png,b\n"),
        "blank rows": _text(_HEAD + b"costly.png,b\n", b"\n"),
        "empty cells": _text(_HEAD + b"costly.png,b\n", b","),
        "columns": _text(b"path,label", b",a"),
        "one quoted cell": _text(_HEAD + b'costly.png,"', b"a"),
        "a row of many lines": _text(_HEAD + b"costly.png,b", b',"\n"'),
        "quotes": _text(_HEAD + b'costly.png,"', b'""'),
        "JSON rows": _text(
            b'{"path":"costly.png","label":1}\n', b'{"path":"costly.png","label":1}\n'
        ),
        "JSON blank rows": _text(b'{"path":"costly.png","label":1}\n', b"\n"),
        "JSON lists": _text(b'{"path":"costly.png","label":1,"a":', b"["),
        "JSON numbers": _text(
            b"", b'{"path":"costly.png","label":1,"a":[' + b"1," * 30_000 + b"1]}\n"
        ),
    },
    lambda: [_HEAD + b"costly.png,b\n" * 9, _JSON_ROW * 9],
    _use_table,
)


# --- Parquet ---


def _parquet(columns: dict[str, Any], **options: Any) -> bytes:
    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file, **options)
    return file.getvalue()


def _same_rows(size: int, rng: np.random.Generator) -> bytes:
    """Millions of rows of one picture, in a few bytes."""
    import pyarrow

    n = 1_000_000
    pictures = pyarrow.repeat(pyarrow.scalar(image_seeds()[0]), n)
    return _parquet({"image": pictures, "label": np.zeros(n, np.int32)})


def _tiny_rows(size: int, rng: np.random.Generator) -> bytes:
    picture = image_seeds()[0]
    n = size // 1000
    return _parquet(
        {"image": [picture] * n, "label": np.zeros(n, int)},
        use_dictionary=False,
        compression="none",
    )


def _broken_rows(size: int, rng: np.random.Generator) -> bytes:
    n = size // 10
    return _parquet({"image": [b"a"] * n, "label": np.arange(n)}, use_dictionary=False)


def _packed_rows(size: int, rng: np.random.Generator) -> bytes:
    """Pages that unpack to a thousand times their size."""
    picture = image_seeds()[0] + bytes(1 << 22)
    return _parquet(
        {"image": [picture] * 70, "label": np.zeros(70, int)},
        use_dictionary=False, compression="zstd", row_group_size=1, write_statistics=False,
    )  # fmt: skip


def _groups(size: int, rng: np.random.Generator) -> bytes:
    """A group of rows for each row."""
    n = min(size // 300, 5000)
    return _parquet({"image": [image_seeds()[0]] * n, "label": np.zeros(n, int)}, row_group_size=1)


def _columns(size: int, rng: np.random.Generator) -> bytes:
    others = {f"column{number}": [1] for number in range(min(size // 300, 10_000))}
    return _parquet({"image": [image_seeds()[0]], "label": [1], **others})


def _classes(size: int, rng: np.random.Generator) -> bytes:
    """Names of very many classes."""
    import pyarrow
    from pyarrow import parquet

    names = [str(number) for number in range(size // 12)]
    about = {"info": {"features": {"label": {"names": names}}}}
    table = pyarrow.table({"image": [image_seeds()[0]], "label": [1]})
    file = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(about)}), file)
    return file.getvalue()


def _parquet_seeds() -> list[bytes]:
    images = image_seeds()[:6]
    labels = np.arange(6) % 2
    return [
        _parquet({"image": images, "label": labels}, compression=compression)
        for compression in ("none", "snappy", "gzip", "zstd")
    ]


def _use_parquet(content: bytes) -> int:
    from visionshare.datasets import load_images

    return len(load_images(written(content, ".parquet"), size=(8, 8)))


PARQUET = Costly(
    {
        "millions of rows of one picture": _same_rows,
        "tiny pictures": _tiny_rows,
        "no pictures": _broken_rows,
        "pages of zeros": _packed_rows,
        "groups of a row": _groups,
        "columns": _columns,
        "classes": _classes,
    },
    _parquet_seeds,
    _use_parquet,
)
