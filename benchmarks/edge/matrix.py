"""The matrix of packages, architectures and compilers: built, self-tested, measured, or not here.

    python -m benchmarks.edge.matrix --out docs/results

The self-test of a package is emulated where an emulator is here, and run where the compiler is this
machine's. MPY_DIR names a MicroPython with a built mpy-cross and unix port; without it that column
says so.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.edge.qemu import run_in_qemu
from scripts.reproduce.results import keep_runs, table, write_page
from visionshare import load
from visionshare.classifier import CompactClassifier
from visionshare.cli.forms import sample_images
from visionshare.errors import ExportError
from visionshare.export import CProgram, c_program
from visionshare.export.c.preparation import with_preparation
from visionshare.export.packages import package, write_package
from visionshare.export.targets import TARGETS, DeviceSources, device_sources, measure
from visionshare.export.targets.compiling import WARNINGS

_ARM = "arm-none-eabi-gcc -mthumb -mcpu="
#: Compilers beside clang, and what they build for.
OTHERS = {
    "x86-64": "gcc",
    "cortex-m0plus": f"{_ARM}cortex-m0plus",
    "cortex-m4": f"{_ARM}cortex-m4",
    "cortex-m55": f"{_ARM}cortex-m55",
    "rv32imc": "riscv64-unknown-elf-gcc -march=rv32imc -mabi=ilp32 --specs=picolibc.specs",
    "Xtensa lx106": "xtensa-lx106-elf-gcc",
}
#: Packages of C, and the architectures that their ecosystems build for.
PACKAGES_OF_C = ("arduino", "platformio", "zephyr", "esp-idf", "micropython")
_ESPRESSIF = ("esp32", "Xtensa")
_N_IMAGES = 2
#: What MicroPython calls the architectures, and the beginning of its compiler's name.
MICROPYTHON = {
    "x86-64": ("x64", ""),
    "cortex-m0plus": ("armv6m", "arm-none-eabi-"),
    "cortex-m4": ("armv7emsp", "arm-none-eabi-"),
    "cortex-m55": ("armv7emsp", "arm-none-eabi-"),
    "rv32imc": ("rv32imc", "riscv64-unknown-elf-"),
}
# The self-test as a classifier: how many images differ is its first score.
CHECK_HEADER = """#include <stdint.h>
struct check_work { char none; };
int check_classify(const uint8_t *image, struct check_work *work, int32_t *scores);
"""
CHECK = """#include "check.h"
#include "small_selftest.h"
int check_classify(const uint8_t *image, struct check_work *work, int32_t *scores)
{
    (void)image;
    (void)work;
    scores[0] = small_selftest();
    scores[1] = -1;
    return 0;
}
"""


class Built(NamedTuple):
    """What became of the C, and of MicroPython's module, on an architecture.

    Figures are None where they are not known.
    """

    architecture: str
    compiler: str
    #: "passes", "builds", "fails", or why it is not possible here.
    state: str
    flash: int | None = None
    ram: int | None = None
    instructions: int | None = None
    micropython: str = "–"


def check_sources(files: dict[str, str]) -> DeviceSources:
    """Return the self-test of a package's C as a classifier of one score."""
    sources = {**files, "check.h": CHECK_HEADER, "check.c": CHECK}
    return DeviceSources("check", sources, "uint8", 4, 2, "int32")


def emulated(
    model: CompactClassifier, program: CProgram, files: dict[str, str], name: str
) -> Built:
    """Return what clang, or avr-gcc, makes for a core, run in its emulator."""
    target = TARGETS[name]
    compiler = "avr-gcc" if target.machine == "avr" else "clang"
    images, _ = sample_images(model, program.pixel, most=3)
    try:
        figures = measure(device_sources(model, program), target, images, "size").figures
    except ExportError as error:
        return Built(name, compiler, f"not here: {error}")
    try:
        wrong = measure(check_sources(files), target, np.zeros((1, 4), np.uint8), "size").scores
        state = "fails" if wrong[0, 0] else "passes"
    except ExportError:
        state = "too small for the self-test; classifies"
    return Built(name, compiler, state, figures.flash, figures.ram, figures.instructions)


def built(files: dict[str, str], architecture: str, command: str) -> Built:
    """Return what another compiler makes, without a warning; run where it is this machine's."""
    words = command.split()
    compiler = words[0]
    if shutil.which(compiler) is None:
        return Built(architecture, compiler, f"not here: no {compiler}")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        sources = sorted(name for name in files if name.endswith(".c"))
        run = {"cwd": folder, "check": False, "capture_output": True, "text": True}
        flags = [*WARNINGS, "-Os", "-ffunction-sections", "-fdata-sections"]
        made = subprocess.run([*words, *flags, "-c", *sources], **run)  # type: ignore[call-overload]
        if made.returncode:
            return Built(architecture, compiler, f"fails: {made.stderr.splitlines()[0]}")
        if compiler != "gcc":
            return _on_board(architecture, words, sources, Path(folder))
        Path(folder, "main.c").write_text(
            '#include "small_selftest.h"\nint main(void) { return small_selftest(); }\n'
        )
        subprocess.run(["gcc", "main.c", *sources, "-lm", "-o", "run"], **run)  # type: ignore[call-overload]
        wrong = subprocess.run(["./run"], **run).returncode  # type: ignore[call-overload]
        return Built(architecture, compiler, "fails" if wrong else "passes")


