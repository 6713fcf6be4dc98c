"""AVR: programs by avr-gcc, run by simavr's library through a small program of this machine."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from visionshare.errors import ExportError
from visionshare.export.targets.compiling import OPTIMIZATIONS
from visionshare.export.targets.device_sources import DeviceSources
from visionshare.export.targets.emulation import CoreRun
from visionshare.export.targets.linked import read_image, symbol
from visionshare.export.targets.table import Target
from visionshare.export.toolchain import run_command, run_compiler

_FOLDER = Path(__file__).parent
# Addresses of memory begin here in files.
_MEMORY = 0x800000
# What the two programs talk through.
_SYMBOLS = ("state", "label", "scores")


class AvrRun(NamedTuple):
    """What a core said of images, and what the program takes."""

    runs: list[CoreRun]
    stack: int
    flash: int
    ram: int
    constants: int


def run_on_avr(sources: DeviceSources, target: Target, images: np.ndarray, optimize: str) -> AvrRun:
    """Classify images on an emulated AVR; its memory holds image and scores too."""
    if shutil.which("avr-gcc") is None:
        message = "avr-gcc is not installed: apt install gcc-avr avr-libc simavr libsimavr-dev"
        raise ExportError(message)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, host = folder / "program.elf", folder / "host"
        # 1) The program, and what runs it.
        for file, text in sources.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        main = (_FOLDER / "avr_main.c.in").read_text(encoding="ascii")
        for word, value in _words(sources).items():
            main = main.replace(f"@{word}@", value)
        (folder / "avr_main.c").write_text(main, encoding="ascii")
        flags = [f"-mmcu={target.cpu}", "-std=gnu99", OPTIMIZATIONS[optimize], "-Wall", "-Wextra"]
        flags += ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-mcall-prologues"]
        files = [str(file) for file in sorted(folder.glob("*.c"))]
        run_command(["avr-gcc", *flags, *files, "-lm", "-o", str(program)], "avr-gcc")
        run_compiler([_FOLDER / "avr_host.c", "-o", host, "-lsimavr", "-lelf"])
        # 2) Images in, labels out.
        (folder / "images").write_bytes(np.ascontiguousarray(images).tobytes())
        elf = program.read_bytes()
        places = [symbol(elf, part)[0] - _MEMORY for part in (*_SYMBOLS, "image")]
        places += [symbol(elf, "_end")[0] - _MEMORY, sources.image_bytes, 4 * sources.n_classes]
        command = [host, program, target.cpu, folder / "images", *places]
        printed = run_command([*map(str, command)], "simavr").splitlines()
    *lines, stack = (line[2:] for line in printed if line.startswith("= "))
    runs = []
    for line in lines:
        label, instructions, taken, scores = line.split()
        found = np.frombuffer(bytes.fromhex(scores), sources.score)
        runs.append(CoreRun(int(label), found, int(instructions), int(taken)))
    linked = read_image(elf)
    constants = table_bytes(elf)
    return AvrRun(runs, int(stack), linked.flash, linked.static_ram, constants)


def _words(sources: DeviceSources) -> dict[str, str]:
    """Return what the program says of a classifier."""
    return {
        "name": sources.name,
        "NAME": sources.name.upper(),
        "pixel": "uint8_t" if sources.pixel == "uint8" else "float",
        "score": "int32_t" if sources.score == "int32" else "float",
        "pixels": str(sources.n_pixels),
        "classes": str(sources.n_classes),
    }


def table_bytes(elf: bytes) -> int:
    """Return the bytes of tables in flash, which stand in the section of the code."""
    import io

    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(elf))
    text = file.get_section_index(".text")
    entries = (s.entry for s in file.get_section_by_name(".symtab").iter_symbols())
    return sum(e.st_size for e in entries if e.st_info.type == "STT_OBJECT" and e.st_shndx == text)
