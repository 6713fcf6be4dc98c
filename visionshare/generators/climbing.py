"""Steps uphill in the parameters of a drawn feature, where no formula gives the gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Scores of parameters (n, p): how much each feature, or group, promises, (n,).
Score = Callable[[np.ndarray], np.ndarray]

# Lengths that a step tries, in those of the last one, and how much it has to gain.
_LENGTHS = 2.0 ** np.arange(1, -4, -1)
_GAIN = 1e-3
# Of the natural length of each parameter.
_DIFFERENCE = 0.05


@dataclass(frozen=True, eq=False)
class Ascent:
    """What a draw's steps uphill go by."""

    images: np.ndarray
    residual: np.ndarray
    score: Score
    steps: int


def climb_by_differences(
    start: np.ndarray,
    lengths: np.ndarray,
    inside: Callable[[np.ndarray], np.ndarray],
    score: Score,
    steps: int,
) -> np.ndarray:
    """Return parameters of a higher score, after steps along central differences."""
    # All probes of a step are scored together, and then all lengths of the step.
    x = np.array(start, np.float64)
    moving = np.flatnonzero(lengths)
    value = float(score(x[None])[0])
    length = 1.0
    for _ in range(steps):
        probe = np.zeros((len(moving), len(x)))
        probe[np.arange(len(moving)), moving] = _DIFFERENCE * lengths[moving]
        both = inside(np.concatenate([x + probe, x - probe]))
        values = score(both).reshape(2, -1)
        apart = both[: len(moving), moving] - both[len(moving) :, moving]
        slope = (values[0] - values[1]) / np.where(np.diag(apart) != 0, np.diag(apart), 1)
        # Steepest where each parameter is measured in its own length.
        direction = np.zeros(len(x))
        direction[moving] = slope * lengths[moving] ** 2
        size = float(np.linalg.norm(direction[moving] / lengths[moving]))
        if size == 0:
            break
        tried = inside(x + length * _LENGTHS[:, None] * direction / size)
        reached = score(tried)
        best = int(np.argmax(reached))
        if not reached[best] > value * (1 + _GAIN):
            if length < 2.0**-4:
                break
            length *= float(_LENGTHS[-1])
            continue
        x = tried[best]
        value = float(reached[best])
        length = length * float(_LENGTHS[best])
    return x
