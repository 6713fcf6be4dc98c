"""The family of whole numbers: values, files, and what it can be made of."""

import numpy as np
import pytest

from visionshare import (
    CompactClassifier,
    Deslanted,
    LearnedMaps,
    PatchTemplates,
    Pixels,
    QuantizedLayers,
    Units,
)
from visionshare.datasets import load_dataset
from visionshare.errors import ClassifierFileError, InputError
from visionshare.generators.quantized.examples import EXAMPLES
from visionshare.tensor_file import read_tensor_file, write_tensor_file

CELLS = PatchTemplates(2, 4, 1, masks="cells", n_patches=500)


@pytest.fixture(scope="module")
def images():
    return load_dataset("digits", "train").images[:60]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_features_are_bytes_and_floats_are_rounded_to_bytes(kind, images):
    family = EXAMPLES[kind]().fit(images)
    values = family.transform(images)
    assert np.array_equal(values, np.floor(values))
    assert values.min() >= 0
    assert 20 < values.max() <= 255
    floats = images.astype(np.float32) / 255 + np.float32(0.3 / 255)
    assert np.array_equal(family.transform(floats), values)
    beyond = np.where(images > 0, images.astype(np.float32), np.float32(-1))
    assert np.array_equal(family.transform(beyond), family.transform((images > 0) * np.uint8(255)))


@pytest.mark.parametrize("kind", EXAMPLES)
def test_more_bits_are_closer_to_floats(kind, images):
    coarse = EXAMPLES[kind]()
    part = EXAMPLES[kind]().family.fit(images)
    fine = EXAMPLES[kind]().set_params(bits=8).fit(images)
    expected = part.transform(images)
    correlations = []
    for family in (fine, coarse.fit(images)):
        values = family.transform(images)
        # Each feature has its own exponent.
        moving = np.flatnonzero((expected.std(axis=0) > 0) & (values.std(axis=0) > 0))
        each = [np.corrcoef(values[:, j], expected[:, j])[0, 1] for j in moving]
        correlations.append(np.median(each))
    # Random units weigh features that hardly vary most: few bits leave little of the others.
    assert correlations[0] > (0.7 if "units" in kind else 0.98)
    assert correlations[0] >= correlations[1]
    assert fine.table_bytes >= coarse.table_bytes


def test_a_file_keeps_every_bit(images, tmp_path):
    family = EXAMPLES["quantized-two-bits"]().fit(images)
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
    family = QuantizedLayers(LearnedMaps(CELLS, 2, 2, n_patches=500), bits=4).fit(images)
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


@pytest.mark.parametrize(
    "family",
    [
        Pixels(),
        PatchTemplates(masks="gaussian"),
        LearnedMaps(Deslanted(CELLS)),
        LearnedMaps(Units(CELLS)),
        None,
    ],
)
def test_what_cannot_be_whole_is_refused(family, images):
    with pytest.raises(InputError, match="family"):
        QuantizedLayers(family).fit(images)


def test_bits_are_checked(images):
    with pytest.raises(InputError, match="bits"):
        QuantizedLayers(CELLS, bits=3).fit(images)
