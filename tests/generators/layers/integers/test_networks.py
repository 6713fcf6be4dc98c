"""Networks of integers: values, files, and damaged files."""

import numpy as np
import pytest

from tests.generators.examples import INTEGERS
from visionshare import CompactClassifier, Network, Templates
from visionshare.datasets import load_dataset
from visionshare.errors import ClassifierFileError, InputError
from visionshare.files.tensors import read_tensor_file, write_tensor_file
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.tuning import quantized


@pytest.fixture(scope="module")
def images():
    return load_dataset("digits", "train").images[:60]


@pytest.mark.parametrize("kind", INTEGERS)
def test_features_are_bytes_and_floats_are_rounded_to_bytes(kind, images):
    family = INTEGERS[kind](images)
    values = family.transform(images)
    assert np.array_equal(values, np.floor(values))
    assert values.min() >= 0
    assert 20 < values.max() <= 255
    floats = images.astype(np.float32) / 255 + np.float32(0.3 / 255)
    assert np.array_equal(family.transform(floats), values)
    beyond = np.where(images > 0, images.astype(np.float32), np.float32(-1))
    assert np.array_equal(family.transform(beyond), family.transform((images > 0) * np.uint8(255)))


def test_a_file_keeps_every_bit(images, tmp_path):
    family = INTEGERS["two-bits"](images)
    rng = np.random.default_rng(0)
    weights = rng.integers(-7, 8, (3, family.n_features_))
    model = CompactClassifier(family, weights, rng.integers(-900, 900, 3), np.arange(3))
    model.save(tmp_path / "whole.safetensors")
    again = CompactClassifier.load(tmp_path / "whole.safetensors")
    expected = family.transform(images).astype(np.int64) @ weights.T + model.intercept.astype(int)
    assert np.array_equal(again.decision_function(images), expected)
    assert [layer.bits for layer in again.family.layers_] == [2, 2]


@pytest.mark.parametrize(
    ("name", "value"),
    [("0.weights", 1 << 40), ("0.shifts", 77), ("0.biases", 1 << 40), ("places", 10_000)],
)
def test_damaged_files_are_refused(name, value, images, tmp_path):
    plain = Network([Templates(2, 2, pool=2, n_patches=500), Templates(4, 2, grid=1)]).fit(images)
    family = quantized(plain, images, Bits(4, 4))
    n = family.n_features_
    path = tmp_path / "whole.safetensors"
    CompactClassifier(family, np.ones((2, n)), np.zeros(2), np.arange(2)).save(path)
    values, arrays = read_tensor_file(path, "visionshare-classifier", {2}, ClassifierFileError)
    broken = arrays[f"family.{name}"].copy()
    broken.ravel()[0] = value
    kept = {key: values[key] for key in ("family", "classes", "temperature", "path", "metadata")}
    changed = {**arrays, f"family.{name}": broken}
    write_tensor_file(path, "visionshare-classifier", 2, kept, changed)
    with pytest.raises(ClassifierFileError):
        CompactClassifier.load(path)


def test_bits_are_checked(images):
    plain = Network([Templates(2, 2, grid=1, n_patches=500)]).fit(images)
    with pytest.raises(InputError, match="bits"):
        quantized(plain, images, Bits(3, 3))
