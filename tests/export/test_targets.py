"""Exported C on every core: compiled, emulated, measured, and held against limits."""

import json
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from visionshare.cli.main import main
from visionshare.errors import BudgetError, ExportError, InputError
from visionshare.export import c_program
from visionshare.export.targets import (
    TARGETS,
    DeviceSources,
    TargetLimits,
    device_sources,
    find_target,
    measure,
)

TOOLS = ("ziglang", "unicorn", "elftools", "wasmtime")
needs_tools = pytest.mark.skipif(
    not all(map(find_spec, TOOLS)), reason="without the packages of the extra edge"
)
HEADER = """#include <stdint.h>
struct known_work { uint8_t bytes[100]; };
int known_classify(const uint8_t image[4], struct known_work *work, int32_t scores[2]);
"""
# What it takes is known: 3 000 bytes of constants, 100 + 40 of memory.
SOURCE = """#include "known.h"
static const uint8_t constants[3000] = {1, 2, 3};
static int32_t calls[10];
int known_classify(const uint8_t image[4], struct known_work *work, int32_t scores[2])
{
    volatile uint8_t on_the_stack[512];
    on_the_stack[image[2]] = image[0];
    calls[on_the_stack[image[2]] % 10]++;
    work->bytes[99] = constants[image[1] * 11];
    scores[0] = image[0] - image[2];
    scores[1] = constants[image[3]] + work->bytes[99];
    return scores[1] > scores[0];
}
"""
KNOWN = DeviceSources("known", {"known.h": HEADER, "known.c": SOURCE}, "uint8", 4, 2, "int32")


@needs_tools
@pytest.mark.parametrize("name", [n for n, t in TARGETS.items() if t.machine != "avr"])
def test_a_known_program(name):
    images = np.array([[9, 0, 2, 100], [0, 0, 0, 1]], np.uint8)
    measured = measure(KNOWN, find_target(name), images)
    assert measured.scores.tolist() == [[7, 1], [0, 3]]
    assert measured.labels.tolist() == [0, 1]
    figures = measured.figures
    assert (figures.work, figures.images) == (100, 2)
    assert 512 <= figures.stack < 700
    assert 20 < figures.instructions <= figures.most_instructions < 100
    if name == "wasm":
        # Constants lie in memory too.
        assert 3000 < figures.flash < 3500
        assert figures.ram >= 3140
    else:
        assert 3000 <= figures.constants < 3100
        assert figures.flash == figures.constants + figures.code
        assert figures.ram == 140


@needs_tools
def test_instructions_are_counted_one_by_one():
    """A loop of n turns takes n times as many instructions, whatever the emulator translates."""
    source = SOURCE.replace("return scores", "while (on_the_stack[image[2]]--) { } return scores")
    sources = replace(KNOWN, files={"known.h": HEADER, "known.c": source})
    counts = []
    for turns in (10, 20, 110):
        image = np.array([[turns, 0, 0, 0]], np.uint8)
        figures = measure(sources, find_target("cortex-m0plus"), image).figures
        counts.append([figures.instructions, figures.cycles])
    few, more, most = np.array(counts)
    each = (more - few) / 10
    assert 3 <= each[0] <= 8
    assert (most - more)[0] == 90 * each[0]
    # A turn loads and stores, and may jump back: each takes a cycle more.
    for turns, (instructions, cycles) in ((10, more - few), (90, most - more)):
        assert 2 <= (cycles - instructions) / turns <= 3
    assert figures.microjoules == pytest.approx(figures.cycles * 3.0 * 0.093 / 1000)


