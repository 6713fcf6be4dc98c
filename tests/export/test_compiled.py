"""A classifier that computes with its own C."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from visionshare import CompactClassifier, Stumps
from visionshare.classifier import EarlyExit
from visionshare.errors import ExportError, InputError
from visionshare.export import c_program, compile_classifier
from visionshare.export.library_cache import cached_library, library_folder

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler on this machine"
)


@pytest.fixture(scope="module")
def compiled(classifier):
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("no C compiler on this machine")
    return compile_classifier(classifier("patches"))


def test_as_python(compiled, classifier, images):
    model, test = classifier("patches"), images[1]
    expected = model.decision_function(test)
    scores = compiled.decision_function(test)
    assert scores.dtype == np.float32
    assert np.abs(scores - expected).max() <= 1e-5 * np.abs(expected).max()
    assert compiled.predict(test).tolist() == model.predict(test).tolist()
    assert np.abs(compiled.predict_proba(test) - model.predict_proba(test)).max() < 1e-4
    assert np.array_equal(compiled.decision_function(test[3]), scores[3:4])
    assert compiled.decision_function(test[:0]).shape == (0, 4)
    assert np.array_equal(compiled.decision_function(test[:, ::-1][:, ::-1]), scores)


def test_threads_do_not_meet(compiled, images):
    expected = compiled.decision_function(images[1])
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(compiled.decision_function, [images[1]] * 20):
            assert np.array_equal(scores, expected)
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
    with pytest.raises(InputError, match="infinity"):
        compiled.predict(np.full((1, 6), 1e39))


@needs_compiler
def test_a_broken_compiler(monkeypatch, classifier, tmp_path):
    monkeypatch.setenv("CC", shutil.which("false"))
    with pytest.raises(ExportError, match="failed"):
        compile_classifier(classifier("pixels"), cache_dir=tmp_path / "cache")


def test_without_a_compiler(monkeypatch, classifier, tmp_path):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExportError, match="no C compiler"):
        compile_classifier(classifier("pixels"), cache_dir=tmp_path / "cache")


@needs_compiler
def test_a_library_is_compiled_once(classifier, tmp_path):
    cache = tmp_path / "below" / "cache"
    compile_classifier(classifier("pixels"), cache_dir=cache)
    (library,) = cache.iterdir()
    before = library.stat().st_mtime_ns
    compile_classifier(classifier("pixels"), cache_dir=cache)
    assert [file.stat().st_mtime_ns for file in cache.iterdir()] == [before]
    compile_classifier(classifier("pixels"), "float32", cache_dir=cache)
    assert len(list(cache.iterdir())) == 2


@needs_compiler
def test_threads_compile_the_same_at_once(classifier, images, tmp_path):
    model, cache = classifier("stumps"), tmp_path / "cache"
    with ThreadPoolExecutor(4) as pool:
        compiled = list(pool.map(lambda _: compile_classifier(model, cache_dir=cache), range(4)))
    assert len(list(cache.iterdir())) == 1
    first, *others = [one.decision_function(images[1]) for one in compiled]
    assert all(np.array_equal(first, scores) for scores in others)


@needs_compiler
def test_a_program_may_have_the_name_of_any_file(classifier, tmp_path):
    library = cached_library(c_program(classifier("pixels"), "batch"), tmp_path / "cache")
    assert [path.name for path in library.parent.iterdir()] == [library.name]


@needs_compiler
def test_a_damaged_library_is_named(classifier, tmp_path):
    program = c_program(classifier("products"), "model", "float32")
    library = cached_library(program, tmp_path / "cache")
    library.write_bytes(b"")
    with pytest.raises(ExportError, match=rf"{library.name}.*remove the file"):
        compile_classifier(classifier("products"), "float32", cache_dir=tmp_path / "cache")


def folder_of_a_new_process(**variables):
    """Return the folder that a process with these variables keeps libraries in."""
    code = "from visionshare.export.library_cache import library_folder; print(library_folder())"
    result = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return Path(result.stdout.rstrip())


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache is elsewhere")
def test_the_folder_is_in_the_users_cache(tmp_path):
    folder = folder_of_a_new_process(XDG_CACHE_HOME=str(tmp_path / "home"))
    assert folder == tmp_path / "home" / "visionshare" / "compiled"
    made = [tmp_path / "home", folder.parent, folder]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache is elsewhere")
def test_without_a_home_the_folder_is_a_temporary_one(tmp_path):
    (tmp_path / "file").write_text("no folder")
    below = str(tmp_path / "file" / "cache")
    folder = folder_of_a_new_process(XDG_CACHE_HOME=below, TMPDIR=str(tmp_path))
    assert folder == tmp_path / f"visionshare-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file", "below a file"])
def test_an_unsafe_folder_is_refused(kind, tmp_path):
    folder = tmp_path / "cache"
    if kind == "open to others":
        folder.mkdir()
        folder.chmod(0o777)
    elif kind == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("")
        folder = folder / "below" if kind == "below a file" else folder
    with pytest.raises(ExportError, match="cache"):
        library_folder(folder)


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file" / "temporary"))
    with pytest.raises(ExportError, match="another folder"):
        library_folder()


@needs_compiler
def test_compiled_images_stop(stopping):
    model, images = stopping("patches")
    compiled = compile_classifier(model, early_exit=True)
    expected = EarlyExit(model).decision_function(images)
    close = np.abs(compiled.decision_function(images) - expected).max(axis=1)
    assert np.median(close) <= 1e-5 * np.abs(expected).max()
    assert np.mean(compiled.predict(images) == EarlyExit(model).predict(images)) > 0.97
    assert compiled.work_bytes == compiled.program.ram
