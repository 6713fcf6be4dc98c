"""A child that was forked computes what its parent does, whatever threads the parent had."""

import hashlib
import io
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from tests.generators.examples import family_examples
from visionshare import CompactClassifier
from visionshare.datasets import Augmentation, augmented_copies
from visionshare.datasets.folders import read_image
from visionshare.generators import family_names
from visionshare.generators.stumps import StumpColumns
from visionshare.learners import FineTuning, ForwardGreedyRegressor, fine_tune
from visionshare.learners.registry import CLASSIFIERS, classifier_class
from visionshare.store import create_store, open_store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")

SMALL = {
    "dense": {},
    "grfl": {"alpha": 2.0, "rounds": 3},
    "mixed_norm": {"alpha": 2.0},
    "structural_boosting": {"alpha": 20.0, "rounds": 2, "refit_tol": 0.01},
}
# A source is a function, and cannot be built from a name.
FAMILIES = [name for name in family_names() if name != "sources"]
SECONDS = 240


def _images():
    rng = np.random.default_rng(0)
    images, y = rng.integers(0, 256, (120, 12, 12)).astype(np.uint8), np.arange(120) % 3
    images[np.arange(120), 4 + y] //= 4
    return images, y


def _digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def _learner(name):
    images, y = _images()
    learner = classifier_class(name)(**SMALL.get(name, {"rounds": 3}), n_jobs=2)
    X = images.reshape(120, -1) / 255
    return [learner.fit(X, y).decision_function(X), clone(learner).fit(X, y == 1).predict_proba(X)]


def _family(name):
    images, y = _images()
    family = next(iter(family_examples(name).values()))().fit(images, y)
    few = family.take(np.arange(min(5, family.n_features_)))
    model = CompactClassifier(few, np.ones((2, few.n_features_)), np.zeros(2), np.arange(2))
    return [family.transform(images[:40]), model.decision_function(images, n_jobs=2)]


def _stored(_):
    images, y = _images()
    family = next(iter(family_examples("patches").values()))().fit(images, y)
    with tempfile.TemporaryDirectory() as folder:
        create_store(Path(folder) / "store", family, images, n_jobs=2).take()
        columns = open_store(Path(folder) / "store", family, images, n_jobs=2)
        model = classifier_class("shareboost")(3, n_jobs=2).fit(columns, y)
        return [columns.take(np.arange(5)), model.predict(columns)]


def _stumps(_):
    images, y = _images()
    columns = StumpColumns.from_images(images.reshape(120, -1))
    return [classifier_class("shareboost")(3, search="stumps", n_jobs=2).fit(columns, y).coef_]


def _regressor(_):
    images, y = _images()
    X = images.reshape(120, -1) / 255
    return [ForwardGreedyRegressor(rounds=3, n_jobs=2).fit(X, y).predict(X)]


def _fine_tuned(_):
    images, y = _images()
    family = next(iter(family_examples("patches").values()))().fit(images, y)
    X = family.transform(images)
    model = classifier_class("shareboost")(4).fit(X, y).to_classifier(family)
    tuned = fine_tune(model, images, y, FineTuning(epochs=2), n_jobs=2)
    return [tuned.decision_function(images)]


def _decoded(_):
    from PIL import Image

    images, _ = _images()
    file = io.BytesIO()
    Image.fromarray(images[0]).save(file, "PNG")
    copies = [batch for _, _, batch in augmented_copies(images, Augmentation(), 1, n_jobs=2)]
    return [read_image(io.BytesIO(file.getvalue())), *copies]


OTHERS = {
    "stored": _stored, "stump columns": _stumps, "regressor": _regressor, "tuned": _fine_tuned,
    "decoded": _decoded,
}  # fmt: skip
NAMES = [*CLASSIFIERS, *FAMILIES, *OTHERS]
# Where ways to start a child differ, and not what it does.
FEW = ["shareboost", "patches", "stump columns"]


def answer(name):
    """Return a digest of what one part of the library computes, on two threads."""
    work = _learner if name in CLASSIFIERS else OTHERS.get(name, _family)
    return _digest(*work(name))


def in_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(answer, NAMES)


def in_futures():
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        return list(pool.map(answer, FEW))


def in_joblib():
    from joblib import Parallel, delayed

    return Parallel(2, backend="multiprocessing")(delayed(answer)(name) for name in FEW)


def in_a_grandchild():
    """Answers of a child of a child: each has run kernels on threads before it is forked."""
    read, write = os.pipe()
    if not (child := os.fork()):
        answer(FEW[0])
        if not (grandchild := os.fork()):
            os.write(write, json.dumps([answer(name) for name in FEW]).encode())
            os._exit(0)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
    os.close(write)
    with os.fdopen(read) as pipe:
        answers = json.loads(pipe.read() or "[]")
    assert os.waitpid(child, 0)[1] == 0
    return answers


def start_threads_of_others():
    """Run kernels of a user on numba's threads, and scikit-learn on those of OpenMP."""
    from numba import njit, prange
    from sklearn.cluster import KMeans

    @njit(parallel=True)
    def squares(n):
        out = np.empty(n)
        for i in prange(n):
            out[i] = i * i
        return out

    squares(1000)
    KMeans(4, n_init=1).fit(_images()[0].reshape(120, -1))


def test_a_forked_child_answers_as_its_parent():
    code = f"""
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("forks", {__file__!r})
forks = importlib.util.module_from_spec(spec)
sys.modules["forks"] = forks
spec.loader.exec_module(forks)
forks.start_threads_of_others()
before = [forks.answer(name) for name in forks.NAMES]
others = [forks.in_futures(), forks.in_joblib(), forks.in_a_grandchild()]
print(json.dumps([before, forks.in_pool(), *others]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    before, in_pool, *others = json.loads(done.stdout.splitlines()[-1])
    expected = dict(zip(NAMES, before, strict=True))
    assert dict(zip(NAMES, in_pool, strict=True)) == expected
    assert others == [[expected[name] for name in FEW]] * 3
