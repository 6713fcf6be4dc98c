import errno
import io
import json
import os
import tarfile

import numpy as np
import pytest
from PIL import Image

from visionshare.datasets import shards, survey_shards
from visionshare.errors import DataError, StorageError

SIDE = 6


def _png(value):
    out = io.BytesIO()
    Image.fromarray(np.full((SIDE, SIDE), value, np.uint8)).save(out, "PNG")
    return out.getvalue()


def _tar(path, values, broken=()):
    """Write pictures of one value each, whose class is the value modulo 3."""
    with tarfile.open(path, "w") as tar:
        for i, value in enumerate(values):
            content = b"no picture" if i in broken else _png(value)
            for name, data in ((f"{i}.png", content), (f"{i}.cls", str(value % 3).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


@pytest.fixture
def folder(tmp_path):
    _tar(tmp_path / "a.tar", [3, 4, 5])
    _tar(tmp_path / "b.tar", [8, 7, 6, 10], broken=[1])
    return tmp_path


def test_a_survey_knows_sizes_labels_and_what_is_broken(folder):
    with pytest.raises(DataError, match=r"1\.png"):
        survey_shards(f"{folder}/*.tar", (SIDE, SIDE))
    found = survey_shards(f"{folder}/*.tar", (SIDE, SIDE), skip_broken=True)
    assert found.classes == ("0", "1", "2")
    assert found.labels.tolist() == [0, 1, 2, 2, 0, 1]
    assert (len(found), found.broken, found.skipped) == (6, 1, ())
    assert [shard.n_bytes for shard in found.shards] == [
        (folder / name).stat().st_size for name in ("a.tar", "b.tar")
    ]
    images = found.shards[1].images(found.reading)
    assert images[:, 0, 0].tolist() == [8, 6, 10]
    assert found.sample(4)[:, 0, 0].tolist() == [3, 4, 8, 10]


def test_a_manifest_is_written(folder):
    found = survey_shards(f"{folder}/*.tar", (SIDE, SIDE), skip_broken=True)
    found.save(folder / "manifest.json")
    written = json.loads((folder / "manifest.json").read_text())
    assert written["version"] == 1
    assert [shard["sha256"] for shard in written["shards"]] == [s.sha256 for s in found.shards]
    assert written["reading"]["size"] == [SIDE, SIDE]


def test_a_file_that_changed_is_refused(folder):
    found = survey_shards(f"{folder}/a.tar", (SIDE, SIDE))
    _tar(folder / "a.tar", [3, 4, 6])
    with pytest.raises(DataError, match="changed since it was surveyed"):
        found.shards[0].images(found.reading)


def test_files_that_cannot_be_read_are_skipped_and_named(folder):
    (folder / "c.tar").write_bytes(b"no tar at all")
    found = survey_shards(f"{folder}/*.tar", (SIDE, SIDE), skip_broken=True)
    assert len(found.shards) == 2
    assert len(found.skipped) == 1
    assert "c.tar" in found.skipped[0]
    with pytest.raises(DataError, match="no files match"):
        survey_shards(f"{folder}/*.parquet", (SIDE, SIDE))


def test_classes_of_files_are_joined_by_their_names(tmp_path):
    images = np.zeros((2, 4, 4), np.uint8)
    np.savez(tmp_path / "a.npz", x=images, y=[10, 2])
    np.savez(tmp_path / "b.npz", x=images, y=[3, 2])
    found = survey_shards(f"{tmp_path}/*.npz", (4, 4))
    assert found.classes == ("2", "3", "10")
    assert found.labels.tolist() == [2, 0, 1, 0]


def test_a_disk_that_is_full_while_a_shard_is_copied_is_a_typed_error():
    class FullDisk(io.BytesIO):
        name = "shard.tar"

        def write(self, block):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StorageError, match=r"shard.tar: No space left on device; free space"):
        shards._digested(io.BytesIO(b"12"), FullDisk())
