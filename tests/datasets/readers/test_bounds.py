"""Files that stand for more than they hold, or have very many parts, are refused at once."""

import gzip
import io
import json
import struct
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from visionshare import load
from visionshare.datasets import decode_image, load_images, picture_header
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.readers.libsvm import read_libsvm
from visionshare.datasets.readers.registry import find_pictures
from visionshare.errors import ClassifierFileError, DataError, RecipeError
from visionshare.recipes import load_recipe

ZEROS = gzip.compress(bytes(1 << 24), mtime=0)


def test_gigabytes_of_zeros_are_refused(tmp_path):
    path = tmp_path / "a-images-idx3-ubyte.gz"
    head = bytes([0, 0, 8, 3]) + struct.pack(">III", 1 << 20, 32, 32)
    path.write_bytes(gzip.compress(head) + ZEROS * 64)
    with pytest.raises(DataError, match="announces 1073741824 bytes, too many"):
        load_images(path)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\n" * (1 << 27)))
    with pytest.raises(DataError, match="unpacks to more"):
        read_libsvm(tmp_path / "a.gz", (2, 2))
    large = tarfile.TarInfo("a/1.txt")
    large.size = 1 << 30
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(large.tobuf()) + ZEROS * 64)
    with pytest.raises(DataError, match="too large"):
        load_images(tmp_path / "a.tar.gz")


def test_a_list_of_very_many_arrays_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as packed:
        for number in range(5000):
            packed.writestr(zipfile.ZipInfo(f"{number}.npy"), b"")
    with pytest.raises(DataError, match="headers of more than"):
        load_images(tmp_path / "a.npz")


@pytest.mark.parametrize("suffix", [".npz", "-images-idx3-ubyte"])
def test_more_images_than_bytes_allow_are_refused(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    n = 200_000
    if suffix == ".npz":
        np.savez(path, images=np.zeros((n, 1, 1), np.uint8), labels=np.zeros(n, np.uint8))
    else:
        path.write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">III", n, 1, 1) + bytes(n))
        labels = bytes([0, 0, 8, 1]) + struct.pack(">I", n) + bytes(n)
        (tmp_path / "a-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(DataError, match="200000 images in"):
        load_images(path)


@pytest.mark.parametrize("kind", [np.int32, "S6", "U6"])
def test_very_many_classes_are_refused(tmp_path, kind):
    labels = np.arange(60_000).astype(kind)
    np.savez(tmp_path / "a.npz", images=np.zeros((60_000, 1, 1), np.uint8), labels=labels)
    with pytest.raises(DataError, match=r"60000 different labels; accepted: at most 50000 classes"):
        load_images(tmp_path / "a.npz")


def test_a_gif_of_very_many_empty_comments_is_refused():
    file = io.BytesIO()
    Image.new("L", (4, 4)).save(file, "gif")
    whole = file.getvalue()
    start = whole.index(b"\x2c", 13)
    content = whole[:start] + b"\x21\xfe\x00" * 100_000 + whole[start:]
    for read in (decode_image, picture_header):
        with pytest.raises(DataError, match="very many small blocks"):
            read(io.BytesIO(content))


def test_very_many_packed_parts_are_refused(tmp_path):
    head = bytes([0, 0, 8, 3]) + struct.pack(">III", 5000, 1, 1)
    path = tmp_path / "a-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(head) + gzip.compress(b"\0") * 5000)
    with pytest.raises(DataError, match="very many packed parts"):
        load_images(path)


def member(name, content=b"", kind=tarfile.REGTYPE):
    about = tarfile.TarInfo(name)
    about.size, about.type = len(content), kind
    return about.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (member("x", b"9 abc=de\n" * 10_000, tarfile.XHDTYPE) + member("a/1.png"), "at once"),
        (member("x", b"7 a=bc\n", tarfile.XHDTYPE) * 200, "headers of more than"),
        (member("x", b"a" * 500, tarfile.GNUTYPE_LONGNAME) * 200, "headers of more than"),
        (
            b"".join(
                member("x", b"11 k%03d=ab\n" % number, tarfile.XGLTYPE) + member("a/1.txt")
                for number in range(200)
            ),
            "too much about all files",
        ),
    ],
    ids=["long", "nested", "names", "for all"],
)
def test_headers_of_tars_have_an_end(tmp_path, content, problem):
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(DataError, match=problem):
        load_images(tmp_path / "a.tar")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (b"1.png,b\n" * 2000, "accepted: 1000 rows of a picture"),
        (b"./1.png,b\n1.png,b\n" * 600, "accepted: 1000 rows of a picture"),
        (b"1.png,b\n" + b"\n" * 200_000, "more than 100000 empty rows"),
        (b"1.png,b" + b"," * 100_000, "a row of more than 65536 characters"),
        (b"1.png,b" + b',"\n"' * 50_000, "a row of more than 65536 characters"),
        (b'1.png,"' + b"a" * 100_000, "a row of more than 65536 characters"),
    ],
)
def test_rows_of_tables_have_an_end(tmp_path, rows, problem):
    Image.new("L", (4, 4)).save(tmp_path / "1.png")
    (tmp_path / "a.csv").write_bytes(b"path,label\n" + rows)
    with pytest.raises(DataError, match=problem):
        load_images(tmp_path / "a.csv")


def test_lines_of_libsvm_are_images_however_short(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"0\n" * 100_000)
    with pytest.raises(DataError, match="images of 313603136 bytes in a text of 200000"):
        read_libsvm(tmp_path / "a.txt", (28, 28))


@pytest.mark.parametrize(
    "text", ["a" + ".a" * 30_000 + " = 1", "[a" + ".a" * 30_000 + "]", "#\n" * 100_000]
)
def test_recipes_have_short_keys_and_an_end(tmp_path, text):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(RecipeError, match="invalid TOML"):
        load_recipe(tmp_path / "a.toml")


def test_a_classifier_with_a_large_header_is_refused(tmp_path):
    text = json.dumps({"a": [1] * 2_000_000}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(ClassifierFileError, match="no safetensors header"):
        load(tmp_path / "a.safetensors")


@pytest.mark.parametrize("chosen", [None, np.arange(9) % 2 == 0])
@pytest.mark.parametrize("shape", [(9, 4, 3), (9, 4, 3, 3), (9, 5)])
def test_arrays_are_read_at_once_as_they_are_one_by_one(tmp_path, shape, chosen):
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    file = io.BytesIO()
    np.savez(file, x_train=images[:6], y_train=[0, 1] * 3, x_test=images[6:], y_test=[1, 0, 1])
    (tmp_path / "a.npz").write_bytes(file.getvalue())
    pictures = find_pictures(tmp_path / "a.npz")
    whole = read_pictures(pictures, chosen=chosen)
    pictures = pictures.__class__(**{**vars(pictures), "blocks": ()})
    single = read_pictures(pictures, chosen=chosen)
    assert whole.images.tobytes() == single.images.tobytes()
    assert whole.images.shape == single.images.shape
    assert whole.numbers.tolist() == single.numbers.tolist()
    assert (whole.names, whole.digests) == (single.names, single.digests)
