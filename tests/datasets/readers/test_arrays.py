"""Labeled arrays of any type: pictures become bytes by one range, as files of the same pixels."""

import h5py
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare.datasets import load_images
from visionshare.datasets.pictures.checking import check_pictures
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.readers.registry import find_pictures
from visionshare.datasets.readers.stored_arrays import read_rows, row_blocks
from visionshare.datasets.shards import survey_shards
from visionshare.errors import DataError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 9, 8), np.uint8)
PIXELS[0, 0, :2] = 0, 255
LABELS = np.arange(6) % 2


def saved(folder, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def parts(training, test):
    return {"x_train": training, "y_train": LABELS[:4], "x_test": test, "y_test": LABELS[4:]}


@pytest.mark.parametrize(
    "images",
    [
        PIXELS.astype(np.float32), PIXELS / 255, PIXELS.astype(np.int64), PIXELS.astype(np.uint16),
        PIXELS.astype(np.uint16) * 257, PIXELS.astype(">f4"), PIXELS[..., None].astype(np.int32),
    ],
)  # fmt: skip
def test_arrays_of_any_type_are_read_as_files_of_the_same_pixels(tmp_path, images):
    (tmp_path / "files").mkdir()
    for i, picture in enumerate(PIXELS):
        (tmp_path / "files" / str(LABELS[i])).mkdir(exist_ok=True)
        Image.fromarray(picture).save(tmp_path / "files" / str(LABELS[i]) / f"{i}.png")
    pictures = find_pictures(saved(tmp_path, images=images, labels=LABELS))
    read = read_pictures(pictures)
    assert read.images.dtype == np.uint8
    order = np.argsort(LABELS, kind="stable")
    files = read_pictures(find_pictures(tmp_path / "files"))
    assert_array_equal(read.images[order], files.images)
    assert "images become bytes" in pictures.notes[-1]
    assert not check_pictures(pictures).broken


def test_the_range_of_training_is_that_of_all_parts(tmp_path):
    training = PIXELS[:4].astype(np.float32) * 4
    test = PIXELS[4:].astype(np.float32) // 8
    path = saved(tmp_path, **parts(training, test))
    found = load_images(path, "test").images
    assert_array_equal(found, np.rint(test / 4))
    assert "0 is 0, 1020 is 255" in find_pictures(path).notes[-1]


@pytest.mark.parametrize(
    ("training", "test", "message"),
    [
        (PIXELS[:4], PIXELS[4:] / 255, "images of several types"),
        (PIXELS[:4] / 255, PIXELS[4:] * 1.0, "test images: values from .* need one range"),
        (PIXELS[:4] * 1.0, PIXELS[4:] / 255, "test images: values from .* need one range"),
        (PIXELS[:4] / 255, np.full((2, 9, 8), np.nan), "NaN or infinite"),
        (np.full((4, 9, 8), np.inf), PIXELS[4:] / 255, "NaN or infinite"),
    ],
)
def test_parts_that_do_not_fit_each_other_are_refused(tmp_path, training, test, message):
    with pytest.raises(DataError, match=message):
        find_pictures(saved(tmp_path, **parts(training, test)))


def test_files_of_one_set_need_a_range_that_all_share(tmp_path):
    path = saved(tmp_path, images=PIXELS * 3.0, labels=LABELS)
    with pytest.raises(DataError, match="values from 0 to 765; files of one set need bytes"):
        survey_shards(str(path), (9, 8))
    saved(tmp_path, images=PIXELS / 255, labels=LABELS)
    assert len(survey_shards(str(path), (9, 8))) == 6


def outside(file, folder):
    secret = folder / "secret.bin"
    secret.write_bytes(bytes(64))
    file.create_dataset("images", (4, 4, 4), "u1", external=[(str(secret), 0, 64)])


def linked(file, folder):
    with h5py.File(folder / "other.h5", "w") as other:
        other["images"] = np.zeros((4, 4, 4), np.uint8)
    file["images"] = h5py.ExternalLink(str(folder / "other.h5"), "images")


def renamed(file, folder):
    linked(file, folder)
    file.move("images", "inner")
    file["images"] = h5py.SoftLink("/inner")


def virtual(file, folder):
    layout = h5py.VirtualLayout((4, 4, 4), np.uint8)
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "images", (4, 4, 4), np.uint8)
    file.create_virtual_dataset("images", layout)


@pytest.mark.parametrize("write", [outside, linked, renamed, virtual])
def test_an_hdf5_file_leads_to_no_other_file(tmp_path, write):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        write(file, tmp_path)
        file["labels"] = [0, 1, 0, 1]
    for read in (find_pictures, lambda path: row_blocks(str(path))):
        with pytest.raises(DataError, match="other file"):
            read(path)


def test_what_an_hdf5_file_lacks_is_named_once(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x_train"] = [0, 1]
    with pytest.raises(DataError, match=r"^\S+: no array 'images'; it has \['x_train'\]$"):
        read_rows(str(tmp_path / "a.h5"))
