"""A model behind TensorFlow Lite Micro: its interpreter and reference kernels on a core.

The folder is a clone of tflite-micro after its own
``make -f tensorflow/lite/micro/tools/make/Makefile third_party_downloads``. Clang compiles it for
size, as all others; headers of C++ and the C library are those of arm-none-eabi-g++. Objects stay
in the folder for the next model.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.edge.contender import Contender
from benchmarks.edge.prepared import behind_a_camera
from visionshare.export.targets import DeviceSources, Target, find_target, measure
from visionshare.export.targets.compiling import OPTIMIZATIONS, zig
from visionshare.export.toolchain import run_command

__all__ = ["micro_cores"]

_PARTS = (
    "micro", "micro/arena_allocator", "micro/memory_planner", "micro/tflite_bridge", "core/c",
    "core/api", "kernels", "kernels/internal", "kernels/internal/reference",
    "../compiler/mlir/lite/schema", "../compiler/mlir/lite/core/api",
)  # fmt: skip
_OTHERS = re.compile("test|mock|fake|recording|debug_log|hexdump|micro_time|profiler")
_FLAGS = (
    "-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-ffunction-sections",
    "-fdata-sections", "-DTF_LITE_STATIC_MEMORY", "-DNDEBUG", "-DTF_LITE_STRIP_ERROR_STRINGS",
    "-fno-sanitize=undefined", "-w", "-nostdinc++",
)  # fmt: skip
# Enough to find out how much is used.
_ARENA = 1 << 20
_HEADER = """#ifndef MICRO_H
#define MICRO_H
#include <stdint.h>
struct micro_work {{ uint8_t arena[{arena}] __attribute__((aligned(16))); }};
int micro_classify(const uint8_t *image, struct micro_work *work, float *scores);
#endif
"""
_SOURCE = """#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"
extern "C" {{
#include "micro.h"
// What newlib would say to an operating system.
void abort() {{ for (;;) {{}} }}
}}
alignas(16) static const unsigned char kModel[] = {{{model}}};
int micro_classify(const uint8_t *image, struct micro_work *work, float *scores) {{
  static tflite::MicroInterpreter *ready;
  if (!ready) {{
    static tflite::MicroMutableOpResolver<{count}> resolver;
    {added}
    static tflite::MicroInterpreter made(
        tflite::GetModel(kModel), resolver, work->arena, sizeof work->arena);
    if (made.AllocateTensors() != kTfLiteOk) return -1;
    ready = &made;
  }}
  for (int i = 0; i < {pixels}; i++) ready->input(0)->data.uint8[i] = image[i];
  if (ready->Invoke() != kTfLiteOk) return -1;
  int best = 0;
  for (int k = 0; k < {classes}; k++) {{
    scores[k] = ready->output(1)->data.f[k];
    if (scores[k] > scores[best]) best = k;
  }}
  {last}
  return best;
}}
"""


def micro_cores(
    folder: Path, file: Path, images: np.ndarray, labels: np.ndarray, targets: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the figures of a model of bytes on each Arm core, alone and behind a frame.

    Raises
    ------
    RuntimeError
        If a core gives an image another label than LiteRT.
    """
    cores: dict[str, dict[str, Any]] = {}
    for name in targets:
        target = find_target(name)
        with tempfile.TemporaryDirectory() as place:
            sources = _Build(folder, file, target, Path(place)).sources(images[0].size)
            cores[name], found = _measured(sources, target, images)
            if not np.array_equal(found, labels):
                raise RuntimeError(f"{file.stem}: {name} and LiteRT differ")
            framed = behind_a_camera(Contender(file.stem, sources, None, images[:2], labels))
            if framed is not None:
                seen, _ = _measured(framed.sources, target, framed.images)
                for figure in ("flash", "ram", "instructions"):
                    cores[name][f"prepared_{figure}"] = seen[figure]
    return cores


def _measured(
    sources: DeviceSources, target: Target, images: np.ndarray
) -> tuple[dict[str, Any], np.ndarray]:
    """Return figures and labels without the set-up of the first call."""
    first = measure(sources, target, images[:1], "size").figures.instructions
    found = measure(sources, target, np.concatenate([images[:1], images]), "size")
    figures = vars(found.figures)
    kept = {name: figures[name] for name in ("flash", "ram", "stack", "code", "constants", "work")}
    n = len(images)
    kept["instructions"] = round((figures["instructions"] * (n + 1) - first) / n)
    return {**kept, "images": n}, found.labels[1:]


