"""Scaled inputs in C: a pixel minus an offset, times a scale."""

from __future__ import annotations

import numpy as np

__all__ = ["input_tables"]


def input_tables(
    offset: np.ndarray, scale: np.ndarray, inputs: np.ndarray, from_bytes: bool
) -> dict[str, np.ndarray]:
    """Return the tables "inputs", "offset" and "scale" of the inputs in use.

    A byte v stands for v / 255: the division goes into the scale.

    Parameters
    ----------
    offset, scale : ndarray of shape (p,)
        Of all inputs: input i becomes (v − offset[i]) · scale[i].
    inputs : ndarray of int
        Indices of the inputs in use.
    from_bytes : bool
        Whether pixels are bytes.

    Examples
    --------
    >>> tables = input_tables(np.ones(3), np.ones(3), np.array([2]), from_bytes=True)
    >>> tables["inputs"].tolist(), tables["offset"].tolist(), round(float(tables["scale"][0]), 4)
    ([2], [255.0], 0.0039)
    """
    unit = 255.0 if from_bytes else 1.0
    # Beyond float32 they become infinite, which no table takes.
    with np.errstate(over="ignore"):
        return {
            "inputs": inputs,
            "offset": (offset[inputs].astype(np.float64) * unit).astype(np.float32),
            "scale": (scale[inputs].astype(np.float64) / unit).astype(np.float32),
        }
