"""The files of a package: the C, a self-test of it, and what its ecosystem asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier, EarlyExit
from visionshare.classifier.exit_rule import score_margins
from visionshare.codegen.c_writer import raster_values
from visionshare.codegen.templates import render_file
from visionshare.datasets.frames import FRAMES
from visionshare.errors import ExportError, InputError
from visionshare.export.c.preparation import PREPARATION_BYTES, in_color, whole_preprocessing
from visionshare.export.c.program import CProgram
from visionshare.export.compiled import CompiledClassifier
from visionshare.export.files import write_files
from visionshare.export.library_cache import cached_library
from visionshare.export.targets import TARGETS, device_sources
from visionshare.export.targets.compiling import compile_and_link
from visionshare.export.targets.linked import symbol_size
from visionshare.generators.inputs import raster_shape

_TEMPLATES = Path(__file__).parent / "templates"
_VERSION = "1.0.0"
# What visionshare wrote may be used as its user wishes; whose the classifier is, its maker says.
_LICENSE = """{mark}. The code of this package is licensed under the BSD 3-Clause License:
https://opensource.org/license/bsd-3-clause. Its tables belong to whoever trained the classifier.
"""
# Folders of the C and of its headers.
_C_FOLDERS = {
    "arduino": ("src/", "src/"),
    "platformio": ("src/", "include/"),
    "zephyr": ("src/", "include/"),
    "esp-idf": ("src/", "include/"),
    "micropython": ("", ""),
}
# Files beside the C, and their templates; {} is the name of the classifier.
_FILES: Mapping[str, Mapping[str, str]] = {
    "arduino": {
        "library.properties": "arduino/library.properties.j2",
        "keywords.txt": "arduino/keywords.txt.j2",
        "examples/SelfTest/SelfTest.ino": "arduino/SelfTest.ino.j2",
        "examples/Camera/Camera.ino": "arduino/Camera.ino.j2",
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
        "examples/Camera.py": "micropython/camera.py.j2",
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


def write_package(package: Package, folder: Path, argument: str = "folder") -> list[Path]:
    """Write the files of a package into a folder, made where it is missing; return their paths.

    Files of an earlier export are replaced. An error calls the folder ``argument``.

    Raises
    ------
    InputError
        If the folder cannot be written to, or holds another file of the same name.

    Examples
    --------
    >>> made = Package("arduino", "digits", {"src/digits.c": "/* Generated by visionshare */"})
    >>> with TemporaryDirectory() as name:
    ...     write_package(made, Path(name) / "digits")[0].name
    'digits.c'
    """
    return write_files(package.files, folder, argument)


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
    fits = images.dtype == program.pixel and images.shape[1:] == classifier.image_shape
    if not fits or len(images) == 0:
        accepted = f"{program.pixel} images of shape (n, *{classifier.image_shape})"
        raise InputError("images", (images.shape, str(images.dtype)), accepted)
    name = program.name
    values = _values(classifier, program, images)
    files: dict[str, str | bytes] = {}
    # 1) The C and its self-test, or WebAssembly, where the self-test is a script.
    prepared = [f"{name}_prepare{ending}" for ending in (".c", ".h")] if values["prepared"] else []
    if kind == "npm":
        sources = device_sources(classifier, program)
        more = {path: program.files[path] for path in prepared}
        sources = replace(sources, files={**sources.files, **more})
        exported = [f"{name}_{part}" for part in ("begin", "row", "end") if prepared]
        module, sizes = compile_and_link(sources, TARGETS["wasm"], exported=exported)
        values["work_bytes"] = symbol_size(sizes, f"{name}_work_size")
        files[f"{name}.wasm"] = module
    else:
        for folder, ending in zip(_C_FOLDERS[kind], (".c", ".h"), strict=True):
            files[f"{folder}{name}{ending}"] = program.files[f"{name}{ending}"]
            template = _TEMPLATES / f"common/selftest{ending}.j2"
            files[f"{folder}{name}_selftest{ending}"] = render_file(template, values)
            if prepared:
                files[f"{folder}{name}_prepare{ending}"] = program.files[f"{name}_prepare{ending}"]
    # 2) What the ecosystem asks for.
    for path, template_name in _FILES[kind].items():
        if "Camera" in path and not prepared:
            continue
        files[path.format(name)] = render_file(_TEMPLATES / template_name, values)
    values["kind"] = kind
    values["usage"] = _USAGE[kind].format(prefix=name, macro=name.upper())
    files["README.md"] = render_file(_TEMPLATES / "common/README.md.j2", values)
    files["LICENSE"] = _LICENSE.format(mark=values["mark"])
    return Package(kind, name, files)


def _values(classifier: CompactClassifier, program: CProgram, images: np.ndarray) -> dict[str, Any]:
    """Return what the templates say: of the classifier, and of the self-test's images."""
    from visionshare import __version__

    shape = classifier.image_shape
    images, scores = _selftest(classifier, program, images)
    prepared = f"{program.name}_prepare.c" in program.files
    picture, raster = _prepared(classifier) if prepared else (None, None)
    mode = classifier.picture_mode
    return {
        "prepared": prepared,
        "picture": picture,
        "raster": raster,
        "rgb888": list(FRAMES).index("rgb888"),
        "preparation_bytes": PREPARATION_BYTES,
        "preparation": classifier.preprocessing.describe(mode) if len(shape) > 1 else [],
        "mark": f"Generated by visionshare {__version__}",
        "package_version": _VERSION,
        "prefix": program.name,
        "macro": program.name.upper(),
        **raster_values(raster_shape(shape)),
        "n_pixels": math.prod(shape),
        "n_images": len(images),
        "classes": classifier.classes_.tolist(),
        "names": list(class_names(classifier.classes_)),
        "lengths": [len(name.encode()) for name in class_names(classifier.classes_)],
        "from_bytes": program.pixel == "uint8",
        "whole": program.reference is not None,
        "score_scale": program.score_scale,
        "images": images.reshape(len(images), -1),
        "labels": scores.argmax(axis=1),
        "scores": scores,
    }


def _prepared(classifier: CompactClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Return a made picture and its image."""
    picture = np.full((30, 40), 240, np.uint8)
    picture[6:22, 12:17] = 30
    picture[18:22, 12:30] = 90
    shown = np.stack([picture] * 3, axis=2) if in_color(classifier) else picture
    size = (classifier.image_shape[0], classifier.image_shape[1])
    return picture, whole_preprocessing(classifier).apply(shown, size)


def _selftest(
    classifier: CompactClassifier, program: CProgram, images: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return images of the self-test, and the scores whose labels the program must give."""
    if program.reference is not None:
        return images, program.reference(images)
    rounded = program.quantize != "none"
    if rounded:
        # What floats of rounded tables give is what the C says here.
        with TemporaryDirectory() as folder, suppress(ExportError):
            compiled = CompiledClassifier(classifier, program, cached_library(program, folder))
            return images, compiled.decision_function(images)
    model = EarlyExit(classifier) if program.early_exit else classifier
    scores = model.decision_function(images)
    if not rounded:
        return images, scores
    # Without a compiler: what Python says, of those images whose class is clearest.
    margins = score_margins(scores)
    clear = margins >= np.median(margins)
    return images[clear], scores[clear]
