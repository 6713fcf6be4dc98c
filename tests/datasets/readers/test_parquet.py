"""Parquet files of the form that dataset hubs publish: read whole, in order, in bounded memory."""

import io
import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare.datasets import dataset_info, fetch_dataset, load_dataset, load_images
from visionshare.datasets.catalog import verify_dataset
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.readers.parquet import (
    find_shards,
    has_parquet,
    parquet_pictures,
    pictures_of_files,
)
from visionshare.errors import DataError
from visionshare.recipes import load_recipe, train

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = ["cat", "dog"]
RECORD = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])


def png(image):
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return out.getvalue()


def noted(names=NAMES):
    features = {"img": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names}}
    return json.dumps({"info": {"features": features}})


def write(file, pictures, labels, huggingface=None, column="img", kind=RECORD, **options):
    """Write a file of pictures, arrays or bytes."""
    rows = [{"bytes": png(p) if isinstance(p, np.ndarray) else p, "path": None} for p in pictures]
    table = pyarrow.table({column: pyarrow.array(rows, kind), "label": labels, "extra": labels})
    metadata = {"huggingface": noted() if huggingface is None else huggingface}
    parquet.write_table(table.replace_schema_metadata(metadata), file, **options)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (7, 4, 5, 3), np.uint8)


LABELS = [0, 1, 1, 0, 1, 0, 0]


def test_shards_are_read_in_order_row_group_by_row_group(tmp_path, images):
    folder = tmp_path / "pets"
    folder.mkdir()
    for i, rows in enumerate((slice(5), slice(5, 7))):
        file = folder / f"train-0000{i}-of-00002.parquet"
        write(file, images[rows], LABELS[rows], column="image", row_group_size=2)
    write(folder / "test.parquet", images[:3], LABELS[:3])
    pets = load_images(folder, "train", mode="color")
    assert_array_equal(pets.images, images)
    assert (pets.labels.tolist(), pets.classes, pets.name) == (LABELS, ("cat", "dog"), "pets")
    assert pets.labels.dtype == np.int64
    assert len(load_images(folder, "test")) == 3
    gray = load_images(folder, "train")
    assert_array_equal(gray.images[0], np.asarray(Image.fromarray(images[0]).convert("L")))
    assert load_images(folder / "test.parquet", "train", mode="color").images.shape == (3, 4, 5, 3)
    assert load_images(folder, "test", size=(8, 8)).images.shape == (3, 8, 8)
    # Snapshots of hubs have a folder for the configuration.
    assert_array_equal(load_images(tmp_path, "train", mode="color").images, images)
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "a.parquet", images[:2], LABELS[:2])
    with pytest.raises(DataError, match="name one of other, pets"):
        load_images(tmp_path, "train")
    assert len(load_images(tmp_path / "other", "test")) == 2
    (folder / "train-00000-of-00002.parquet").unlink()
    with pytest.raises(DataError, match="1 of 2 shards are here"):
        load_images(folder, "train")
    with pytest.raises(DataError, match=r"no files validation-\*\.parquet; it has test, train"):
        find_shards(folder, "validation")


