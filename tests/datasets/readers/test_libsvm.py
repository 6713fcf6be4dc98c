"""LIBSVM files: read as written, refused when damaged."""

import bz2
import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import dump_svmlight_file

from visionshare.datasets import load_dataset
from visionshare.datasets.readers.libsvm import read_libsvm
from visionshare.errors import DataError


def _written(path, seed=0, n=20):
    rng = np.random.default_rng(seed)
    images = np.where(rng.random((n, 3, 4)) < 0.3, 0, rng.uniform(-1, 1, (n, 3, 4)))
    labels = np.arange(n) % 4 + 1
    plain = path.with_name("plain")
    dump_svmlight_file(images.reshape(n, -1), labels, str(plain), zero_based=False)
    content = plain.read_bytes()
    pack = {".bz2": bz2.compress, ".gz": gzip.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(content))
    return images, labels


@pytest.mark.parametrize("name", ["a.bz2", "a.gz", "a.txt"])
def test_images_and_labels_come_back(tmp_path, name):
    images, labels = _written(tmp_path / name)
    values, classes = read_libsvm(tmp_path / name, (3, 4))
    assert values.dtype == np.float32
    assert_allclose(values, images, rtol=1e-6)
    assert_array_equal(classes, labels)


@pytest.mark.parametrize("name", ["a.bz2", "a.gz", "a.txt"])
def test_damage_is_one_line(tmp_path, name):
    path = tmp_path / name
    _written(path)
    whole = path.read_bytes()
    broken = [b"\x00" * 50, b"", whole[: len(whole) // 2] if name != "a.txt" else b"1 2:x\n"]
    broken.append(b"\xff" + whole[1:])
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(DataError, match=path.name) as caught:
            read_libsvm(path, (3, 4))
        assert "\n" not in str(caught.value)
    path.write_bytes(whole)
    with pytest.raises(DataError, match="cannot be read as LIBSVM text"):
        read_libsvm(path, (2, 4))
    with pytest.raises(DataError, match="more than 100 bytes"):
        read_libsvm(path, (3, 4), max_bytes=100)
    with pytest.raises(DataError, match="No such file"):
        read_libsvm(tmp_path / "none.bz2", (3, 4))


def test_a_catalog_entry_is_brought_to_zero_and_one(tmp_path):
    (tmp_path / "tiny").mkdir()
    images, labels = _written(tmp_path / "tiny" / "a.bz2")
    split = 'images = "tiny/a.bz2"\nlabels = "tiny/a.bz2"\nshape = [20, 3, 4]\n'
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\ntitle = "t"\nkind = "libsvm"\nlicense = "l"\ncitation = "c"\n'
        'classes = ["0", "1", "2", "3"]\nvalue_range = [-1.0, 1.0]\n'
        f"[splits.train]\n{split}[splits.test]\n{split.replace('20', '19')}"
    )
    loaded = load_dataset("tiny", "train", tmp_path, catalog=tmp_path)
    assert_allclose(loaded.images, (images + 1) / 2, atol=1e-6)
    assert_array_equal(loaded.labels, labels - 1)
    with pytest.raises(DataError, match="has shape"):
        load_dataset("tiny", "test", tmp_path, catalog=tmp_path)
