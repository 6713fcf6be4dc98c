"""Cross-compiling with zig's clang: for every core from one package."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from visionshare.errors import ExportError, InputError
from visionshare.export.targets.device_sources import DeviceSources
from visionshare.export.targets.table import Target
from visionshare.export.toolchain import run_command

#: Flags by what the code is made for.
OPTIMIZATIONS = {"size": "-Os", "speed": "-O2", "more-speed": "-O3"}
#: Exported C has none of these.
WARNINGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
# Constants and code at the beginning of the flash, variables at that of the memory; tables for
# unwinding are of no use in C.
_LINKER_SCRIPT = """SECTIONS
{
    . = 0x08000000;
    .text : { *(.text .text.*) }
    .rodata : { *(.rodata .rodata.*) }
    . = 0x20000000;
    .data : { *(.data .data.* .sdata .sdata.*) }
    .bss : { *(.bss .bss.* .sbss .sbss.* COMMON) }
    /DISCARD/ : { *(.ARM.exidx* .ARM.extab* .eh_frame* .comment .note*) }
}
"""
# Bare metal has no C library; these are in what clang itself adds to a program.
_HEADERS = {
    "math.h": "".join(
        f"float {name}f(float);\ndouble {name}(double);\n"
        for name in ("cos", "exp", "fabs", "floor", "log", "sin", "sqrt", "tan")
    )
    + "float atan2f(float, float);\nfloat hypotf(float, float);\nfloat powf(float, float);\n",
    "string.h": "#include <stddef.h>\nvoid *memset(void *, int, size_t);\n"
    "size_t strlen(const char *);\n"
    "void *memcpy(void *, const void *, size_t);\nvoid *memmove(void *, const void *, size_t);\n",
    "stdlib.h": "#include <stddef.h>\n",
}
# The size of a structure is that of an array in an object file.
_WORK_SIZE = """#include "{name}.h"
extern char {name}_work_size[sizeof(struct {name}_work)];
char {name}_work_size[sizeof(struct {name}_work)] = {{1}};
"""


def zig() -> list[str]:
    """Return the command of zig, from the package ziglang."""
    if find_spec("ziglang") is None:
        message = "the package ziglang is not installed: pip install 'visionshare[edge]'"
        raise ExportError(message)
    return [sys.executable, "-m", "ziglang"]


def compile_objects(
    sources: DeviceSources,
    target: Target,
    folder: Path,
    optimize: str = "speed",
    flags: Sequence[str] = (),
) -> list[Path]:
    """Compile every source and return the object files."""
    if optimize not in OPTIMIZATIONS:
        raise InputError("optimize", optimize, " or ".join(map(repr, OPTIMIZATIONS)))
    headers = folder / "headers"
    headers.mkdir()
    for name, text in _HEADERS.items():
        (headers / name).write_text(text, encoding="ascii")
    for name, text in sources.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    sections = ["-ffunction-sections", "-fdata-sections"]
    options = [*_machine_flags(target), OPTIMIZATIONS[optimize], *sections, *flags]
    return [
        _compiled(folder / name, options) for name in sorted(sources.files) if name.endswith(".c")
    ]


def compile_and_link(
    sources: DeviceSources,
    target: Target,
    optimize: str = "speed",
    exported: Sequence[str] = (),
) -> tuple[bytes, bytes]:
    """Return a linked classifier, and an object file that holds the size of its work."""
    # WebAssembly has the ``exported`` functions too.
    entry = f"{sources.name}_classify"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        objects = compile_objects(sources, target, folder, optimize)
        # 1) The size of the work.
        source = folder / "work_size.c"
        source.write_text(_WORK_SIZE.format(name=sources.name), encoding="ascii")
        machine = _machine_flags(target)
        if target.machine == "wasm":
            # ELF for every target: an object of a PC of 32 bits, told what WebAssembly computes.
            one_by_one = f"-D{sources.name.upper()}_ONE_BY_ONE=1"
            machine = ["-target", "x86-freestanding", one_by_one]
        work_size = _compiled(source, machine)
        # 2) The program.
        script = folder / "link.ld"
        script.write_text(_LINKER_SCRIPT, encoding="ascii")
        link = [f"-Wl,-T,{script}", f"-Wl,-e,{entry}"]
        if target.machine == "wasm":
            exports = (entry, *exported, "__heap_base", "__stack_pointer")
            link = [f"-Wl,--export={symbol}" for symbol in exports]
            link += ["-Wl,--no-entry", "-Wl,--strip-all"]
        linked = folder / "linked"
        options = [*_machine_flags(target), OPTIMIZATIONS[optimize], "-Wl,--gc-sections", *link]
        _zig_cc([*options, *map(str, objects), *sources.linked, "-o", str(linked)])
        return linked.read_bytes(), work_size.read_bytes()


def _machine_flags(target: Target) -> list[str]:
    # Loops stay loops: zig would otherwise add checks of undefined behavior.
    return ["-target", target.triple, f"-mcpu={target.cpu}", "-fno-sanitize=undefined"]


def _compiled(source: Path, options: list[str]) -> Path:
    """Compile a source of a folder with headers; return the object file."""
    made = source.with_name(source.name + ".o")
    headers = ["-isystem", str(source.parent / "headers")]
    _zig_cc([*options, *headers, "-c", str(source), "-o", str(made)])
    return made


def _zig_cc(arguments: list[str]) -> None:
    """Run zig's clang."""
    run_command([*zig(), "cc", *arguments], "zig cc")
