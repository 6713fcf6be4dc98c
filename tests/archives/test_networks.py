"""Classifiers of nested families, as former versions wrote them, answer as they did.

``make_v2.py`` wrote them: every family, every nesting of layers, floats and few bits.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import visionshare
from visionshare.errors import VisionshareError
from visionshare.export import c_program, compile_classifier, onnx_program, run_onnx

FOLDER = Path(__file__).parent / "classifiers-v2"
SAMPLES = sorted(path.stem for path in FOLDER.glob("*.safetensors"))


@pytest.fixture(scope="module")
def answers():
    """Return images, and by sample scores, multiply-accumulates and the exports there were."""
    with np.load(FOLDER / "answers.npz") as file:
        return dict(file)


def images_of(model, answers):
    in_color = len(model.image_shape) == 3
    return answers[f"images-{'color' if in_color else 'gray'}-8-bytes"]


def assert_answers(scores, labels, expected, classes):
    assert_allclose(scores, expected, rtol=0, atol=2e-5 * np.abs(expected).max())
    assert_array_equal(labels, classes[np.argmax(expected, axis=1)])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_answers_as_it_did(name, answers, tmp_path):
    model = visionshare.load(FOLDER / f"{name}.safetensors")
    images = images_of(model, answers)
    expected = answers[f"{name}-scores"]
    assert_answers(model.decision_function(images), model.predict(images), expected, model.classes_)
    # Chains counted the cells that no feature needs, too.
    macs = int(answers[f"{name}-macs"])
    assert model.macs == macs or (name.startswith("chains") and 0.9 * macs < model.macs < macs)
    # Written by today's version it is the same.
    model.save(tmp_path / "now.safetensors")
    again = visionshare.load(tmp_path / "now.safetensors")
    assert_array_equal(again.decision_function(images), model.decision_function(images))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_exported_as_it_was(name, answers):
    model = visionshare.load(FOLDER / f"{name}.safetensors")
    images = images_of(model, answers)
    expected = answers[f"{name}-scores"]
    in_c, in_onnx = answers[f"{name}-exports"]
    if in_c:
        compiled = compile_classifier(model)
        scores = compiled.decision_function(images)
        assert_answers(scores, compiled.predict(images), expected, model.classes_)
    else:
        with pytest.raises(VisionshareError):
            c_program(model)
    if in_onnx:
        result = run_onnx(onnx_program(model), images)
        assert_answers(result.scores, result.labels, expected, model.classes_)
    else:
        with pytest.raises(VisionshareError):
            onnx_program(model)
