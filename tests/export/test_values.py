"""Values in exported C and ONNX are those of Python."""

import shutil

import numpy as np
import pytest

from tests.export.test_c_families import run_example
from visionshare import CompactClassifier, Pixels
from visionshare.answers import ValueRule
from visionshare.export import compile_classifier, onnx_program, run_onnx
from visionshare.export.c.program import c_program

IMAGES = np.random.default_rng(0).integers(0, 256, (60, 4, 4), np.uint8)


@pytest.fixture(params=[None, 360.0], ids=["values", "angles"])
def model(request):
    """Return a classifier of random weights, whose values are all over their range."""
    rng = np.random.default_rng(1)
    levels = np.sort(rng.uniform(0, 360, 12))
    family = Pixels().fit(np.zeros((1, 4, 4)))
    weights = rng.normal(size=(12, 16)) * 5
    rule = ValueRule(tuple(levels.tolist()), request.param)
    return CompactClassifier(family, weights, np.zeros(12), levels, temperature=0.7, answer=rule)


def test_c_says_the_values_of_python(model, tmp_path):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    program = c_program(model, "dial")
    _, said = run_example(tmp_path, program, IMAGES, gcc)
    off = model.answer.errors(np.array(said, np.float64), model.predict(IMAGES))
    assert np.abs(off).max() < 1e-3
    quantized = compile_classifier(model, quantize="int16", cache_dir=tmp_path / "cache")
    off = model.answer.errors(quantized.predict(IMAGES), model.predict(IMAGES))
    assert np.abs(off).mean() < 0.1


def test_onnx_says_the_values_of_python(model):
    pytest.importorskip("onnxruntime")
    found = run_onnx(onnx_program(model), IMAGES)
    off = model.answer.errors(found.value, model.predict(IMAGES))
    assert np.abs(off).max() < 1e-3
    np.testing.assert_allclose(found.probabilities, model.predict_proba(IMAGES), atol=1e-5)