def _on_board(architecture: str, compiler: list[str], sources: list[str], folder: Path) -> Built:
    """Return what an embedded compiler's objects take, and what QEMU says of their self-test."""
    run = {"cwd": folder, "check": True, "capture_output": True, "text": True}
    # 1) The classifier alone, with what it calls: as on the cores of clang.
    link = ["-nostartfiles", "-Wl,--gc-sections,-e,small_classify", "small.o", "-o", "small.elf"]
    # The ESP8266 has products of 64 bits in its ROM.
    link += ["-Wl,--defsym=__muldi3=0x400000"] if "xtensa" in compiler[0] else []
    subprocess.run([*compiler, *link], **run)  # type: ignore[call-overload]
    size = compiler[0].replace("gcc", "size")
    # Text, data and zeros; those of the self-test are the work of a call.
    lines = subprocess.run([size, "small.elf", "small_selftest.o"], **run).stdout.splitlines()  # type: ignore[call-overload]
    linked, tested = ([int(word) for word in line.split()[:3]] for line in lines[1:])
    flash = linked[0] + linked[1]
    ram = linked[1] + sum(tested[1:])
    # 2) The self-test.
    objects = [f"{name[:-2]}.o" for name in sources if "prepare" not in name]
    ran = run_in_qemu(architecture, compiler, objects, "small_selftest", folder)
    if ran is None:
        return Built(architecture, compiler[0], "builds", flash, ram)
    state = "fails" if ran[0] else "passes"
    return Built(architecture, compiler[0], state, flash, ram, ran[1] // _N_IMAGES)


def native_module(model: CompactClassifier, program: CProgram, architecture: str) -> str:
    """Return what MicroPython's own tools make of its package; its unix port runs it here."""
    if "MPY_DIR" not in os.environ:
        return "not here: MPY_DIR"
    name, prefix = MICROPYTHON[architecture]
    sources = os.environ["MPY_DIR"]
    images, _ = sample_images(model, program.pixel, most=_N_IMAGES)
    with tempfile.TemporaryDirectory() as folder:
        run = {"cwd": folder, "check": False, "capture_output": True, "text": True}
        write_package(package("micropython", model, program, images), Path(folder))
        tools = [
            f"MPY_DIR={sources}",
            f"ARCH={name}",
            f"CROSS={prefix}",
            f"PYTHON={sys.executable}",
        ]
        made = subprocess.run(["make", *tools], **run)  # type: ignore[call-overload]
        if made.returncode:
            return f"fails: {made.stderr.strip().splitlines()[-1]}"
        if prefix:
            return f"builds, {Path(folder, 'small.mpy').stat().st_size:,} bytes"
        port = f"{sources}/ports/unix/build-standard/micropython"
        done = subprocess.run([port, "selftest.py"], **run)  # type: ignore[call-overload]
        return "fails" if done.returncode else "passes"


def matrix(
    model: CompactClassifier,
    targets: Sequence[str] = tuple(TARGETS),
    others: Mapping[str, str] = OTHERS,
) -> list[Built]:
    """Return what became of a classifier's C on every architecture."""
    program = with_preparation(model, c_program(model, "small"))
    images, _ = sample_images(model, program.pixel, most=_N_IMAGES)
    packed = package("platformio", model, program, images).files
    files = {
        path.split("/")[-1]: str(text)
        for path, text in packed.items()
        if path.startswith(("src/", "include/"))
    }
    plain = replace(program, files={n: t for n, t in program.files.items() if "prepare" not in n})
    tests = {name: text for name, text in files.items() if "prepare" not in name}
    found = [emulated(model, plain, tests, name) for name in targets]
    for architecture, command in others.items():
        row = built(files, architecture, command)
        if architecture in MICROPYTHON and shutil.which(row.compiler):
            row = row._replace(micropython=native_module(model, program, architecture))
        found.append(row)
    return found


def of_package(kind: str, row: Built) -> str:
    """Return what a package is on an architecture: its C is that of all, its tools are not."""
    espressif = row.architecture.startswith(_ESPRESSIF)
    avr = row.compiler == "avr-gcc"
    wasm = row.architecture == "wasm"
    if (kind == "npm") != wasm:
        return "–"
    if (kind == "esp-idf" and not espressif) or (kind == "zephyr" and avr):
        return "–"
    return row.micropython if kind == "micropython" else row.state


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classifier", default="mnist-4k")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    rows = matrix(load(options.classifier))
    keep_runs(options.out, "edge-matrix", rows)
    write(options.out, options.classifier, rows)


def write(out: Path, classifier: str, rows: Sequence[Built]) -> None:
    """Write the page."""
    cells = [
        [row.architecture, row.compiler, _packages(row)]
        + ["–" if value is None else f"{value:,}" for value in row[3:6]]
        for row in rows
    ]
    header = ["architecture", "compiler", "packages", "flash", "RAM", "instructions"]
    write_page(out, "edge-matrix", classifier=classifier, figures=table(header, cells))


def _packages(row: Built) -> str:
    """Return what became of the packages, those with the same end together."""
    states: dict[str, list[str]] = {}
    for kind in (*PACKAGES_OF_C, "npm"):
        if (state := of_package(kind, row)) != "–":
            states.setdefault(state, []).append(kind)
    return "; ".join(f"{', '.join(kinds)}: {state}" for state, kinds in states.items())


if __name__ == "__main__":
    main()
