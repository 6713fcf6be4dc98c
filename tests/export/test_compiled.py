"""A classifier that computes with its own C."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import visionshare.export
from visionshare import CompactClassifier, Stumps
from visionshare.classifier import EarlyExit
from visionshare.errors import ExportError, InputError
from visionshare.export import compile_classifier, toolchain

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler on this machine"
)


@pytest.fixture(scope="module")
def compiled(classifier):
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("no C compiler on this machine")
    return compile_classifier(classifier("patches"))


def test_as_python(compiled, classifier, images):
    model, held = classifier("patches"), images[1]
    expected = model.decision_function(held)
    scores = compiled.decision_function(held)
    assert scores.dtype == np.float32
    assert np.abs(scores - expected).max() <= 1e-5 * np.abs(expected).max()
    assert compiled.predict(held).tolist() == model.predict(held).tolist()
    assert np.abs(compiled.predict_proba(held) - model.predict_proba(held)).max() < 1e-4
    assert np.array_equal(compiled.decision_function(held[3]), scores[3:4])
    assert compiled.decision_function(held[:0]).shape == (0, 4)
    assert np.array_equal(compiled.decision_function(held[:, ::-1][:, ::-1]), scores)


def test_threads_do_not_meet(compiled, images):
    expected = compiled.decision_function(images[1])
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(compiled.decision_function, [images[1]] * 20):
            assert np.array_equal(found, expected)
        # One by one they work in a thread's own memory; what was returned stays.
        singles = list(pool.map(compiled.decision_function, images[1]))
    assert np.array_equal(np.concatenate(singles), expected)


def test_memory_is_what_the_header_says(compiled):
    assert compiled.work_bytes == compiled.program.ram


def test_wrong_images(compiled, images):
    for wrong in (images[1][:, :7], images[1].astype(np.float32), images[1].astype(str)):
        with pytest.raises(InputError):
            compiled.decision_function(wrong)


@needs_compiler
def test_vectors_are_floats():
    X = np.random.default_rng(0).normal(size=(50, 6))
    family = Stumps(4).fit(X)
    weights = np.random.default_rng(1).normal(size=(2, family.n_features_))
    model = CompactClassifier(family, weights, np.zeros(2), np.array([3, 5]))
    compiled = compile_classifier(model)
    assert compiled.predict(X).tolist() == model.predict(X).tolist()
    with pytest.raises(InputError, match="NaN"):
        compiled.predict(np.full((1, 6), np.nan))


@needs_compiler
def test_without_a_compiler_or_with_a_broken_one(monkeypatch, classifier, tmp_path):
    monkeypatch.setattr(visionshare.export.compiled.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("CC", shutil.which("false"))
    with pytest.raises(ExportError, match="failed"):
        compile_classifier(classifier("pixels"))
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    with pytest.raises(ExportError, match="no C compiler"):
        compile_classifier(classifier("pixels"))


def test_a_folder_of_others_is_refused(monkeypatch, classifier, tmp_path):
    monkeypatch.setattr(visionshare.export.compiled.tempfile, "gettempdir", lambda: str(tmp_path))
    import os

    (tmp_path / f"visionshare-{os.getuid()}").mkdir()
    (tmp_path / f"visionshare-{os.getuid()}").chmod(0o777)
    with pytest.raises(ExportError, match="folder"):
        compile_classifier(classifier("pixels"))


@needs_compiler
def test_compiled_images_stop(stopping):
    model, held = stopping("patches")
    compiled = compile_classifier(model, early_exit=True)
    expected = EarlyExit(model).decision_function(held)
    close = np.abs(compiled.decision_function(held) - expected).max(axis=1)
    assert np.median(close) <= 1e-5 * np.abs(expected).max()
    assert np.mean(compiled.predict(held) == EarlyExit(model).predict(held)) > 0.97
    assert compiled.work_bytes == compiled.program.ram