@needs_tools
@pytest.mark.parametrize(
    ("name", "quantize"),
    [("cortex-m0plus", "int8"), ("cortex-m4", "none"), ("wasm", "none")],
)
def test_cores_say_what_python_says(name, quantize, classifier, images):
    model, test = classifier("patches"), images[1][:10]
    program = c_program(model, quantize=quantize)
    measured = measure(device_sources(model, program), find_target(name), test)
    if quantize == "none":
        expected = model.decision_function(test)
        assert np.abs(measured.scores - expected).max() <= 1e-5 * np.abs(expected).max()
        assert model.classes_[measured.labels].tolist() == model.predict(test).tolist()
    else:
        expected = program.reference(test)
        assert measured.scores.tolist() == expected.tolist()
        assert measured.labels.tolist() == expected.argmax(axis=1).tolist()
        assert np.mean(model.classes_[measured.labels] == model.predict(test)) >= 0.9
    assert len(set(measured.labels.tolist())) > 1
    if name != "wasm":
        assert measured.figures.ram >= measured.figures.work > 0


@needs_tools
def test_a_core_that_fails(tmp_path):
    for source, message in (
        (SOURCE.replace("int32_t calls", "nothing calls"), "zig cc failed: .*unknown type"),
        (SOURCE.replace("return scores[1] > scores[0]", "return 5"), "returned 5"),
        (SOURCE.replace("image[0]", "*(volatile uint8_t *)0x60000000"), "stopped"),
    ):
        sources = replace(KNOWN, files={"known.h": HEADER, "known.c": source})
        with pytest.raises(ExportError, match=message):
            measure(sources, find_target("cortex-m4"), np.zeros((1, 4), np.uint8))


def test_wrong_arguments():
    with pytest.raises(InputError, match="cortex-m4"):
        find_target("cortex-m5")
    with pytest.raises(InputError, match="uint8 images of 4"):
        measure(KNOWN, find_target("wasm"), np.zeros((2, 5), np.uint8))


@needs_tools
def test_without_the_packages(monkeypatch):
    monkeypatch.setattr("visionshare.export.targets.compiling.find_spec", lambda name: None)
    with pytest.raises(ExportError, match=r"visionshare\[edge\]"):
        measure(KNOWN, find_target("cortex-m4"), np.zeros((1, 4), np.uint8))


@needs_tools
def test_limits():
    figures = measure(KNOWN, find_target("cortex-m4"), np.zeros((1, 4), np.uint8)).figures
    TargetLimits(figures.flash, figures.ram, figures.instructions).check(vars(figures))
    TargetLimits().check(vars(figures))
    with pytest.raises(BudgetError, match=r"flash is .* ram is .* instructions is"):
        TargetLimits(figures.flash - 1, figures.ram - 1, figures.instructions - 1).check(
            vars(figures)
        )


@needs_tools
def test_the_command(trained, capsys):
    command = ["measure", str(trained), "digits", "--quantize", "int8", "--target", "cortex-m4"]
    command += ["--count", "20"]
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {"flash", "ram", "stack", "instructions"} <= set(figures)
    assert figures["images"] == 20
    assert figures["errors"] <= 12
    # What does not fit is told by the exit code; the figures are written.
    assert main([*command, "--max-flash", "100 B", "--json"]) == 2
    printed = capsys.readouterr()
    # What is limited in flash is compiled for size.
    limited = json.loads(printed.out)
    assert limited["optimize"] == "size"
    assert 100 < limited["flash"] < figures["flash"]
    assert printed.err.startswith("error: cortex-m4: flash is")
    assert main([*command, "--max-flash", "1MiB", "--max-instructions", "100M"]) == 0
    assert "instructions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "z80"], "--target: got 'z80'"),
        (["--target", "wasm", "--optimize", "fast"], "--optimize: got 'fast'"),
        (["--target", "wasm", "--max-flash", "many"], "--max-flash: got 'many'"),
        (["--target", "wasm", "--max-instructions", "1X"], "--max-instructions: got '1X'"),
        (["--target", "wasm", "--count", "0"], "--count: got 0"),
        (["--max-ram", "1KiB"], "--max-ram: got '1KiB'; accepted: nothing without a core"),
        (["--target", "onnx", "--quantize", "int16"], "--quantize: got 'int16'"),
    ],
    ids=str,
)
def test_wrong_options(options, said, trained, capsys):
    capsys.readouterr()
    assert main(["measure", str(trained), *options]) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")
