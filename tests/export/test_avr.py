"""Programs for AVR in simavr: the labels and scores of Python, within the memory of the core."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.export.test_edge_figures import _of_few_bits
from visionshare import load
from visionshare.cli.main import main
from visionshare.datasets import load_dataset
from visionshare.datasets.frames import frame_of_gray, gray_of_frame
from visionshare.errors import ExportError
from visionshare.export import c_program
from visionshare.export.c.preparation import whole_preprocessing, with_preparation
from visionshare.export.targets import device_sources, find_target, frame_sources, measure

needs_avr = pytest.mark.skipif(
    shutil.which("avr-gcc") is None or not Path("/usr/include/simavr").is_dir(),
    reason="without avr-gcc and simavr",
)
ARCHIVE = Path(__file__).parent.parent / "archives" / "digits-v2.safetensors"


@needs_avr
@pytest.mark.parametrize(
    ("structure", "name", "optimize", "memory"),
    [
        ("mnist-4k", "avr", "size", 2048),
        ("mnist-4k", "avr", "speed", 2048),
        ("mnist-10k", "atmega2560", "size", 8192),
    ],
)
def test_networks_of_few_bits(structure, name, optimize, memory):
    model, images = _of_few_bits(structure)
    program = c_program(model)
    measured = measure(device_sources(model, program), find_target(name), images, optimize)
    assert measured.scores.tolist() == program.reference(images).tolist()
    assert model.classes_[measured.labels].tolist() == model.predict(images).tolist()
    figures = measured.figures
    assert figures.ram + figures.stack <= memory
    # An image of 784 bytes is not there twice.
    assert figures.ram < 784 + 1000
    # Tables are in flash.
    assert figures.constants > 2000
    assert figures.flash == figures.code + figures.constants
    assert figures.cycles > figures.instructions


@needs_avr
def test_patches_and_their_products():
    model = load(ARCHIVE)
    images = load_dataset("digits", "test").images[:4]
    program = c_program(model, quantize="int8")
    measured = measure(device_sources(model, program), find_target("avr"), images, "size")
    assert measured.scores.tolist() == program.reference(images).tolist()


@needs_avr
@pytest.mark.parametrize("kind", ["rgb565-swapped", "yuyv", "rgb888"])
def test_frames_are_prepared(kind):
    model = load(ARCHIVE)
    program = with_preparation(model, c_program(model, quantize="int8"))
    digits = load_dataset("digits", "test").images[:3]
    frames = np.stack([frame_of_gray(255 - 15 * d.repeat(4, 0).repeat(4, 1), kind) for d in digits])
    sources = frame_sources(model, program, kind, 32, 32)
    measured = measure(sources, find_target("atmega2560"), frames, "size")
    steps = whole_preprocessing(model)
    rasters = np.stack([steps.apply(gray_of_frame(frame, kind, 2048), (8, 8)) for frame in frames])
    assert measured.scores.tolist() == program.reference(rasters).tolist()


@needs_avr
@pytest.mark.parametrize(("more", "message"), [(1100, "region"), (420, "stopped|stack")])
def test_what_has_no_room_is_told(more, message):
    model, images = _of_few_bits("mnist-4k")
    sources = device_sources(model, c_program(model))
    header = sources.files["classifier.h"].replace(
        "struct classifier_work {", f"struct classifier_work {{\n    char more[{more}];"
    )
    large = replace(sources, files={**sources.files, "classifier.h": header})
    with pytest.raises(ExportError, match=message):
        measure(large, find_target("avr"), images[:1], "size")


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    model, images = _of_few_bits("mnist-4k")
    with pytest.raises(ExportError, match="apt install gcc-avr"):
        measure(device_sources(model, c_program(model)), find_target("avr"), images, "size")


@needs_avr
def test_layers_are_told_one_by_one(tmp_path, capsys):
    model, _ = _of_few_bits("mnist-4k")
    model.save(tmp_path / "few.safetensors")
    command = ["measure", str(tmp_path / "few.safetensors"), "--target", "avr", "--count", "1"]
    assert main([*command, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    layers = figures["layers"]
    assert [layer["kind"] for layer in layers] == ["deslant-int", *["templates-int"] * 3]
    assert 0 < sum(layer["flash"] for layer in layers) < figures["flash"]
    assert 0 < sum(layer["instructions"] for layer in layers) <= figures["instructions"]
    assert main(command) == 0
    assert "templates-int" in capsys.readouterr().out
