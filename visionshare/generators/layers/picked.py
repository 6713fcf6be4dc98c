"""Values at some places of an image in C: what a network's last layer hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer


def picked(writer: Writer, places: np.ndarray | None, scale: np.float32, n: int = 0) -> Unit:
    """Return the unit of the values at some places of an image, or of all ``n`` values."""
    values = {"n_features": n if places is None else len(places), "unit": scale, "all": n != 0}
    tables = {} if places is None else {"inputs": places}
    return writer.unit(__file__, "picked", tables, values)
