"""Preparation in C: the same bytes as Python's, from frames of every format."""

import json
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from benchmarks.edge.frames import KINDS, counts, made_frame, made_frames
from visionshare import CompactClassifier, Pixels, load
from visionshare.cli.main import main
from visionshare.datasets import Preprocessing, load_dataset
from visionshare.datasets.frames import FRAMES, color_of_frame, gray_of_frame
from visionshare.errors import ExportError, InputError
from visionshare.export import c_program
from visionshare.export.c.preparation import CELLS, whole_preprocessing, with_preparation
from visionshare.export.preparation import (
    CompiledPreparation,
    check_preparation,
    frame_of_noise,
)
from visionshare.recipes import list_pipelines, load_recipe

ALL = {"contrast": True, "crop": True, "fit": "box", "margin": 2, "center": "mass"}
STEPS = {
    "stretched": {},
    "centered": {"fit": "center"},
    "in a box": {"fit": "box", "margin": 1},
    "dark": {"polarity": "dark_on_light"},
    "light": {"polarity": "light_on_dark"},
    "contrast": {"polarity": "automatic", "contrast": True},
    "crop": {"polarity": "light_on_dark", "crop": True, "fit": "center"},
    "threshold": {"polarity": "automatic", "crop": True, "threshold": 0.7, "fit": "box"},
    "mass": {"polarity": "automatic", "fit": "box", "center": "mass"},
    "all": {"polarity": "automatic", **ALL},
    "located": {"polarity": "automatic", **ALL, "crop": "located"},
    "located as it is": {"polarity": "dark_on_light", "crop": "located"},
    "all of dark": {"polarity": "dark_on_light", **ALL, "margin": 0.2},
}
MASS = {"fit": "box", "center": "mass"}
FRAME = np.zeros((20, 30), np.uint8)


def _model(options, shape=(13, 11)):
    family = Pixels().fit(np.zeros((1, *shape))).take([0])
    steps = Preprocessing(**options, arithmetic="whole")
    names, weights = np.array(["a", "b"]), np.array([[1.0], [-1.0]])
    return CompactClassifier(family, weights, np.zeros(2), names, preprocessing=steps)


def _program(model, **options):
    return with_preparation(model, c_program(model, **options))


@cache
def _prepared(name):
    """Return a classifier with these steps, and its preparation compiled: once for all tests."""
    model = _model(STEPS[name])
    return model, CompiledPreparation(model, _program(model))


@pytest.mark.parametrize("name", STEPS)
def test_every_step_gives_the_same_bytes(name):
    (model, prepare), rng = _prepared(name), np.random.default_rng(1)
    kinds = list(FRAMES)
    for number in range(400):
        kind = kinds[number % len(kinds)]
        largest = 300 if number % 10 == 0 else 24
        height, width = (int(side) for side in rng.integers(1, largest, 2))
        top, left = (int(place) for place in rng.integers(0, 5, 2))
        frame = frame_of_noise(kind, height + top, width + left + 1, rng)
        if number % 7 == 0:
            frame[:] = rng.integers(0, 256)
        part = frame[top:, left * FRAMES[kind] : (left + width) * FRAMES[kind]]
        expected = model.preprocessing.apply(gray_of_frame(part, kind, CELLS), (13, 11))
        assert_array_equal(prepare(frame, kind, (top, left, height, width)), expected)


@pytest.mark.parametrize("steps", [{}, {"fit": "center"}, {"fit": "box", "margin": 1}, MASS])
def test_color_is_the_same(steps):
    model = _model(steps, (13, 11, 3))
    assert check_preparation(model, _program(model)) == 48


def test_colors_of_frames():
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (6, 8, 3), np.uint8)
    assert_array_equal(color_of_frame(picture.reshape(6, 24), "rgb888"), picture)
    red, green, blue = (picture.astype(int) >> [3, 2, 3]).transpose(2, 0, 1)
    low = (green << 5 & 224 | blue).astype(np.uint8)
    high = (red << 3 | green >> 3).astype(np.uint8)
    for kind, pair in (("rgb565", (low, high)), ("rgb565-swapped", (high, low))):
        found = color_of_frame(np.stack(pair, axis=2).reshape(6, 16), kind)
        assert np.abs(found.astype(int) - picture).max() <= 7
    # Saturated colors in YUV of the full range, as in JPEG.
    for color, (y, u, v) in {
        (254, 0, 0): (76, 85, 255), (0, 255, 1): (150, 44, 21), (0, 0, 254): (29, 255, 107),
        (255, 255, 255): (255, 128, 128),
    }.items():  # fmt: skip
        for kind, four in (("yuyv", [y, u, y, v]), ("uyvy", [u, y, v, y])):
            found = color_of_frame(np.array([four * 2] * 2, np.uint8), kind, 2)
            assert np.abs(found.reshape(-1, 3).astype(int) - color).max() <= 1
    with pytest.raises(InputError, match="even"):
        color_of_frame(np.zeros((2, 6), np.uint8), "yuyv")


