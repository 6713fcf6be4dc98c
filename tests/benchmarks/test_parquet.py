"""CIFAR-10 as Parquet: a file of the form that dataset hubs publish."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from benchmarks.peers.data import load_split
from visionshare.errors import DataError


def _png(image):
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return out.getvalue()


def _write(file, images, labels, metadata):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"bytes": _png(image), "path": None} for image in images]
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    table = pyarrow.table({"img": pyarrow.array(rows, kind), "label": labels})
    parquet.write_table(table.replace_schema_metadata(metadata), file)


def test_all_files_of_a_split_are_read_in_order(tmp_path):
    (tmp_path / "cifar10").mkdir()
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 4, 3), np.uint8)
    noted = {"info": {"features": {"label": {"names": ["cat", "dog"]}}}}
    metadata, labels = {"huggingface": json.dumps(noted)}, [0, 1, 1, 0, 1]
    for i, rows in enumerate((slice(3), slice(3, 5))):
        file = tmp_path / "cifar10" / f"train-0000{i}-of-00002.parquet"
        _write(file, images[rows], labels[rows], metadata)
    train = load_split("cifar10", "train", tmp_path)
    np.testing.assert_array_equal(train.images, images)
    assert train.labels.tolist() == labels
    assert train.classes == ("cat", "dog")
    with pytest.raises(DataError, match=r"test-\*\.parquet"):
        load_split("cifar10", "test", tmp_path)
    _write(tmp_path / "cifar10" / "test-0.parquet", images, labels, {})
    with pytest.raises(DataError, match="does not name the classes"):
        load_split("cifar10", "test", tmp_path)


def test_parquet_has_a_folder():
    with pytest.raises(DataError, match="--data"):
        load_split("cifar10", "train", None)
