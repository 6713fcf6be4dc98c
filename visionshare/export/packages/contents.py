"""The files of a package: the C, a self-test of it, and what its ecosystem asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier, EarlyExit
from visionshare.classifier.exit_rule import score_margins
from visionshare.codegen.templates import render_file
from visionshare.errors import ExportError, InputError
from visionshare.export.c.program import CProgram
from visionshare.export.compiled import CompiledClassifier
from visionshare.export.library_cache import cached_library
from visionshare.export.targets import device_sources, find_target
from visionshare.export.targets.compiling import compile_and_link
from visionshare.export.targets.linked import symbol_size

__all__ = ["PACKAGES", "Package", "package"]

_TEMPLATES = Path(__file__).parent / "templates"
_VERSION = "1.0.0"
# Where a package has the C and its self-test, and which templates become which files; {} is the
# name of the classifier.
_C_FOLDERS = {
    "arduino": ("src", "src"),
    "platformio": ("src", "include"),
    "zephyr": ("src", "include"),
    "esp-idf": ("src", "include"),
    "micropython": ("", ""),
}
_FILES: Mapping[str, Mapping[str, str]] = {
    "arduino": {
        "library.properties": "arduino/library.properties.j2",
        "keywords.txt": "arduino/keywords.txt.j2",
        "examples/SelfTest/SelfTest.ino": "arduino/SelfTest.ino.j2",
    },
    "platformio": {
        "library.json": "platformio/library.json.j2",
        "examples/selftest/platformio.ini": "platformio/platformio.ini.j2",
        "examples/selftest/src/main.c": "common/main.c.j2",
    },
    "zephyr": {
        "zephyr/module.yml": "zephyr/module.yml.j2",
        "CMakeLists.txt": "zephyr/CMakeLists.txt.j2",
        "Kconfig": "zephyr/Kconfig.j2",
        "samples/selftest/CMakeLists.txt": "zephyr/sample_CMakeLists.txt.j2",
        "samples/selftest/prj.conf": "zephyr/prj.conf.j2",
        "samples/selftest/sample.yaml": "zephyr/sample.yaml.j2",
        "samples/selftest/src/main.c": "common/main.c.j2",
    },
    "esp-idf": {
        "CMakeLists.txt": "esp_idf/CMakeLists.txt.j2",
        "idf_component.yml": "esp_idf/idf_component.yml.j2",
        "examples/selftest/CMakeLists.txt": "esp_idf/project_CMakeLists.txt.j2",
        "examples/selftest/main/CMakeLists.txt": "esp_idf/main_CMakeLists.txt.j2",
        "examples/selftest/main/main.c": "esp_idf/main.c.j2",
    },
    "micropython": {
        "Makefile": "micropython/Makefile.j2",
        "{}_module.c": "micropython/module.c.j2",
        "selftest.py": "micropython/selftest.py.j2",
    },
    "npm": {
        "package.json": "npm/package.json.j2",
        "index.js": "npm/index.js.j2",
        "index.d.ts": "npm/index.d.ts.j2",
        "selftest.js": "npm/selftest.js.j2",
        "index.html": "npm/index.html.j2",
    },
}
_USAGE = {
    "arduino": "Put this folder into `libraries` of the sketchbook; the example SelfTest prints 0.",
    "platformio": "Name this folder in `lib_deps`; `pio run -d examples/selftest -t exec` "
    "ends with 0.",
    "zephyr": "Name this folder in `ZEPHYR_EXTRA_MODULES`, and set `CONFIG_{macro}=y`; the sample "
    "`samples/selftest` prints 0.",
    "esp-idf": "Name this folder in `EXTRA_COMPONENT_DIRS`; `idf.py -C examples/selftest flash "
    "monitor` prints 0.",
    "micropython": "`make MPY_DIR=... ARCH=...` makes `{prefix}.mpy`, for the board's file system; "
    "`selftest.py` ends without an error.",
    "npm": '`import {{ load }} from "{prefix}"`; `npm test` runs the self-test; `index.html` is a '
    "page to draw on.",
}
#: Names of the ecosystems.
PACKAGES = tuple(_FILES)


@dataclass(frozen=True)
class Package:
    """A package as files by path.

    Parameters
    ----------
    kind : str
        One of :data:`PACKAGES`.
    name : str
    files : mapping of str to str or bytes

    Examples
    --------
    >>> Package("npm", "digits", {"package.json": "{}"}).kind
    'npm'
    """

    kind: str
    name: str
    files: Mapping[str, str | bytes]


def package(
    kind: str, classifier: CompactClassifier, program: CProgram, images: np.ndarray
) -> Package:
    """Return a classifier as a package of an ecosystem.

    Parameters
    ----------
    kind : {"arduino", "platformio", "zephyr", "esp-idf", "micropython", "npm"}
    classifier : CompactClassifier
    program : CProgram
        Its C.
    images : ndarray of shape (n, *image_shape)
        For the self-test, of the program's type of pixel; a few are enough.

    Raises
    ------
    InputError
        If the kind is unknown, or the images do not fit.
    ExportError
        For npm, if ziglang is not installed, which makes the WebAssembly.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> from visionshare.export import c_program
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> made = package("arduino", model, c_program(model), np.zeros((1, 2, 2), np.uint8))
    >>> sorted(made.files)[-3:]
    ['src/classifier.h', 'src/classifier_selftest.c', 'src/classifier_selftest.h']
    """
    if kind not in PACKAGES:
        raise InputError("package", kind, ", ".join(PACKAGES))
    images = np.asarray(images)
    if (
        images.dtype != program.pixel
        or images.shape[1:] != classifier.image_shape
        or not len(images)
    ):
        accepted = f"{program.pixel} images of shape (n, *{classifier.image_shape})"
        raise InputError("images", (images.shape, str(images.dtype)), accepted)
    values = _values(classifier, program, images)
    files: dict[str, str | bytes] = {}
    if kind == "npm":
        module, work_bytes = _webassembly(classifier, program)
        values["work_bytes"] = work_bytes
        files[f"{program.name}.wasm"] = module
    else:
        name, (sources, headers) = program.name, _C_FOLDERS[kind]
        for folder, ending in ((sources, ".c"), (headers, ".h")):
            place = f"{folder}/" if folder else ""
            files[f"{place}{name}{ending}"] = program.files[f"{name}{ending}"]
            made_of = _TEMPLATES / f"common/selftest{ending}.j2"
            files[f"{place}{name}_selftest{ending}"] = render_file(made_of, values)
    for path, template in _FILES[kind].items():
        files[path.format(program.name)] = render_file(_TEMPLATES / template, values)
    usage = _USAGE[kind].format(prefix=program.name, macro=program.name.upper())
    files["README.md"] = render_file(_TEMPLATES / "common/README.md.j2", values | {"usage": usage})
    return Package(kind, program.name, files)


def _values(classifier: CompactClassifier, program: CProgram, images: np.ndarray) -> dict[str, Any]:
    """Return what the templates say: of the classifier, and of the self-test's images."""
    from visionshare import __version__

    shape = classifier.image_shape
    height, width, channels = {1: (1, *shape, 1), 2: (*shape, 1), 3: shape}[len(shape)]
    whole = program.reference is not None
    images, scores = _tested(classifier, program, images)
    return {
        "mark": f"Generated by visionshare {__version__}", "package_version": _VERSION,
        "prefix": program.name, "macro": program.name.upper(), "height": height, "width": width,
        "channels": channels, "n_pixels": math.prod(shape), "n_images": len(images),
        "classes": classifier.classes_.tolist(), "names": list(class_names(classifier.classes_)),
        "from_bytes": program.pixel == "uint8", "whole": whole, "score_scale": program.score_scale,
        "images": images.reshape(len(images), -1), "labels": scores.argmax(axis=1),
        "scores": scores,
    }  # fmt: skip


def _tested(
    classifier: CompactClassifier, program: CProgram, images: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return images of the self-test, and the scores whose labels the program must give."""
    # What floats of rounded tables give is what the C says here. Without a compiler it is what
    # Python says, of those images whose class is clearest.
    if program.reference is not None:
        return images, program.reference(images)
    if program.quantize != "none":
        with TemporaryDirectory() as folder, suppress(ExportError):
            compiled = CompiledClassifier(classifier, program, cached_library(program, folder))
            return images, compiled.decision_function(images)
    scores = (
        EarlyExit(classifier).run(images)[0]
        if program.early_exit
        else classifier.decision_function(images)
    )
    if program.quantize != "none":
        margins = score_margins(scores)
        clear = margins >= np.median(margins)
        images, scores = images[clear], scores[clear]
    return images, scores


def _webassembly(classifier: CompactClassifier, program: CProgram) -> tuple[bytes, int]:
    """Return a module, and the bytes of its work."""
    sources = device_sources(classifier, program)
    module, sizes = compile_and_link(sources, find_target("wasm"))
    return module, symbol_size(sizes, f"{program.name}_work_size")