class _Build:
    """A model's interpreter with the kernels that it uses, compiled for a core."""

    def __init__(self, folder: Path, file: Path, target: Target, place: Path) -> None:
        folder = folder.resolve()
        self._lite = folder / "tensorflow" / "lite"
        self._folder, self._target, self._place = folder, target, place
        self._objects = folder / "objects" / target.name
        self._objects.mkdir(parents=True, exist_ok=True)
        self._model = file.read_bytes()
        self._operators = sorted(_operators(self._model))
        downloads = self._lite / "micro" / "tools" / "make" / "downloads"
        include = [folder, downloads / "flatbuffers" / "include"]
        include += [downloads / "gemmlowp", downloads / "ruy", place]
        system, self._libraries = _newlib(target)
        self._flags = [
            "-target", target.triple, f"-mcpu={target.cpu}", OPTIMIZATIONS["size"], *_FLAGS,
            *(f"-I{one}" for one in include), *(f"-isystem{one}" for one in system),
        ]  # fmt: skip

    def sources(self, pixels: int) -> DeviceSources:
        """Return what :func:`measure` compiles and links."""
        common = [
            self._compiled(source, self._objects / "-".join(source.relative_to(self._folder).parts))
            for source in self._files()
        ]
        probe = self._whole(common, pixels, _ARENA, "scores[best = 0] = ready->arena_used_bytes();")
        image = np.zeros((1, pixels), np.uint8)
        used = measure(probe, self._target, image, "size").scores[0, 0]
        return self._whole(common, pixels, int(used), "")

    def _whole(self, common: list[str], pixels: int, arena: int, last: str) -> DeviceSources:
        header = _HEADER.format(arena=arena)
        (self._place / "micro.h").write_text(header, encoding="ascii")
        methods = re.findall(
            r"TfLiteStatus (Add\w+)\(",
            (self._lite / "micro/micro_mutable_op_resolver.h").read_text(),
        )
        by_name = {method.lower(): method for method in methods}
        added = [by_name["add" + name.replace("_", "").lower()] for name in self._operators]
        text = _SOURCE.format(
            model=",".join(map(str, self._model)), count=len(added), pixels=pixels, classes=10,
            added=" ".join(f"resolver.{one}();" for one in added), last=last,
        )  # fmt: skip
        source = self._place / "micro.cc"
        source.write_text(text, encoding="ascii")
        made = self._place / "micro.o"
        made.unlink(missing_ok=True)
        linked = (*common, self._compiled(source, made), *self._libraries)
        return DeviceSources("micro", {"micro.h": header}, "uint8", pixels, 10, "float32", linked)

    def _files(self) -> Iterator[Path]:
        """Yield the interpreter's sources and those of the kernels in use."""
        for part in _PARTS:
            for source in sorted((self._lite / part).resolve().glob("*.cc")):
                if not _OTHERS.search(source.name):
                    yield source
        kernels = self._lite / "micro" / "kernels"
        used = [f"Register_{name}()" for name in self._operators]
        for source in sorted(kernels.glob("*.cc")):
            if "test" in source.stem:
                continue
            stem = source.with_name(source.stem.removesuffix("_common") + ".cc")
            texts = [one.read_text() for one in {stem, source} if one.is_file()]
            if source.stem in ("kernel_util", "micro_tensor_utils") or any(
                name in text for name in used for text in texts
            ):
                yield source

    def _compiled(self, source: Path, made: Path) -> str:
        made = made.with_suffix(".o")
        if not made.is_file():
            command = [*zig(), "c++", *self._flags, "-c", str(source), "-o", str(made)]
            run_command(command, "zig c++")
        return str(made)


def _newlib(target: Target) -> tuple[list[str], tuple[str, ...]]:
    """Return folders of headers and libraries of arm-none-eabi-g++ for a core."""
    cpu = target.name
    floats = "-mfloat-abi=hard" if target.triple.endswith("hf") else "-mfloat-abi=soft"
    command = ["arm-none-eabi-g++", f"-mcpu={cpu}", "-mthumb", floats]
    said = subprocess.run(
        [*command, "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True, check=True
    ).stderr
    listed = said.split("<...> search starts here:")[1].split("End of search list")[0].split()
    found = [run_command([*command, f"-print-file-name={name}"], command[0]).strip()
             for name in ("libm.a", "libc_nano.a")]  # fmt: skip
    return [path for path in listed if "/../" in path], tuple(found)


def _operators(model: bytes) -> set[str]:
    from ai_edge_litert import schema_py_generated as schema

    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    made = schema.Model.GetRootAs(model)
    return {names[made.OperatorCodes(i).BuiltinCode()] for i in range(made.OperatorCodesLength())}
