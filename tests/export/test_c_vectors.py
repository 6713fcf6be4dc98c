"""The C of layers with vectors of sixteen, eight and four floats and without, against Python."""

import ctypes
import platform
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from visionshare import CompactClassifier, Deslant, Network, Templates
from visionshare.export import c_program
from visionshare.export.c.program import batch_source

# Flags by what they give; tables of several widths, and vectors that end after the templates.
BUILDS = {"of-this-processor": ["-march=native"], "without": ["-DNAME_ONE_BY_ONE=1"], "plain": []}
if platform.machine() == "x86_64":
    BUILDS["of-eight"] = ["-mavx2", "-mfma"]
# Maps, size, pool, padding, channels, rows and columns of images.
MAPS = [
    (1, 3, 2, 0, 1, 9, 11), (4, 5, 2, 0, 1, 28, 28), (8, 3, 2, 1, 3, 10, 38),
    (3, 4, 3, 2, 2, 17, 45), (9, 3, 1, 1, 1, 8, 40), (5, 3, 5, 0, 2, 11, 26),
    (6, 2, 2, 0, 1, 12, 12), (12, 5, 2, 0, 4, 12, 12), (20, 3, 2, 1, 2, 14, 15),
    (33, 3, 2, 0, 3, 12, 14), (24, 3, 3, 1, 8, 13, 13), (40, 2, 1, 0, 1, 7, 9),
]  # fmt: skip
ALLOWED = {"none": 1e-5, "int8": 5e-2}

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")


def _classifier(family):
    weights = np.random.default_rng(1).normal(size=(4, family.n_features_)).astype(np.float32)
    return CompactClassifier(family, weights, np.zeros(4), np.arange(4))


def _models():
    """Yield classifiers, each with images."""
    rng = np.random.default_rng(0)
    for n_maps, size, pool, padding, channels, rows, cols in MAPS:
        images = rng.integers(0, 256, (5, rows, cols, channels), np.uint8)
        maps = Templates(n_maps, size, pool, padding=padding, n_patches=200)
        network = Network([maps]).fit(images)
        biases = rng.normal(size=n_maps).astype(np.float32)
        layer = replace(network.layers_[0], biases=biases)
        yield _classifier(Network.of([layer], network.places_, network.image_shape_)), images
    # A lonely cell, and positions of no cell: a grid of three on six positions, or on seven.
    for n_templates, grid, side in ((5, 1, 5), (44, 2, 9), (70, 3, 9)):
        images = rng.integers(0, 256, (5, side, side, 6), np.uint8)
        templates = Templates(n_templates, 3, grid=grid, n_patches=300)
        yield _classifier(Network([templates]).fit(images)), images
    for rows, cols in ((12, 14), (30, 5)):
        images = rng.integers(0, 256, (5, rows, cols), np.uint8)
        images[:, :, cols // 2 :] //= 9
        images[4] = 0
        yield _classifier(Network([Deslant()]).fit(images)), images


@pytest.fixture(scope="module")
def models():
    return list(_models())


@pytest.mark.parametrize(
    ("build", "quantize"),
    [*((build, "none") for build in BUILDS), ("of-this-processor", "int8"), ("without", "int8")],
)
def test_scores_are_those_of_python(models, tmp_path, build, quantize):
    """All programs are compiled together; none writes beyond its memory."""
    sources, programs, names = [], [], [f"model{i}" for i in range(len(models))]
    for i, (name, (model, _)) in enumerate(zip(names, models, strict=True)):
        # As on small cores, or with tables as vectors want them.
        program = c_program(model, name, quantize=quantize, vectors=bool(i % 2))
        for file in (f"{name}.h", f"{name}.c"):
            (tmp_path / file).write_text(program.files[file])
        sources.append(batch_source(name))
        programs.append(program)
    flags = [f.replace("NAME", n.upper()) for n in names for f in BUILDS[build] if "NAME" in f]
    flags += [flag for flag in BUILDS[build] if "NAME" not in flag]
    (tmp_path / "all.c").write_text("\n".join(sources))
    library = tmp_path / "all.so"
    command = ["gcc", "-std=c99", "-O1", *flags, "-shared", "-fPIC", "all.c", "-o", str(library)]
    subprocess.run([*command, "-lm"], check=True, cwd=tmp_path)
    loaded = ctypes.CDLL(str(library))
    for name, program, (model, images) in zip(names, programs, models, strict=True):
        n_bytes = int(getattr(loaded, f"{name}_work_bytes")())
        work = np.full(n_bytes + 64, 255, np.uint8)
        scores = np.empty((len(images), 4), program.score)
        batch = getattr(loaded, f"{name}_batch")
        batch.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        batch(images.ctypes.data, len(images), work.ctypes.data, scores.ctypes.data)
        expected = model.decision_function(images)
        difference = np.abs(scores * program.score_scale - expected).max()
        assert difference <= ALLOWED[quantize] * np.abs(expected).max(), model.family
        assert (work[n_bytes:] == 255).all()
