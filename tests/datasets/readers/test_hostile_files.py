"""Files that attacks found untyped errors with: each gets one line that names the file."""

import io
import zipfile

import numpy as np
import pytest

from visionshare.datasets import Augmentation, dataset_info, load_dataset, load_images
from visionshare.datasets.readers.idx import read_idx
from visionshare.datasets.readers.npz import read_npz
from visionshare.errors import DataError, InputError


def packed(**parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


HEADER = npy(np.zeros((2, 3, 3)))
NO_CHARACTER = npy(np.array(["a", "b"])).replace(b"a\0\0\0", b"\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"images": b"no array"}, "is no array"),
        ({"images": HEADER.replace(b"}", b"(")}, "cannot be read as .npz"),
        ({"images": HEADER.replace(b"(2, 3, 3), ", b"(True, 9), ")}, "cannot be read as .npz"),
        ({"images": HEADER, "labels": npy(np.array([0.0, 1]))}, "labels of float64 are neither"),
        ({"images": HEADER, "labels": npy(np.array([True, False]))}, "labels of bool are neither"),
        ({"images": npy(np.array(3.0)), "labels": npy(np.array([1]))}, "a single value"),
        ({"images": HEADER, "labels": npy(np.array([1]))}, "1 labels for 2 images"),
        ({"images": HEADER, "labels": NO_CHARACTER}, "no text"),
        ({"images": HEADER, "labels": npy(np.array([b"\xff", b"a"]))}, "no text"),
    ],
)
def test_an_npz_of_other_things_is_refused(parts, message, tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(packed(**parts))
    with pytest.raises(DataError, match=message) as caught:
        load_images(path)
    assert "\n" not in str(caught.value)


def test_an_npz_is_read_as_before(tmp_path):
    (tmp_path / "a.npz").write_bytes(packed(images=HEADER))
    assert read_npz(tmp_path / "a.npz")["images"].shape == (2, 3, 3)


@pytest.mark.parametrize(
    ("sides", "message"),
    [((1,) * 255, "not an IDX file"), ((0, 2**32 - 1, 2**32 - 1, 2**32 - 1), "too many")],
)
def test_an_idx_header_of_no_array_is_refused(sides, message, tmp_path):
    sizes = np.array(sides, ">u4").tobytes()
    (tmp_path / "a.idx").write_bytes(bytes([0, 0, 8, len(sides)]) + sizes + b"\1")
    with pytest.raises(DataError, match=message):
        read_idx(tmp_path / "a.idx")


ENTRY = 'name = "a"\ntitle = "t"\nlicense = "l"\ncitation = "c"\n'
FILE = f'[[files]]\npath = "{"a" * 5000}"\nsha256 = "0"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY + 'kind = "idx"\nclasses = [1, 2]\nvalue_range = "a"\n', "invalid catalog entry"),
        (ENTRY + "kind = " + "[" * 5000, "invalid catalog entry"),
        (ENTRY + "kind = " + "9" * 5000, "invalid catalog entry"),
        (ENTRY + 'kind = "libsvm"\n', r"no \[splits.train\]"),
        (ENTRY + 'kind = "npz"\n', r"no \[splits.all\]"),
        (ENTRY + 'kind = "plates"\n', "no plates"),
        (
            f'{ENTRY}kind = "npz"\n[splits.all]\nimages = "{"a" * 5000}"\n'
            'labels = "a"\nshape = [1]\n',
            "visionshare data fetch",
        ),
    ],
)
def test_an_entry_of_the_catalog_is_refused_in_one_line(text, message, tmp_path):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        load_dataset("a", "train", tmp_path, catalog=tmp_path)
    assert "\n" not in str(caught.value)


def test_a_name_that_no_system_accepts_is_nowhere(tmp_path):
    with pytest.raises(DataError, match="no folder, file or data set named"):
        load_images("a" * 5000)
    (tmp_path / "a.toml").write_text(ENTRY + 'kind = "npz"\n' + FILE)
    assert dataset_info("a", tmp_path).files[0].path == "a" * 5000


@pytest.mark.parametrize("name", ["sigma", "alpha", "rotation", "scale", "shear"])
@pytest.mark.parametrize("value", [1e308, np.nan])
def test_deformations_have_a_largest_size(name, value):
    with pytest.raises(InputError, match=f"^{name}"):
        Augmentation(**{name: value})
