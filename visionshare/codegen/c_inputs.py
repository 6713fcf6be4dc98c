"""Scaled inputs in C: a pixel minus an offset, times a scale."""

from __future__ import annotations

import numpy as np


def input_tables(
    offset: np.ndarray, scale: np.ndarray, inputs: np.ndarray, from_bytes: bool
) -> dict[str, np.ndarray]:
    """Return the tables "inputs", "offset" and "scale" of the inputs in use."""
    # A byte v stands for v / 255: the division goes into the scale.
    unit = 255.0 if from_bytes else 1.0
    # Beyond float32 they become infinite, which no table takes.
    with np.errstate(over="ignore"):
        return {
            "inputs": inputs,
            "offset": (offset[inputs].astype(np.float64) * unit).astype(np.float32),
            "scale": (scale[inputs].astype(np.float64) / unit).astype(np.float32),
        }
