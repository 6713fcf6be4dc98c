"""Classifiers in whole numbers: C and ONNX give the scores of Python, to the bit."""

import platform
import re
import shutil
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.export.test_c_families import SANITIZED, STRICT
from tests.generators.examples import INTEGERS
from visionshare import CompactClassifier, Deslant, Network, Templates
from visionshare.classifier import averaged
from visionshare.errors import InputError
from visionshare.export import c_program, compile_classifier, onnx_program, run_onnx
from visionshare.export.targets import device_sources, find_target, measure
from visionshare.export.targets.compiling import WARNINGS, compile_objects
from visionshare.export.targets.table import Target
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.tuning import quantized
from visionshare.scores import softmax

WEIGHTS = {8: np.arange(-127, 128), 4: np.arange(-7, 8), 2: [-3, -1, 1, 3], "ternary": [-1, 0, 1]}
needs_tools = pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools", "wasmtime"))),
    reason="without the packages of the extra edge",
)
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")


@pytest.fixture(scope="module")
def whole(images):
    """Return a function that gives a classifier of a family with whole weights of some bits."""
    made = {}

    def make(kind, bits=4, n_classes=5):
        if kind not in made:
            made[kind] = INTEGERS[kind](images[0])
        family, rng = made[kind], np.random.default_rng(3)
        weights = rng.choice(WEIGHTS[bits], (n_classes, family.n_features_))
        intercept = rng.integers(-3000, 3000, n_classes)
        return CompactClassifier(family, weights, intercept, np.arange(n_classes), 900.0)

    return make


def by_hand(model, images):
    features = model.family.transform(images).astype(np.int64)
    return features @ model.weights.astype(np.int64).T + model.intercept.astype(np.int64)


def edge_images(images):
    """Return digits, and images that saturate."""
    full = np.full_like(images[:1], 255)
    stripes = full.copy()
    stripes[:, ::2] = 0
    return np.concatenate([images, full, full * 0, stripes])


def some_of(cases, chosen):
    """Return all cases; those that are not chosen are run by ``scripts/test --all`` alone."""
    exhaustive = pytest.mark.exhaustive
    return [case if chosen(*case) else pytest.param(*case, marks=exhaustive) for case in cases]


# Every kind with one number of bits, every number of bits with one kind.
@needs_gcc
@pytest.mark.parametrize(
    ("kind", "bits", "n_classes"),
    some_of(
        product(INTEGERS, WEIGHTS, (4, 5)),
        lambda kind, bits, n_classes: kind == "maps" or (bits, n_classes) == (4, 5),
    ),
)
def test_c_gives_the_same_scores(kind, bits, n_classes, whole, images, tmp_path):
    model, test = whole(kind, bits, n_classes), edge_images(images[1])
    _check_scores(model, test, c_program(model), [], tmp_path)


# Squares, depthwise templates, means and residual sums have the program of small cores alone.
SMALL = ("squares", "depthwise", "means", "residual")
# What the processor has: all that there is here, AVX2 alone, with dot products, and no vectors.
MACHINES = {
    "native": ["-march=native"],
    "avx2": ["-march=haswell"],
    "avx_vnni": ["-march=haswell", "-mavxvnni"],
    "plain": ["-march=x86-64"],
}


def skip_without(machine):
    """Skip a test where the processor cannot run what is compiled for such a machine."""
    has = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    if machine.startswith("avx") and machine not in has:
        pytest.skip(f"this processor has no {machine}")


@needs_gcc
@pytest.mark.skipif(platform.machine() != "x86_64", reason="vectors of x86 alone")
@pytest.mark.parametrize(
    ("kind", "bits", "n_classes", "machine"),
    some_of(
        [
            (*case, machine)
            for case in [
                *((kind, 4, 5) for kind in INTEGERS),
                ("ternary", 8, 70),
                ("maps", "ternary", 17),
            ]
            for machine in MACHINES
        ],
        # Every kind as this machine has it; other machines with many classes of other bits.
        lambda kind, bits, n_classes, machine: (
            (n_classes > 5 and (kind == "maps" or machine != "plain"))
            or (machine == "native" and kind not in SMALL)
        ),
    ),
)
def test_vectors_give_the_same_scores(kind, bits, n_classes, machine, whole, images, tmp_path):
    skip_without(machine)
    model, test = whole(kind, bits, n_classes), edge_images(images[1])
    program = c_program(model, vectors=True)
    _check_scores(model, test, program, MACHINES[machine], tmp_path)
    assert ("immintrin.h" in program.files["classifier.c"]) == (kind not in SMALL)
    assert "immintrin.h" not in c_program(model).files["classifier.c"]


