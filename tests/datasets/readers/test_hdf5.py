"""HDF5 files of strangers: whatever they say, rows are read within bounds or refused."""

import zlib

import h5py
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare.datasets import load_images
from visionshare.datasets.readers.hdf5 import hdf5_array
from visionshare.datasets.readers.stored_arrays import read_rows
from visionshare.errors import DataError

NAMES = [f"class-{number % 3}" for number in range(50)]
PIXELS = np.random.default_rng(0).integers(0, 256, (50, 6, 5), np.uint8)


@pytest.mark.parametrize("userblock", [0, 512])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (7,)},
        {"chunks": (7,), "compression": "gzip", "shuffle": True},
        {"chunks": (8,), "fletcher32": True},
        {"chunks": (8,), "compression": "gzip", "shuffle": True, "fletcher32": True},
    ],
)
def test_rows_are_those_that_the_library_reads(tmp_path, options, libver, userblock):
    rng = np.random.default_rng(0)
    arrays = {
        "names": np.array(NAMES, h5py.string_dtype()),
        "short": np.array(NAMES, "S9"),
        "bytes": rng.integers(0, 256, 50, np.uint8),
        "floats": rng.normal(size=50),
        "big": rng.integers(-999, 999, 50).astype(">i4"),
        "flags": rng.integers(0, 2, 50).astype(bool),
    }
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=userblock) as file:
        for name, values in arrays.items():
            # HDF5 has no checksums of texts.
            of_texts = {key: value for key, value in options.items() if key != "fletcher32"}
            file.create_dataset(name, data=values, **(of_texts if name == "names" else options))
        if options:
            options = options | {"chunks": (*options["chunks"], 3, 2)}
        file.create_dataset("pixels", data=PIXELS, **options)
    with open(path, "rb") as handle, h5py.File(handle, "r") as file:
        for name in (*arrays, "pixels"):
            array = hdf5_array(file, handle, name, "a.h5")
            for rows in (slice(None), slice(5, 23), slice(49, 50), slice(9, 9)):
                found, expected = array[rows], file[name][rows]
                assert_array_equal(found, expected)
                assert found.dtype == expected.dtype


def written(path, labels=NAMES, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=PIXELS, **options)
        file["labels"] = labels
    return path


@pytest.mark.parametrize(
    ("number", "size"), [(0, 0), (1, 0), (1, 1 << 40), (3, (1 << 64) - 8), (2, 8)]
)
def test_a_damaged_heap_of_texts_is_refused(tmp_path, number, size):
    path = written(tmp_path / "a.h5")
    content = bytearray(path.read_bytes())
    # The first object of the heap: its number, a count, its size.
    start = content.index(b"GCOL") + 16
    content[start : start + 2] = number.to_bytes(2, "little")
    content[start + 8 : start + 16] = size.to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match="labels: a text"):
        load_images(path)


def test_a_heap_larger_than_the_file_is_refused(tmp_path):
    path = written(tmp_path / "a.h5")
    content = bytearray(path.read_bytes())
    start = content.index(b"GCOL") + 8
    content[start : start + 8] = (1 << 40).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match="a heap of texts is damaged"):
        load_images(path)


def test_a_long_label_costs_its_own_length_alone(tmp_path):
    # As one array of texts the labels would take a gigabyte.
    names = [*NAMES[:-1], "a" * 60_000]
    images = load_images(written(tmp_path / "a.h5", names))
    assert images.classes == ("a" * 60_000, "class-0", "class-1", "class-2")
    content = bytearray((tmp_path / "a.h5").read_bytes())
    start = content.index((60_000).to_bytes(4, "little"))
    # Very many references to one long text.
    content[start - 49 * 16 : start] = content[start : start + 16] * 49
    (tmp_path / "a.h5").write_bytes(content)
    assert load_images(tmp_path / "a.h5").classes == ("a" * 60_000,)
    with pytest.raises(DataError, match="a text of 70000 bytes"):
        load_images(written(tmp_path / "a.h5", [*NAMES[:-1], "a" * 70_000]))


def test_a_packed_chunk_becomes_no_more_than_a_chunk(tmp_path):
    path = written(tmp_path / "a.h5", chunks=(50, 6, 5), compression="gzip")
    with h5py.File(path, "r+") as file:
        file["images"].id.write_direct_chunk((0, 0, 0), zlib.compress(bytes(1 << 24)))
    with pytest.raises(DataError, match="not 1500"):
        load_images(path)


def test_a_damaged_chunk_is_refused(tmp_path):
    path = written(tmp_path / "a.h5", chunks=(50, 6, 5), fletcher32=True)
    content = bytearray(path.read_bytes())
    content[content.index(PIXELS[0].tobytes()) + 7] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as HDF5"):
        load_images(path)


def test_values_that_are_not_in_the_file_are_refused(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        # A few bytes of file, and gigabytes of zeros.
        file.create_dataset("images", (1000, 2000, 2000), np.uint8)
        file["labels"] = np.zeros(1000, np.uint8)
    with pytest.raises(DataError, match="4000000000 bytes, at most"):
        load_images(path)


@pytest.mark.parametrize("packed", ["lzf", "scaleoffset"])
def test_only_gzip_is_unpacked(tmp_path, packed):
    options = {"scaleoffset": 0} if packed == "scaleoffset" else {"compression": packed}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("images", data=np.ones((50, 6, 5), np.uint8), **options)
        file["labels"] = np.zeros(50, np.uint8)
    with pytest.raises(DataError, match="accepted: gzip or none"):
        read_rows(str(tmp_path / "a.h5"))
