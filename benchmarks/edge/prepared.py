"""A contender behind the preparation of a camera's frame, for any classifier of gray rasters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.edge.contender import Contender
from visionshare import CompactClassifier, Pixels, load
from visionshare.datasets.frames import frame_of_gray
from visionshare.export import c_program
from visionshare.export.c.preparation import with_preparation

__all__ = ["KIND", "behind_a_camera"]

#: Of the frames, 240 rows of 320 pixels.
KIND = "rgb565"
_HEADER = """#ifndef FRAMED_H
#define FRAMED_H
#include "camera_prepare.h"
#include "{name}.h"
struct framed_work {{
    uint8_t image[{pixels}];
    union {{ struct camera_preparation preparation; struct {name}_work classification; }} memory;
}};
int framed_classify(const uint8_t *frame, struct framed_work *work, {score} *scores);
#endif
"""
_SOURCE = """#include "framed.h"
int framed_classify(const uint8_t *frame, struct framed_work *work, {score} *scores)
{{
    const struct camera_frame seen = {{frame, 240, 320, 640, CAMERA_RGB565}};
    const struct camera_rectangle part = {{0, 0, 240, 320}};

    camera_prepare(&seen, &part, &work->memory.preparation, work->image);
    return {name}_classify(work->image, &work->memory.classification, scores);
}}
"""


def behind_a_camera(contender: Contender) -> Contender | None:
    """Return the C that prepares and classifies frames, and frames that show the images.

    None where images are not gray rasters of bytes.
    """
    images, sources = contender.images, contender.sources
    if images.ndim != 3 or sources.pixel != "uint8":
        return None
    # 1) The preparation of digits, for rasters of this size.
    family = Pixels().fit(np.zeros((1, *images.shape[1:]))).take(np.array([0]))
    names, weights = np.array(["a", "b"]), np.array([[1.0], [-1.0]])
    # A margin of 4 in 28 pixels.
    steps = replace(load("mnist-10k").preprocessing, margin=1 / 7)
    model = CompactClassifier(family, weights, np.zeros(2), names, preprocessing=steps)
    program = with_preparation(model, c_program(model, "camera"))
    prepared = {n: text for n, text in program.files.items() if "_prepare" in n or n == "camera.h"}
    # 2) Frames of paper with an image, light on dark, in the middle.
    scale = 160 // max(images.shape[1:])
    large = images.repeat(scale, axis=1).repeat(scale, axis=2)
    free = (240 - large.shape[1], 320 - large.shape[2])
    room = [(0, 0), *((one // 2, one - one // 2) for one in free)]
    frames = np.stack([frame_of_gray(shown, KIND) for shown in np.pad(large, room)])
    score = {"int32": "int32_t", "float32": "float"}[sources.score]
    values = {"name": sources.name, "score": score, "pixels": sources.n_pixels}
    own = {"framed.h": _HEADER.format(**values), "framed.c": _SOURCE.format(**values)}
    files = {**sources.files, **prepared, **own}
    made = replace(sources, name="framed", files=files, n_pixels=frames[0].size)
    return replace(contender, sources=made, images=frames)
