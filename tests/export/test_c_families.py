"""The C of every family against Python, under sanitizers, with every compiler there is."""

import shutil
import subprocess

import numpy as np
import pytest

from visionshare.export import c_program

KINDS = [
    "pixels", "patches", "patches-wide", "gabor", "gabor-inside", "gabor-at", "fourier",
    "anchors", "anchors-pca", "gaussian", "stumps", "products", "monomials", "union", "sources",
    "color",
]  # fmt: skip
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-O1"]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(params=["gcc", "clang"])
def compiler(request):
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param} on this machine")
    return request.param


def run_example(folder, program, images, command, flags=()):
    """Return scores and names that the exported example prints for images."""
    for name, text in program.files.items():
        (folder / name).write_text(text, encoding="ascii")
    sources = [str(folder / f"{program.name}.c"), str(folder / "example.c")]
    made = subprocess.run(
        [command, *STRICT, *SANITIZED, *flags, *sources, "-o", str(folder / "run"), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    (folder / "images.raw").write_bytes(np.ascontiguousarray(images).tobytes())
    said = subprocess.run(
        [str(folder / "run"), str(folder / "images.raw")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    rows = [line.split("\t") for line in said.stdout.splitlines()]
    return np.array([row[1:] for row in rows], np.float64), [row[0] for row in rows]


def images_for(model, images):
    if model.image_shape == images[1].shape[1:]:
        return images[1]
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (40, *model.image_shape), np.uint8)


def assert_same(scores, names, model, images):
    expected = model.decision_function(images)
    assert np.abs(scores - expected).max() <= 1e-5 * np.abs(expected).max()
    assert names == model.predict(images).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_bytes(kind, compiler, classifier, images, tmp_path):
    model = classifier(kind)
    held = images_for(model, images)
    scores, names = run_example(tmp_path, c_program(model), held, compiler)
    assert_same(scores, names, model, held)


@pytest.mark.parametrize("kind", KINDS)
def test_floats_one_by_one(kind, classifier, images, tmp_path):
    """Floats, in the order of a core without vectors, with sums in doubles."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on this machine")
    model = classifier(kind)
    rng = np.random.default_rng(2)
    held = images_for(model, images).astype(np.float32) / np.float32(255)
    held += rng.normal(scale=0.01, size=held.shape).astype(np.float32)
    flags = ["-DCLASSIFIER_ONE_BY_ONE=1", "-DCLASSIFIER_SUM=double"]
    program = c_program(model, pixel="float32")
    scores, names = run_example(tmp_path, program, held, "gcc", flags)
    assert_same(scores, names, model, held)


@pytest.mark.parametrize(("kind", "bits"), [(k, b) for k in KINDS for b in (8, 16)][::1])
def test_quantised(kind, bits, classifier, images, tmp_path):
    """Whole numbers of 16 bits hardly change a score; of 8 bits, little."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on this machine")
    model = classifier(kind)
    held = images_for(model, images)
    program = c_program(model, quantise=f"int{bits}")
    scores, _ = run_example(tmp_path, program, held, "gcc")
    expected = model.decision_function(held)
    off = np.abs(scores - expected).max() / np.abs(expected).max()
    print(kind, bits, off)
    assert off <= {8: 0.1, 16: 1e-3}[bits]