@pytest.mark.parametrize("kind", SMALL)
def test_what_has_no_vectors_is_the_program_of_small_cores(kind, whole):
    assert c_program(whole(kind), vectors=True).files == c_program(whole(kind)).files


def few_templates(images, n_maps, side, below=4):
    """Return a classifier whose maps have cells of two by two positions, below them other maps."""
    layers = [
        Deslant(),
        Templates(below, 3, pool=2, padding=side % 2, n_patches=900),
        Templates(n_maps, 2, pool=2, n_patches=900),
        Templates(7, 2, grid=2, n_patches=900),
    ]
    rng = np.random.default_rng(4)
    shown = np.repeat(np.repeat(images, 2, axis=1), 2, axis=2)[:, :side, :side]
    family = quantized(Network(layers).fit(shown), shown, Bits(4, 4))
    weights = rng.integers(-7, 8, (3, family.n_features_))
    return CompactClassifier(family, weights, np.zeros(3, int), np.arange(3), 900.0), shown


@needs_gcc
@pytest.mark.skipif(platform.machine() != "x86_64", reason="vectors of x86 alone")
@pytest.mark.parametrize(
    ("n_maps", "side", "below", "near", "machine"),
    some_of(
        [
            (*case, machine)
            for case in [(8, 14, 8, 2), (20, 14, 4, 2), (24, 15, 4, 1), (5, 13, 12, 0)]
            for machine in MACHINES
        ],
        lambda n_maps, side, below, near, machine: machine == "native" or n_maps == 24,
    ),
)
def test_few_templates_share_vectors_with_neighbors(
    n_maps, side, below, near, machine, images, tmp_path
):
    """Maps of 4 or 8 templates, alone or after others; odd numbers of cells go alone."""
    skip_without(machine)
    model, test = few_templates(images[0], n_maps, side, below)
    program = c_program(model, vectors=True)
    calls = re.findall(r"^ +classifier_\w+_neighbors\(", program.files["classifier.c"], re.M)
    assert len(calls) == near
    _check_scores(model, edge_images(test), program, MACHINES[machine], tmp_path)


@needs_tools
@pytest.mark.parametrize(("kind", "bits"), [("ternary", 8), ("maps", 4)])
def test_dot_products_of_arm_give_the_same_scores(kind, bits, whole, images, tmp_path):
    """Of signed bytes in emulation; those of bytes by numbers, which it lacks, compile."""
    model, test = whole(kind, bits, 17), edge_images(images[1])[-5:]
    sources = device_sources(model, c_program(model, vectors=True))
    arm = Target("arm64", "", "aarch64-freestanding", "generic+dotprod", "arm64",
                 "UC_CPU_ARM64_MAX")  # fmt: skip
    measured = measure(sources, arm, test)
    assert np.array_equal(measured.scores.astype(np.int64), by_hand(model, test))
    for number, cpu in enumerate(("generic+dotprod", "generic+i8mm")):
        folder = tmp_path / str(number)
        folder.mkdir()
        compile_objects(sources, replace(arm, cpu=cpu), folder, flags=WARNINGS)


