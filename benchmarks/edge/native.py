"""The same C on this machine: labels of all test images in seconds."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy as np

from visionshare.export.targets import DeviceSources
from visionshare.export.toolchain import run_compiler

__all__ = ["native_labels", "native_scores"]

_LOOP = """#include "{name}.h"
void many(const {pixel} *images, int count, {score} *scores, int *labels);
void many(const {pixel} *images, int count, {score} *scores, int *labels)
{{
    static struct {name}_work work;
    int i;
    for (i = 0; i < count; i++) {{
        labels[i] = {name}_classify(images + (long)i * {n_pixels}, &work, scores);
        scores += {n_classes};
    }}
}}
"""


def native_labels(sources: DeviceSources, images: np.ndarray) -> np.ndarray:
    """Return the index of each image's class, int32."""
    return native_scores(sources, images)[0]


def native_scores(sources: DeviceSources, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each image's class, int32, and its scores (n, n_classes)."""
    loop = _LOOP.format(
        name=sources.name, n_pixels=sources.n_pixels, n_classes=sources.n_classes,
        pixel={"uint8": "uint8_t", "float32": "float"}[sources.pixel],
        score={"int32": "int32_t", "float32": "float"}[sources.score],
    )  # fmt: skip
    images = np.ascontiguousarray(images)
    labels = np.empty(len(images), np.int32)
    scores = np.empty((len(images), sources.n_classes), sources.score)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in {**sources.files, "many.c": loop}.items():
            (folder / file).write_text(text, encoding="utf-8")
        library = folder / "many.so"
        compiled = sorted(folder.glob("*.c"))
        run_compiler(["-O2", "-shared", "-fPIC", *compiled, "-o", library, "-lm"])
        many = ctypes.CDLL(str(library)).many
        many.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        many.restype = None
        many(images.ctypes.data, len(images), scores.ctypes.data, labels.ctypes.data)
    return labels, scores