def test_splits_may_be_folders(tmp_path, images):
    for split, n in (("train", 5), ("test", 2)):
        (tmp_path / split).mkdir()
        write(tmp_path / split / "0000.parquet", images[:n], LABELS[:n])
        assert len(load_images(tmp_path, split)) == n
    with pytest.raises(DataError, match="no Parquet files"):
        find_shards(tmp_path / "none")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["dog", "cat", "cat", "dog", "cat", "dog", "dog"], ("cat", "dog")),
        (pyarrow.array(["b", "a", "a", "b", "a", "b", "b"]).dictionary_encode(), ("a", "b")),
        ([10, 9, 9, 10, 9, 10, 10], ("9", "10")),
    ],
)
def test_labels_without_names_are_their_own(tmp_path, images, labels, classes):
    """As other programs write tables: no metadata, and perhaps bytes without a record."""
    first, second = [1, 0, 0, 1, 0, 1, 1], [0, 0]
    expected = [*first, *second]
    for name, rows, chosen in (("a", images, slice(7)), ("b", images[1:3], slice(1, 3))):
        pictures = pyarrow.array([png(picture) for picture in rows], pyarrow.binary())
        table = pyarrow.table({"image": pictures, "label": labels[chosen]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    found = load_images(tmp_path, mode="color")
    assert (found.classes, found.labels.tolist()) == (classes, expected)
    assert_array_equal(found.images[7:], images[1:3])
    pictures = parquet_pictures(tmp_path)
    assert (pictures.classes, pictures.labels.tolist()) == (classes, expected)
    write(tmp_path / "c.parquet", images, LABELS, column="image")
    with pytest.raises(DataError, match=r"c\.parquet: classes differ from .*a\.parquet"):
        load_images(tmp_path)


def test_what_is_missing_is_said(tmp_path, images):
    file = tmp_path / "a.parquet"

    def refused(message, pictures=images, labels=LABELS, **options):
        write(file, pictures, labels, **options)
        with pytest.raises(DataError, match=message) as caught:
            load_images(file, mode="color")
        assert "\n" not in str(caught.value)

    refused("does not name the classes", huggingface=noted("cat"))
    refused("does not name the classes, each once", huggingface=noted(["cat", "cat"]))
    refused("does not name the classes, each once", huggingface=noted(["cat", 3]))
    refused("no columns 'image'", column="picture")
    refused(r"'img' is no record with bytes", kind=pyarrow.struct([("path", pyarrow.string())]))
    text = pyarrow.struct([("bytes", pyarrow.list_(pyarrow.int8()))])
    refused(r"'img' is no record with bytes", [b""], [0], kind=text)
    refused("'label' is no class, a text or an index, but double", labels=[0.5] * 7)
    refused("row 2: label 2, not a class from 0 to 1", labels=[0, 1, 2, 0, 1, 0, 0])
    refused("row 1: label -1", labels=[0, -1, 1, 0, 1, 0, 0])
    refused("row 6: label None", labels=[*LABELS[:6], None])
    refused("row 1: cannot be read as an image", [images[0], None], [0, 1])
    refused("row 1: cannot be read as an image", [images[0], b"\x89PNG"], [0, 1])
    refused(r"row 1: shape \(5, 4, 3\), not \(4, 5, 3\); give a size",
            [images[0], images[0].transpose(1, 0, 2).copy()], [0, 1])  # fmt: skip
    refused("no images", [], pyarrow.array([], pyarrow.int64()))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        parquet_pictures(tmp_path / "none.parquet")
    write(file, images, LABELS)
    write(tmp_path / "b.parquet", images, LABELS, noted(["dog", "cat"]))
    with pytest.raises(DataError, match=r"b\.parquet: classes differ from .*a\.parquet"):
        pictures_of_files([(None, [file, tmp_path / "b.parquet"])], "both")


def test_all_images_together_are_bounded(tmp_path, images):
    file = tmp_path / "a.parquet"
    write(file, images, LABELS)
    pictures = parquet_pictures(file)
    assert len(read_pictures(pictures, max_bytes=7 * 20).images) == 7
    with pytest.raises(DataError, match=r"7 images of shape \(4, 5\) take 140.0 bytes"):
        read_pictures(pictures, max_bytes=7 * 20 - 1)
    # A picture that says that it is too large is not decoded.
    bomb = png(np.zeros((1, 1), np.uint8)).replace(b"IHDR\0\0\0\1\0\0\0\1", b"IHDR\0\1\0\0\0\1\0\0")
    write(file, [bomb], [0])
    with pytest.raises(DataError, match="row 0: "):
        load_images(file)


def test_rows_of_one_large_picture_do_not_fill_the_memory(tmp_path, images):
    # Once in the file; as many copies as there are rows are 100 megabytes.
    large = png(images[0]) + bytes(1 << 20)
    file = tmp_path / "a.parquet"
    options = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 24}
    write(file, [large] * 100, [0] * 100, **options)
    assert file.stat().st_size < 1 << 20
    whole = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(whole)
    pyarrow.set_memory_pool(pool)
    try:
        assert_array_equal(load_images(file, mode="color").images[99], images[0])
    finally:
        pyarrow.set_memory_pool(whole)
    assert 1 << 20 < pool.max_memory() < 1 << 25


def test_damaged_files_are_refused_or_read(tmp_path, images):
    file = tmp_path / "a.parquet"
    write(file, images, LABELS, row_group_size=3)
    whole, rng, refused = file.read_bytes(), np.random.default_rng(0), 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        kept = rng.integers(len(damaged)) if rng.random() < 0.2 else len(damaged)
        file.write_bytes(damaged[:kept])
        try:
            assert load_images(file).images.ndim == 3
        except DataError:
            refused += 1
    assert refused > 50


def test_without_pyarrow_an_error_says_what_to_install(tmp_path, images, monkeypatch):
    write(tmp_path / "a.parquet", images, LABELS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r'pip install "visionshare\[parquet\]"'):
        load_images(tmp_path / "a.parquet")


def test_cifar10_of_the_catalog(tmp_path, monkeypatch):
    rng, info = np.random.default_rng(0), dataset_info("cifar10")
    labels = np.arange(40) % 10
    pictures = rng.integers(0, 256, (40, 32, 32, 3), np.uint8) // 2 + 12 * labels[
        :, None, None, None
    ].astype(np.uint8)
    monkeypatch.setenv("VISIONSHARE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="give --data DIR; see https://"):
        load_dataset("cifar10", "train", tmp_path)
    with pytest.raises(DataError, match="no download addresses"):
        fetch_dataset("cifar10", tmp_path)
    assert verify_dataset("cifar10", tmp_path) == {}
    folder = tmp_path / "cifar10"
    folder.mkdir()
    for split in ("train", "test"):
        file = folder / f"{split}-00000-of-00001.parquet"
        write(file, pictures, labels.tolist(), noted(list(info.classes)))
    loaded = load_images("cifar10", "test", tmp_path)
    assert_array_equal(loaded.images, pictures)
    assert (loaded.name, loaded.classes) == ("cifar10", info.classes)
    small = ["data.source=cifar10", "learner.rounds=3", "features.pool=pixels"]
    result = train(load_recipe("digits", small), tmp_path / "out", tmp_path)
    assert result.classifier.family.image_shape_ == (32, 32, 3)
    write(file, pictures[:, :8, :8].copy(), labels.tolist(), noted(list(info.classes)))
    with pytest.raises(DataError, match="images or classes of another data set"):
        load_images("cifar10", "test", tmp_path)


def test_a_name_that_is_too_long_for_the_system_holds_no_parquet(tmp_path):
    assert not has_parquet(tmp_path / ("0" * 300))
    assert not has_parquet(tmp_path / "absent")
