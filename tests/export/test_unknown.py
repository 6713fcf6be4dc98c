"""Exports refuse what the classifier refuses."""

import ctypes
import shutil
import subprocess
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from tests.classifier.test_unknown import pictures
from visionshare import CompactClassifier, PatchTemplates, Pixels
from visionshare.classifier import learn_unknown_rule
from visionshare.errors import InputError
from visionshare.export import c_program, onnx_program

POINTER = ctypes.c_void_p


@cache
def made(classes=("a", "b", "c"), label=None, color=False):
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
    [(("a", "b", "c"), None, False), ((3, 5, 9), -1, False), ((0.5, 1.5, 2.5), -1.0, True)],
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
    model, _ = made()
    names = [
        [output.name for output in onnx.load_from_string(onnx_program(one).content).graph.output]
        for one in (model, replace(model, unknown=None))
    ]
    assert names == [
        ["label", "probabilities", "scores", "known"],
        ["label", "probabilities", "scores"],
    ]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def known_in_c(program, folder, score=np.float32):
    """Compile a program of three classes; return the function of an image that says its share."""
    for name, text in program.files.items():
        (folder / name).write_text(text)
    flags = ["-O2", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    command = ["cc", *flags, "bars.c", "-o", "bars.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "bars.so"))
    library.bars_known.restype = ctypes.c_float
    work = np.empty(program.ram + 64, np.uint8)
    scores = np.empty(3, score)

    def known(image):
        image, memory, found = (a.ctypes.data_as(POINTER) for a in (image, work, scores))
        library.bars_scores(image, memory, found)
        return library.bars_known(image, memory, found)

    return known


def without_distance(model):
    """Return the classifier with a rule as files of former versions hold it."""
    rule = model.unknown
    weights = np.delete(rule.weights, -2, axis=1)
    rule = replace(rule, weights=weights, directions=None, feature_means=None)
    return replace(model, unknown=rule)


@pytest.mark.parametrize(
    ("color", "quantize", "plain"),
    [(False, "none", False), (True, "none", True), (True, "int16", False)],
)
def test_c_gives_the_same_shares(tmp_path, color, quantize, plain):
    model, images = made(color=color)
    assert model.unknown.directions is not None
    model = without_distance(model) if plain else model
    program = c_program(model, "bars", quantize=quantize)
    known = known_in_c(program, tmp_path)
    rng = np.random.default_rng(5)
    others = rng.integers(0, 256, (20, *model.image_shape), np.uint8)
    every = np.concatenate([images[:60], others, images[:20] // 2, np.zeros_like(images[:1])])
    assert_allclose([known(image) for image in every], model.known(every), rtol=0.02, atol=1e-6)
    assert "#define BARS_REJECT 0.01" in program.files["bars.h"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_whole_numbers_refuse_nearly_the_same(tmp_path):
    images, labels = pictures(300, 0)
    family = PatchTemplates(5, 12, 2).fit(images)
    values = family.transform(images)
    fitted = LogisticRegression(max_iter=300).fit(values, labels)
    model = CompactClassifier(family, fitted.coef_, fitted.intercept_, fitted.classes_)
    rule = learn_unknown_rule(model, images, pictures(300, 1)[0], unknown_label=-1)
    assert rule.directions is not None
    model = replace(model, unknown=rule)
    program = c_program(model, "bars", quantize="int8")
    assert program.score == "int32"
    assert program.reference(images[:5]).shape == (5, 3)
    known = known_in_c(program, tmp_path, np.int32)
    rng = np.random.default_rng(5)
    others = rng.integers(0, 256, (30, *model.image_shape), np.uint8)
    assert max(map(known, others)) < 0.01
    few = pictures(100, 2)[0]
    assert np.mean([known(image) >= 0.01 for image in few]) > 0.9
    assert np.corrcoef([known(image) for image in few], model.known(few))[0, 1] > 0.8


def test_stages_need_all_features():
    model, _ = made()
    with pytest.raises(InputError, match="early_exit"):
        c_program(model, early_exit=True)


def test_c_without_a_rule_is_as_before():
    model, _ = made()
    assert "known" not in "".join(c_program(replace(model, unknown=None)).files.values())
