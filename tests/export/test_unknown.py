"""Exports refuse what the classifier refuses."""

import ctypes
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.classifier.test_unknown import pictures
from visionshare import CompactClassifier, Pixels
from visionshare.classifier import learn_unknown_rule
from visionshare.export import c_program, onnx_program

POINTER = ctypes.c_void_p


def made(classes, label=None, color=False):
    images, labels = pictures(300, 0)
    held_out = pictures(300, 1)[0]
    if color:
        images, held_out = (
            np.stack([some, some // 2, some], axis=3) for some in (images, held_out)
        )
    weights = np.stack([images[labels == c].mean(axis=0).ravel() for c in range(3)]) / 255
    weights -= weights.mean(axis=0)
    plain = CompactClassifier(
        Pixels().fit(images), weights, np.zeros(3), np.array(classes), temperature=1.7
    )
    rule = learn_unknown_rule(plain, images, held_out, unknown_label=label)
    return replace(plain, unknown=rule), held_out


@pytest.mark.parametrize(
    ("classes", "label", "color"),
    [(["a", "b", "c"], None, False), ([3, 5, 9], -1, False), ([0.5, 1.5, 2.5], -1.0, True)],
)
def test_onnx_gives_the_same_labels_and_shares(classes, label, color):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model, images = made(classes, label, color)
    rng = np.random.default_rng(5)
    others = rng.integers(0, 256, (20, *model.image_shape), np.uint8)
    every = np.concatenate([images, others, images // 2, np.zeros_like(images[:1])])
    session = runtime.InferenceSession(onnx_program(model).content)
    answers, known = session.run(["label", "known"], {"images": every})
    expected = model.known(every)
    # At the strangest picture that calibrated the share has a step.
    others = np.delete(np.arange(len(every)), np.argmin(expected[: len(images)]))
    assert_allclose(known[others], expected[others], rtol=0.02, atol=1e-6)
    clear = np.abs(expected - 0.01) > 0.001
    assert_array_equal(answers[clear], model.predict(every)[clear])
    assert 0 < np.mean(expected < 0.01) < 1


def test_onnx_without_a_rule_has_no_share():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    model, _ = made(["a", "b", "c"])
    names = [
        [output.name for output in onnx.load_from_string(onnx_program(one).content).graph.output]
        for one in (model, replace(model, unknown=None))
    ]
    assert names == [
        ["label", "probabilities", "scores", "known"],
        ["label", "probabilities", "scores"],
    ]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("color", [False, True])
def test_c_gives_the_same_shares(tmp_path, color):
    model, images = made(["a", "b", "c"], None, color)
    program = c_program(model, "bars")
    for name, text in program.files.items():
        (tmp_path / name).write_text(text)
    flags = ["-O2", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    command = ["cc", *flags, "bars.c", "-o", "bars.so", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    function = ctypes.CDLL(str(tmp_path / "bars.so")).bars_known
    function.restype = ctypes.c_float
    rng = np.random.default_rng(5)
    others = rng.integers(0, 256, (20, *model.image_shape), np.uint8)
    every = np.concatenate([images[:60], others, images[:20] // 2, np.zeros_like(images[:1])])
    scores = model.decision_function(every)
    pairs = zip(every, scores, strict=True)
    known = [function(i.ctypes.data_as(POINTER), s.ctypes.data_as(POINTER)) for i, s in pairs]
    assert_allclose(known, model.known(every), rtol=0.02, atol=1e-6)
    assert "#define BARS_REJECT 0.01" in program.files["bars.h"]


def test_c_without_a_rule_is_as_before():
    model, _ = made(["a", "b", "c"])
    assert "known" not in "".join(c_program(replace(model, unknown=None)).files.values())
