"""The C of every family against Python, under sanitizers, with every compiler there is."""

import re
import shutil
import subprocess
from itertools import product

import numpy as np
import pytest

from tests.generators.examples import family_examples
from visionshare import CompactClassifier, PatchTemplates
from visionshare.classifier import EarlyExit
from visionshare.classifier.exit_rule import score_margins
from visionshare.errors import InputError
from visionshare.export import c_program
from visionshare.generators import family_names

KINDS = [
    # A pretrained network runs in onnxruntime alone.
    *(label for n in family_names() if n != "pretrained" for label in family_examples(n)),
    "color", "color-channels", "color-channels-normalized",
]  # fmt: skip


def marked(cases, is_left_out):
    """Return all cases; those that are left out are run by ``scripts/test --all`` alone."""
    exhaustive = pytest.mark.exhaustive
    return [pytest.param(case, marks=exhaustive) if is_left_out(case) else case for case in cases]


# One kind of each family, where this is enough.
FIRST = {next(iter(family_examples(name))) for name in family_names()}
EACH_FAMILY = marked(KINDS, lambda kind: kind not in FIRST)
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
# GNU's other linker links the sanitizers in a quarter of the time.
LINKER = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", *LINKER]
# Others of a family that read pixels as these do, and whose other steps run with bytes above.
READ_ALIKE = {
    "anchors-tapered", "gabor-at", "lbp-uniform", "network-of-few", "network-of-units",
    "network-squared", "patches-wide", "color-channels-normalized",
}  # fmt: skip
# Their tiles slide where there are 32 registers.
TILED = {
    "patches", "color", "union", "network", "network-of-few", "network-of-many",
    "network-depthwise",
}  # fmt: skip
QUANTIZED = [
    "patches", "color", "gabor", "fourier", "anchors-pca", "gaussian", "union", "sources",
    "network", "network-of-few", "network-of-many", "network-depthwise", "network-of-channels",
]  # fmt: skip


def available(name, folder):
    """Return a compiler that is there and can link its sanitizers; skip the test otherwise."""
    if shutil.which(name) is None:
        pytest.skip(f"no {name} on this machine")
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    command = [name, *SANITIZED, str(folder / "empty.c"), "-o", str(folder / "empty")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"{name} has no sanitizers on this machine")
    return name


@pytest.fixture(scope="module", params=["gcc", "clang"])
def compiler(request, tmp_path_factory):
    return available(request.param, tmp_path_factory.mktemp("probe"))


@pytest.fixture(scope="module")
def gcc(tmp_path_factory):
    return available("gcc", tmp_path_factory.mktemp("probe"))