def _check_scores(model, test, program, flags, tmp_path):
    assert program.score == "int32"
    assert "float" not in program.files["classifier.c"].replace("/* Features", "")
    for name, text in program.files.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    sources = [str(tmp_path / name) for name in ("classifier.c", "example.c")]
    command = ["gcc", *STRICT, *SANITIZED, *flags, "-O1", *sources, "-o", str(tmp_path / "run")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (tmp_path / "images.raw").write_bytes(test.tobytes())
    printed = subprocess.run(
        [str(tmp_path / "run"), str(tmp_path / "images.raw")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert printed.returncode == 0, printed.stderr
    rows = [line.split("\t") for line in printed.stdout.splitlines()]
    expected = by_hand(model, test)
    assert np.array_equal(np.array([row[1:] for row in rows], np.int64), expected)
    assert np.array_equal(model.decision_function(test), expected)
    assert [int(row[0]) for row in rows] == np.argmax(expected, axis=1).tolist()


@needs_gcc
@pytest.mark.parametrize("level", ["-O2", "-O3", "-Os"])
@pytest.mark.parametrize("kind", ["maps", "squares"])
def test_optimized_c_has_no_warnings(kind, level, whole, tmp_path):
    program = c_program(whole(kind), probabilities=True)
    for name, text in program.files.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    command = ["gcc", *STRICT, level, "-c", str(tmp_path / "classifier.c"), "-o", "/dev/null"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


@needs_gcc
def test_compiled_classifiers_have_whole_scores(whole, images, tmp_path):
    model, test = whole("maps"), images[1]
    compiled = compile_classifier(model, cache_dir=tmp_path)
    scores = compiled.decision_function(test)
    assert compiled.program.score == "int32"
    assert np.array_equal(scores, by_hand(model, test))
    assert np.array_equal(compiled.decision_function(test[3]), scores[3:4])
    assert np.allclose(compiled.predict_proba(test), model.predict_proba(test))
    stated = re.search(r"_WORK_BYTES (\d+)", compiled.program.files["model.h"])
    assert int(stated[1]) == compiled.program.ram == compiled.work_bytes


@pytest.mark.parametrize("kind", INTEGERS)
def test_onnx_gives_the_same_scores(kind, whole, images):
    pytest.importorskip("onnxruntime")
    model, test = whole(kind), edge_images(images[1])
    outputs = run_onnx(onnx_program(model), test)
    assert np.array_equal(outputs.scores, by_hand(model, test))


@needs_gcc
@pytest.mark.parametrize("kinds", [("ternary", "ternary"), ("maps", "ternary")])
def test_means_have_whole_scores(kinds, images, whole, tmp_path):
    members, test = [whole(kind) for kind in kinds], edge_images(images[1])
    model = averaged(members)
    expected = sum(by_hand(member, test) for member in members)
    _check_scores(model, test, c_program(model), [], tmp_path)
    compiled = compile_classifier(model, cache_dir=tmp_path / "cache")
    outputs = run_onnx(onnx_program(model), test)
    assert np.array_equal(compiled.decision_function(test), expected)
    assert np.array_equal(outputs.scores, expected)
    mean = np.mean([member.decision_function(test) for member in members], axis=0)
    assert np.allclose(model.predict_proba(test), softmax(mean, 900.0))


def test_weights_that_are_not_whole_make_a_program_of_floats(whole):
    model = whole("ternary")
    halves = CompactClassifier(model.family, model.weights / 2, model.intercept, model.classes)
    assert c_program(halves).score == "float32"
    assert c_program(model, pixel="float32").score == "float32"


def test_tables_are_not_quantized_twice(whole):
    with pytest.raises(InputError, match="quantize"):
        c_program(whole("ternary"), quantize="int8")


@needs_tools
@pytest.mark.parametrize(
    ("kind", "core"),
    [
        ("maps", "cortex-m0plus"), ("maps", "cortex-m4"),
        ("maps", "cortex-m33"), ("maps", "cortex-m55"), ("maps", "rv32imc"),
        ("two-bits", "cortex-m4"), ("squares", "wasm"),
    ],
)  # fmt: skip
def test_cores_give_the_same_scores(kind, core, whole, images):
    model, test = whole(kind), edge_images(images[1][:5])
    sources = device_sources(model, c_program(model))
    # Cores with instructions for pairs of products have them in 8 bits.
    assert ("smlad" in sources.files["classifier.c"]) == (kind != "two-bits")
    measured = measure(sources, find_target(core), test)
    assert np.array_equal(measured.scores, by_hand(model, test))
    assert measured.figures.work in (0, c_program(model).ram)
