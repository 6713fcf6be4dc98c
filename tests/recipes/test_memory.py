"""A run keeps to its bound of memory: measured, and refused before it goes beyond."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from visionshare import FineTuning, ShareBoost, fine_tune
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_images
from visionshare.datasets.folders import read_images
from visionshare.errors import MemoryLimitError
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.templates import Templates
from visionshare.machine.memory import LEAST, memory_limit
from visionshare.recipes import load_recipe, train
from visionshare.recipes.stages.estimates import learning_bytes, tuning_bytes

# A run of few images, and one of many, whose channels would take 500 MB.
TWO_RUNS = """
import sys
from visionshare.recipes import load_recipe, train
from visionshare.machine.system import peak_memory

folder = sys.argv[1]
peaks = []
for limit in (60, 3000):
    recipe = load_recipe("digits", [
        f"data={{source='{folder}/images.npz', limit={limit}}}", "store.memory=64MiB",
        "learner.rounds=1", f"features={{pool='{folder}/pool.toml'}}",
    ])
    train(recipe, f"{folder}/out")
    peaks.append(peak_memory())
print(peaks[1] - peaks[0])
"""
POOL = """
family = "network"
[[layers]]
kind = "channels"
channels = ["orientations"]
n_orientations = 5
pool = 1
[[layers]]
kind = "family"
name = "lbp"
pool = "lbp"
"""


@pytest.mark.exhaustive
def test_a_run_of_many_images_keeps_to_its_bound(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3000, 90, 90), np.uint8)
    images[::2] //= 2
    images[::2, ::2] = 0
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(3000) % 2)
    (tmp_path / "pool.toml").write_text(POOL)
    done = subprocess.run(
        [sys.executable, "-c", TWO_RUNS, tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    # Bounds below LEAST count as that.
    assert int(done.stdout) < LEAST


def pictures(folder, n=20):
    for number in range(n):
        path = folder / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), number).save(path)


def test_pictures_that_do_not_fit_are_refused_before_they_are_read(tmp_path):
    pictures(tmp_path)
    with memory_limit("64MiB", "--memory"):
        message = r"20 images of .*: about 320\.0 MiB; --memory allows 64\.0 MiB: a smaller size"
        with pytest.raises(MemoryLimitError, match=message):
            load_images(tmp_path, size=(4096, 4096))
        with pytest.raises(MemoryLimitError, match=r"^images: about .* a smaller size"):
            read_images(sorted(tmp_path.rglob("*.png")), (4096, 4096), "color")
        assert load_images(tmp_path).images.shape == (20, 4, 4)


def test_copies_that_do_not_fit_are_refused(tmp_path):
    recipe = load_recipe("digits", ["deformations.copies=100000", "store.memory=64MiB"])
    message = r"^deformed copies: about .* of training images.*allows .*\(deformations\.copies\)"
    with pytest.raises(MemoryLimitError, match=message):
        train(recipe, tmp_path / "out")


def test_classes_that_do_not_fit_are_refused_before_learning(tmp_path):
    images, labels = np.zeros((20_000, 2, 2), np.uint8), np.arange(20_000) % 250
    images[:, 0, 0] = labels
    np.savez(tmp_path / "images.npz", images=images, labels=labels)
    source = f"data={{source='{tmp_path}/images.npz'}}"
    recipe = load_recipe("digits", [source, "features={pool='pixels'}", "store.memory=64MiB"])
    message = "^learning 250 classes from 20000 images: about .*fewer rounds"
    with pytest.raises(MemoryLimitError, match=message):
        train(recipe, tmp_path / "out")


def test_layers_that_do_not_fit_are_refused_before_fine_tuning(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (100, 200, 200), np.uint8)
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(100) % 2)
    maps = "{kind='templates', n_templates=16, size=3, n_patches=500}"
    last = "{kind='templates', n_templates=4, size=3, grid=2, n_patches=500}"
    features = f"features={{pool='network', parameters={{layers=[{maps}, {last}]}}}}"
    recipe = load_recipe("digits", [
        f"data={{source='{tmp_path}/images.npz'}}", "learner.rounds=1", "store.memory=64MiB",
        features, "fine_tuning={epochs=1, batch=100}",
    ])  # fmt: skip
    message = r"^fine-tuning: about .*smaller batches \(fine_tuning\.batch\)"
    with pytest.raises(MemoryLimitError, match=message):
        train(recipe, tmp_path / "out")


def traced(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("m", "k", "rounds"), [(20_000, 5, 40), (4000, 100, 4)])
def test_learning_needs_no_more_than_its_estimate(m, k, rounds):
    rng = np.random.default_rng(0)
    y = np.arange(m) % k
    columns = ArrayColumns(rng.normal(size=(m, 60)).astype(np.float32), dtype="float16")
    ShareBoost(rounds=1).fit(ArrayColumns(rng.normal(size=(60, 3))), np.arange(60) % 3)
    recipe = load_recipe("digits", [f"learner.rounds={rounds}"])
    peak = traced(lambda: ShareBoost(rounds=rounds, search="exhaustive").fit(columns, y))
    assert peak < learning_bytes(recipe, columns.shape, 2, k) + (8 << 20)


def test_fine_tuning_needs_no_more_than_its_estimate():
    rng = np.random.default_rng(0)
    images, y = rng.integers(0, 256, (2000, 40, 40), np.uint8), np.arange(2000) % 2
    layers = [Templates(4, 5, pool=2, n_patches=500), Templates(4, 3, grid=2, n_patches=500)]
    pool = Network(layers)
    family = pool.fit(images[:50])
    values = family.transform(images)
    classifier = ShareBoost(rounds=2).fit(values, y).to_classifier(family)
    settings = FineTuning(epochs=1, batch=2000)
    fine_tune(classifier, images[:20], y[:20], FineTuning(epochs=1))
    peak = traced(lambda: fine_tune(classifier, images, y, settings))
    assert peak < tuning_bytes(classifier, settings, images, False) + (8 << 20)