def run_example(folder, program, images, command, flags=()):
    """Return scores and names that the exported example prints for images."""
    for name, text in program.files.items():
        (folder / name).write_text(text, encoding="ascii")
    sources = [str(folder / f"{program.name}.c"), str(folder / "example.c")]
    compiled = subprocess.run(
        [command, *STRICT, *SANITIZED, *flags, *sources, "-o", str(folder / "run"), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    (folder / "images.raw").write_bytes(np.ascontiguousarray(images).tobytes())
    printed = subprocess.run(
        [str(folder / "run"), str(folder / "images.raw")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert printed.returncode == 0, printed.stderr
    rows = [line.split("\t") for line in printed.stdout.splitlines()]
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
    test = images_for(model, images)
    # Warnings about what flows where need an optimizer; the other tests compile in half the time.
    # One compiler may use all that this machine has where that makes a difference.
    native = compiler == "gcc" and kind in TILED
    flags = ["-O1", "-march=native"] if native else ["-O1"]
    scores, names = run_example(tmp_path, c_program(model), test, compiler, flags)
    assert_same(scores, names, model, test)


@pytest.mark.parametrize("kind", marked(KINDS, lambda kind: kind in READ_ALIKE))
def test_floats_one_by_one(kind, gcc, classifier, images, tmp_path):
    """Floats, in the order of a core without vectors, with sums in doubles."""
    model = classifier(kind)
    rng = np.random.default_rng(2)
    test = images_for(model, images).astype(np.float32) / np.float32(255)
    test += rng.normal(scale=0.01, size=test.shape).astype(np.float32)
    flags = ["-DCLASSIFIER_ONE_BY_ONE=1", "-DCLASSIFIER_SUM=double"]
    program = c_program(model, pixel="float32")
    scores, names = run_example(tmp_path, program, test, gcc, flags)
    assert_same(scores, names, model, test)


@pytest.mark.parametrize("kind", QUANTIZED)
def test_bytes_in_tables_change_scores_little(kind, gcc, classifier, images, tmp_path):
    model = classifier(kind)
    test = images_for(model, images)
    scores, _ = run_example(tmp_path, c_program(model, quantize="int8"), test, gcc)
    assert mean_change(scores, model, test) <= 0.03


# Of kinds with small tables of floats the test below says so of either order of sums.
@pytest.mark.parametrize("kind", ["gabor", "anchors-pca", "network-of-channels"])
def test_16_bits_in_tables_change_next_to_nothing(kind, gcc, classifier, images, tmp_path):
    model = classifier(kind)
    test = images_for(model, images)
    scores, _ = run_example(tmp_path, c_program(model, quantize="int16"), test, gcc)
    assert mean_change(scores, model, test) <= 1e-3


@pytest.mark.parametrize(
    ("kind", "pixel"),
    [
        *product(
            ["patches", "color", "network", "network-of-many", "network-depthwise"], ["float32"]
        ),
        ("network-of-few", "uint8"),
        ("patches", "uint8"),
        *(
            pytest.param(kind, pixel, marks=pytest.mark.exhaustive)
            for kind, pixel in [
                *product(["color", "network", "network-of-many", "network-depthwise"], ["uint8"]),
                ("network-of-few", "float32"),
            ]
        ),
    ],
)
def test_floats_of_any_pixels_under_small_tables(kind, pixel, gcc, classifier, images, tmp_path):
    """Sums of floats where tables are small: pixels are floats, or maps are, on small cores too."""
    model = classifier(kind)
    test = images_for(model, images)
    if pixel == "float32":
        test = test.astype(np.float32) / np.float32(255)
    program = c_program(model, pixel=pixel, quantize="int16")
    for one_by_one in (0, 1):
        flags = [f"-DCLASSIFIER_ONE_BY_ONE={one_by_one}"]
        scores, names = run_example(tmp_path, program, test, gcc, flags)
        assert mean_change(scores, model, test) <= 1e-3
        assert names == model.predict(test).tolist()


@pytest.mark.parametrize("quantize", ["none", "int8"])
@pytest.mark.parametrize(
    "kind", ["patches", "network", "network-of-few", "network-of-many", "network-depthwise"]
)
def test_small_cores_need_the_memory_that_is_said(kind, quantize, gcc, classifier, tmp_path):
    program = c_program(classifier(kind), quantize=quantize)
    (tmp_path / "classifier.h").write_text(program.files["classifier.h"])
    check = f"typedef char same[sizeof(struct classifier_work) == {program.ram} ? 1 : -1];\n"
    (tmp_path / "size.c").write_text(f'#include "classifier.h"\n{check}')
    command = [gcc, *STRICT, "-DCLASSIFIER_ONE_BY_ONE=1", "-c", "size.c", "-o", "size.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def mean_change(scores, model, images):
    """Return the mean change of a score, in standard deviations of the scores.

    The mean: an example next to a threshold or radius may cross it.
    """
    expected = model.decision_function(images)
    return np.abs(scores - expected).mean() / expected.std()


def test_small_cores_compute_the_same_whole_numbers(gcc, classifier, images, tmp_path):
    """Sums of bytes are exact in whole numbers and in floats: both give the same features."""
    model, test = classifier("patches"), images[1]
    program = c_program(model, quantize="int8")
    scores = []
    for one_by_one in (0, 1):
        folder = tmp_path / str(one_by_one)
        folder.mkdir()
        flags = [f"-DCLASSIFIER_ONE_BY_ONE={one_by_one}"]
        scores.append(run_example(folder, program, test, gcc, flags)[0])
    assert np.array_equal(*scores)


def test_empty_and_full_images(gcc, classifier, tmp_path):
    """Rows without ink are left out, and the largest sums fit: white, black, a corner, a row."""
    model = classifier("patches-wide")
    test = np.zeros((5, *model.image_shape), np.uint8)
    test[1], test[2, 0, 0], test[3, -1, -1], test[4, 3] = 255, 255, 1, 200
    for flags in ([], ["-march=native"]):
        scores, names = run_example(tmp_path, c_program(model), test, gcc, flags)
        assert_same(scores, names, model, test)
    program = c_program(model, quantize="int16")
    for flags in ([], ["-march=native"], ["-DCLASSIFIER_ONE_BY_ONE=1"]):
        scores, _ = run_example(tmp_path, program, test, gcc, flags)
        assert mean_change(scores, model, test) <= 1e-3


@pytest.mark.parametrize("quantize", ["int8", "int16"])
def test_sums_of_large_templates_fit(quantize, gcc, tmp_path):
    """White images under templates without a negative tap, as large as the images."""
    rng = np.random.default_rng(3)
    test = rng.integers(0, 256, (60, 30, 30), np.uint8)
    test[:2] = 255
    family = PatchTemplates(26, 4, 1, (30.0,), contrast="none", n_patches=200).fit(test)
    family.templates_[0] = 1
    weights = rng.normal(size=(2, 4)).astype(np.float32)
    model = CompactClassifier(family, weights, np.zeros(2), np.arange(2))
    program = c_program(model, quantize=quantize)
    for one_by_one in (0, 1):
        flags = [f"-DCLASSIFIER_ONE_BY_ONE={one_by_one}"]
        scores, _ = run_example(tmp_path, program, test, gcc, flags)
        assert mean_change(scores, model, test) <= {"int8": 0.03, "int16": 1e-3}[quantize]


@pytest.mark.parametrize("kind", EACH_FAMILY)
def test_images_stop_where_they_stop_in_python(kind, gcc, stopping, tmp_path):
    model, test = stopping(kind)
    early = EarlyExit(model)
    # At a stage whose margin is met to the last digit the C may not stop.
    margins = [stage.margin for stage in early.stages[:-1]]
    at = [model.at(t).decision_function(test) for t in (1, 2)]
    clear = np.all(
        [np.abs(score_margins(z) - margin) > 1e-4 for z, margin in zip(at, margins, strict=True)],
        axis=0,
    )
    scores, _ = run_example(tmp_path, c_program(model, early_exit=True), test, gcc)
    expected = early.decision_function(test)
    assert np.abs(scores - expected)[clear].max() <= 1e-5 * np.abs(expected).max()
    assert clear.sum() > len(test) // 2
    assert set(early.stops(test)[clear].tolist()) == {0, 1, 2}


def test_small_cores_stop_too(gcc, stopping, tmp_path):
    model, test = stopping("patches")
    program = c_program(model, quantize="int16", early_exit=True)
    scores, _ = run_example(tmp_path, program, test, gcc)
    expected = EarlyExit(model).decision_function(test)
    same = np.abs(scores - expected).max(axis=1) <= 0.02 * np.abs(expected).max()
    assert same.mean() > 0.9
    assert "first of 3 stages" in program.files["classifier.h"]


def test_a_rule_is_needed_to_stop(classifier):
    with pytest.raises(InputError, match="rule"):
        c_program(classifier("patches"), early_exit=True)


@pytest.mark.parametrize(
    ("kind", "quantize"),
    [
        ("gabor-at", "none"), ("stumps", "none"), ("union", "none"),
        ("network-of-few", "none"), ("network-of-few", "int8"), ("patches", "int8"),
        *(
            pytest.param(kind, quantize, marks=pytest.mark.exhaustive)
            for kind, quantize in [
                ("gabor-at", "int8"), ("patches", "none"), ("stumps", "int8"), ("union", "int8"),
            ]
        ),
    ],
)  # fmt: skip
def test_no_warnings_where_compilers_look_far(kind, quantize, gcc, classifier, tmp_path):
    """Of loops that they unroll, compilers warn at -O2 and -O3 alone; nothing calls for memory.

    Programs of the first kind of each family are compiled at -O3 in ``test_warnings``.
    """
    program = c_program(classifier(kind), quantize=quantize, probabilities=True)
    for name, text in program.files.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    assert not re.search(r"\b(malloc|calloc|realloc|alloca|free)\b", program.files["classifier.c"])
    for level in ("-O2", "-O3") if kind not in FIRST else ("-O2",):
        command = [gcc, *STRICT[:-1], level, "-c", "classifier.c", "-o", "classifier.o"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