@pytest.mark.parametrize("name", ["located", "located as it is"])
def test_what_is_located_is_the_same(name):
    model, prepare = _prepared(name)
    rng = np.random.default_rng(0)
    digits = load_dataset("digits", "test").images
    frames = [made_frame(digits[k], KINDS[k % len(KINDS)], rng) for k in range(2 * len(KINDS))]
    # Too many runs of ink; nothing at all; rings in each other.
    frames.append(rng.choice([0, 255], (240, 320)).astype(np.uint8))
    frames.append(np.full((240, 320), 7, np.uint8))
    y, x = np.mgrid[:240, :320]
    frames.append(np.where(np.hypot(y - 120, x - 160) % 40 < 20, 30, 220).astype(np.uint8))
    found = 0
    for frame in frames:
        expected = model.preprocessing.apply(gray_of_frame(frame, "gray", CELLS), (13, 11))
        assert_array_equal(prepare(frame, "gray", (0, 0, 240, 320)), expected)
        found += expected.any()
    assert 8 <= found <= 11


def test_specks_and_shadows_do_not_ruin_an_answer():
    model = load("mnist-10k")
    digits = load_dataset("digits", "test")
    # 8x8 pixels: only those that are read without a camera too.
    steps = whole_preprocessing(model)
    rasters = np.stack(
        [steps.apply(np.pad(d.repeat(4, 0).repeat(4, 1), 4), (28, 28)) for d in digits.images]
    )
    read = np.flatnonzero(model.predict(rasters).astype(int) == digits.labels)
    frames = list(made_frames(digits.images[read], digits.labels[read], 0, 40))
    before = counts(model, frames, located=False)["all"]
    after = counts(model, frames, located=True)
    assert after["all"]["wrong"] <= 1 < before["wrong"]
    assert after["empty"]["refused"] == 8
    assert after["all"]["right"] >= 20


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("stretched", (1, 1)), ("stretched", (200, 160)), ("mass", (1, 1)), ("mass", (5, 40, 1)),
        # Sides between those of this and of other tests.
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in [
                ("stretched", (28, 28)), ("stretched", (5, 40, 1)), ("mass", (28, 28)),
                ("mass", (200, 160)),
            ]
        ),
    ],
)  # fmt: skip
def test_rasters_of_any_size(name, shape):
    model = _model(STEPS[name], shape)
    assert check_preparation(model, _program(model)) == 48


def test_large_frames_do_not_overflow():
    model = _model(STEPS["mass"], (3, 2))
    frame = np.full((2048, 4096), 255, np.uint8)
    frame[0, :2000] = 3
    prepare = CompiledPreparation(model, _program(model))
    assert_array_equal(
        prepare(frame, "gray", (0, 0, 2048, 4096)),
        model.preprocessing.apply(gray_of_frame(frame, "gray", CELLS), (3, 2)),
    )
    stretched = _model(STEPS["stretched"], (1, 1))
    prepare = CompiledPreparation(stretched, _program(stretched))
    assert prepare(frame, "gray", (0, 0, 2048, 4096)).tolist() == [[255]]


@pytest.mark.parametrize("kind", ["rgb565", "rgb565-swapped"])
@pytest.mark.parametrize("size", [(60, 80), (240, 320), (480, 640)])
def test_addresses_may_be_odd(kind, size):
    """Cells of one pixel, of a few whose colors are summed together, and of many."""
    model, prepare = _prepared("mass")
    frame = frame_of_noise(kind, *size, np.random.default_rng(3))
    buffer = np.zeros(frame.size + 1, np.uint8)
    buffer[1:] = frame.ravel()
    odd = buffer[1:].reshape(frame.shape)
    assert odd.ctypes.data % 2 != frame.ctypes.data % 2
    expected = model.preprocessing.apply(gray_of_frame(frame, kind, CELLS), (13, 11))
    for shown in (frame, odd):
        assert_array_equal(prepare(shown, kind, (0, 0, *size)), expected)


def test_parts_outside_of_a_frame_are_refused():
    _, prepare = _prepared("all")
    for part in ((0, 0, 0, 4), (0, 0, 4, 0), (1, 0, 20, 4), (0, 27, 4, 4), (0, 0, 65535, 1)):
        with pytest.raises(InputError, match="part"):
            prepare(FRAME, "gray", part)


def test_what_differs_is_told():
    model = _model(STEPS["all"])
    program = _program(model)
    other = replace(model, preprocessing=Preprocessing(**STEPS["dark"], arithmetic="whole"))
    with pytest.raises(ExportError, match="otherwise"):
        check_preparation(other, program)


def test_steps_beyond_a_device_are_named():
    model = _model(STEPS["all"])
    program = c_program(model)

    def refused(match, model=model, program=program, **changes):
        with pytest.raises(InputError, match=match):
            with_preparation(replace(model, **changes), program)

    character = Preprocessing("automatic", fit="character")
    refused("preprocessing.fit", preprocessing=character)
    refused("pixel", program=c_program(model, pixel="float32"))
    refused("polarity", _model(STEPS["all"], (6, 6, 3)))
    refused("RGB", _model({}, (6, 6, 2)))
    refused("sides", _model({}, (2, 1025)))
    refused("RGB", replace(_model({}), family=Pixels().fit(np.zeros((1, 4))).take([0])))


