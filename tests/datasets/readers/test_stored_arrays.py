"""Blocks of rows of Zarr groups and HDF5 files, also those that are not what they should be."""

import h5py
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare.datasets import load_images
from visionshare.datasets.readers.labels import label_names
from visionshare.datasets.readers.stored_arrays import read_rows, row_blocks
from visionshare.datasets.shards import survey_shards
from visionshare.errors import DataError, MemoryLimitError


@pytest.fixture
def zarr():
    return pytest.importorskip("zarr", reason="needs the extra [zarr]")


def test_a_group_of_groups_is_refused(zarr, tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_group("images")
    group.create_group("labels")
    with pytest.raises(DataError, match="are not arrays"):
        row_blocks(str(tmp_path / "a.zarr"))


def test_a_chunk_that_does_not_fit_is_not_read(zarr, tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    side = 1 << 20
    group.create_array("images", shape=(4, side, side), dtype=np.uint8, chunks=(4, side, side))
    group.create_array("labels", data=np.arange(4))
    (block,) = row_blocks(str(tmp_path / "a.zarr"))
    with pytest.raises(MemoryLimitError, match="smaller chunks"):
        read_rows(block)


def test_a_group_is_a_source_as_files_are(zarr, tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("images", data=np.arange(32, dtype=np.uint8).reshape(2, 4, 4))
    group.create_array("labels", data=np.array([7, 3]))
    found = load_images(tmp_path / "a.zarr")
    assert (found.classes, found.labels.tolist()) == (("3", "7"), [1, 0])
    assert_array_equal(found.images.ravel(), np.arange(32))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def written(path, images, labels, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=images, **options)
        file["labels"] = labels
    return str(path)


@pytest.mark.parametrize("options", [{}, {"chunks": (7, 8, 8)}, {"compression": "gzip"}])
def test_blocks_of_hdf5_are_all_rows_in_order(options, rng, tmp_path, monkeypatch):
    images = rng.integers(0, 256, (500, 8, 8), np.uint8)
    labels = np.arange(500) % 3
    name = written(tmp_path / "a.h5", images, labels, **options)
    monkeypatch.setattr("visionshare.datasets.readers.stored_arrays._BLOCK", 100 * 64)
    blocks = row_blocks(name)
    assert len(blocks) > 1
    parts = [read_rows(block) for block in blocks]
    assert_array_equal(np.concatenate([part[0] for part in parts]), images)
    assert_array_equal(np.concatenate([part[1] for part in parts]), labels)


def test_labels_of_hdf5_may_be_names(tmp_path):
    name = written(tmp_path / "a.h5", np.zeros((3, 2, 2)), ["cat", "dog", "Ж"])
    assert label_names(read_rows(f"{name}#1:3")[1], name) == ["dog", "Ж"]
    pictures = survey_shards(name, (2, 2))
    assert (pictures.classes, pictures.labels.tolist()) == (("cat", "dog", "Ж"), [0, 1, 2])


def test_what_is_no_hdf5_of_pictures_is_refused(tmp_path):
    broken = tmp_path / "broken.h5"
    broken.write_bytes(b"no directory" * 100)
    for name, problem in (
        (str(broken), "cannot be read as HDF5"),
        (written(tmp_path / "one.h5", np.zeros((3, 2, 2)), [1, 2]), "labels of shape"),
        (str(tmp_path / "none.h5"), "No such file"),
    ):
        with pytest.raises(DataError, match=problem):
            row_blocks(name)
    with h5py.File(tmp_path / "images.h5", "w") as file:
        file["images"] = np.zeros((3, 2, 2))
        file.create_group("labels")
    with pytest.raises(DataError, match="no array 'labels'"):
        row_blocks(str(tmp_path / "images.h5"))


def test_changed_rows_end_a_reading(tmp_path):
    name = written(tmp_path / "a.h5", np.zeros((4, 2, 2), np.uint8), [0, 1, 0, 1])
    pictures = survey_shards(name, (2, 2))
    with h5py.File(name, "r+") as file:
        file["images"][3] = 7
    with pytest.raises(DataError, match="changed since"):
        pictures.images()


@pytest.mark.parametrize("chunks", [None, (64, 32, 32)])
def test_of_hdf5_in_storage_only_the_rows_are_fetched(
    chunks, object_storage, rng, tmp_path, monkeypatch
):
    images = rng.integers(0, 256, (24_000, 32, 32), np.uint8)
    name = written(tmp_path / "a.h5", images, np.arange(24_000) % 5, chunks=chunks)
    bucket = f"blocks-{len(str(chunks))}"
    object_storage.mkdir(bucket)
    object_storage.put_file(name, f"{bucket}/a.h5")
    monkeypatch.setattr("visionshare.datasets.readers.stored_arrays._BLOCK", 4 << 20)
    fetched, core = [], pytest.importorskip("s3fs.core")
    real = core.S3File._fetch_range

    def counted(file, start, end):
        fetched.append(end - start)
        return real(file, start, end)

    monkeypatch.setattr(core.S3File, "_fetch_range", counted)
    blocks = row_blocks(f"s3://{bucket}/a.h5")
    assert len(blocks) in (6, 7)
    fetched.clear()
    found, labels = read_rows(blocks[2])
    start = int(blocks[2].rpartition("#")[2].split(":")[0])
    assert_array_equal(found, images[start : start + len(found)])
    assert_array_equal(labels, np.arange(start, start + len(found)) % 5)
    # The block, and besides it a few pieces of the file's directory.
    assert sum(fetched) < found.nbytes + (8 << 20) < images.nbytes
