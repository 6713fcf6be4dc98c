"""Means in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.means.layer import MeanLayer


def emit(layer: MeanLayer, writer: Writer, inner: Unit) -> Unit:
    """Return the unit of the means, which hands them to another unit."""
    n = len(layer.sources)
    values = {
        "n": n,
        "positions": layer.n_positions,
        "channels": layer.in_shape[2],
        "factor": np.float32(1 / layer.n_positions / (255 if writer.bytes else 1)),
        "part": inner.name,
    }
    work = {"means": WorkArray("float", n)}
    return writer.unit(__file__, "means", {"sources": layer.sources}, values, work, (inner,))