def test_frames_are_checked():
    for frame, kind in ((FRAME, "jpeg"), (FRAME[:, :29], "yuyv"), (FRAME.astype(float), "gray")):
        with pytest.raises(InputError):
            gray_of_frame(frame, kind)


@pytest.mark.skipif(find_spec("ziglang") is None, reason="without the extra edge")
@pytest.mark.parametrize("name", [*STEPS, "color"])
def test_no_compiler_warns(name, tmp_path):
    from visionshare.export.targets import find_target
    from visionshare.export.targets.compiling import WARNINGS, compile_objects
    from visionshare.export.targets.device_sources import DeviceSources

    model = _model(MASS, (13, 11, 3)) if name == "color" else _model(STEPS[name])
    program = _program(model)
    kept = {file: text for file, text in program.files.items() if file.endswith((".h", "are.c"))}
    sources = DeviceSources(program.name, kept, "uint8", 143, 2, "float32")
    compile_objects(sources, find_target("cortex-m0plus"), tmp_path, "size", WARNINGS)


def test_the_command_writes_and_checks_it(tmp_path, capsys):
    _model(STEPS["all"]).save(tmp_path / "whole.safetensors")
    out = tmp_path / "c"
    arguments = ["export", str(tmp_path / "whole.safetensors"), "--preparation"]
    assert main([*arguments, "--out", str(out), "--json"]) == 0
    assert str(out / "classifier_prepare.c") in json.loads(capsys.readouterr().out)["files"]
    assert {"classifier_prepare.c", "classifier_prepare.h"} < {path.name for path in out.iterdir()}
    assert main([*arguments, "--to", "onnx", "--out", str(tmp_path / "p")]) == 2
    capsys.readouterr()
    of_vectors = replace(_model({}), family=Pixels().fit(np.zeros((1, 4))).take([0]))
    of_vectors.save(tmp_path / "vectors.safetensors")
    refused = ["export", str(tmp_path / "vectors.safetensors"), "--preparation", "--out", str(out)]
    assert main(refused) == 2
    assert "gray or RGB images" in capsys.readouterr().err


@pytest.mark.parametrize("name", list_pipelines())
def test_recipes_can_be_prepared(name):
    """A recipe's preprocessing is exported in C, or the setting that hinders is named."""
    recipe = load_recipe(name)
    color = recipe.data.mode == "color" or recipe.data.source == "cifar10"
    model = _model({}, (13, 11, 3) if color else (13, 11))
    steps = recipe.preprocessing
    steps = Preprocessing() if steps is None else steps.build()
    model, program = replace(model, preprocessing=steps), c_program(model)
    if name in ("ocr", "reader"):
        with pytest.raises(InputError, match=r"preprocessing\.fit: got 'character'"):
            with_preparation(model, program)
    else:
        assert "classifier_prepare.c" in with_preparation(model, program).files


def test_digits_are_prepared_without_learning_again(trained, tmp_path, capsys):
    out = tmp_path / "digits"
    assert main(["export", str(trained), "--preparation", "--out", str(out), "--json"]) == 0
    assert str(out / "classifier_prepare.c") in json.loads(capsys.readouterr().out)["files"]


def test_preprocessing_of_floats_is_done_in_whole_numbers():
    model = _model(STEPS["all"])
    floats = replace(model, preprocessing=replace(model.preprocessing, arithmetic="float"))
    prepared = "classifier_prepare.c"
    # Floats come near anyway: there, ink is located.
    whole = replace(model, preprocessing=replace(model.preprocessing, crop="located"))
    assert _program(floats).files[prepared] == _program(whole).files[prepared]


@pytest.mark.parametrize("kind", FRAMES)
def test_cells_are_means_of_squares(kind):
    rng = np.random.default_rng(2)
    frame = rng.integers(0, 256, (50, 70 * FRAMES[kind]), np.uint8)
    gray = gray_of_frame(frame, kind).astype(float)
    cells = gray_of_frame(frame, kind, 900)
    assert cells.shape == (25, 35)
    expected = gray.reshape(25, 2, 35, 2).mean(axis=(1, 3))
    # Red, green and blue are rounded after their mean, and not before.
    assert np.abs(cells - expected).max() <= (2.5 if "rgb" in kind else 0.5)
    assert_array_equal(gray_of_frame(np.full_like(frame, 255), kind, 900), 255)


@pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools"))),
    reason="without the packages of the extra edge",
)
def test_a_core_prepares_and_classifies_frames(tmp_path, capsys):
    _model(STEPS["all"]).save(tmp_path / "whole.safetensors")
    arguments = ["measure", str(tmp_path / "whole.safetensors"), "--target", "cortex-m4"]
    assert main([*arguments, "--count", "1", "--frame", "rgb565", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["frame_different_labels"] == 0
    assert figures["frame_flash"] > figures["flash"]
    # A pass over 76,800 pixels.
    assert 400_000 < figures["frame_instructions"] < 1_600_000
    assert main([*arguments, "--frame", "jpeg"]) == 2
    assert "--frame" in capsys.readouterr().err
