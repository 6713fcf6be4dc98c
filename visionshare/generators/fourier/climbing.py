"""Steps of a frequency along the gradient of how much its pair promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

# Inputs of one product.
_TILE = 4096
_HALVINGS = 12
_GAIN = 1e-3
# Length of the first step, in that of the frequency.
_FIRST = 0.1
_SLOPE = 1e-4


def climb_frequency(
    v: np.ndarray,
    rows: Callable[[slice], np.ndarray],
    residual: np.ndarray,
    steps: int,
) -> np.ndarray:
    """Return a frequency whose pair has a larger gradient than v, after steps uphill."""
    # The gradient's square is Σ_t (Σ_i R_it cos v·x_i)² + (Σ_i R_it sin v·x_i)². Columns of the
    # pair have a joint norm that does not depend on v, so that nothing has to be scaled.
    R = np.asarray(residual, np.float64)
    v = np.asarray(v, np.float64)
    now = _Pair(v, rows, R)
    step = 0.0
    for _ in range(steps):
        gradient = now.gradient(rows, R)
        square = float(gradient @ gradient)
        if square == 0:
            break
        if step == 0:
            step = _FIRST * max(float(np.linalg.norm(v)), 1e-3) / np.sqrt(square)
        for _ in range(_HALVINGS):
            ahead = _Pair(v + step * gradient, rows, R)
            if ahead.value > now.value + _SLOPE * step * square:
                break
            step *= 0.5
        else:
            break
        gained = ahead.value > now.value * (1 + _GAIN)
        v = v + step * gradient
        now = ahead
        step = 2 * step
        if not gained:
            break
    return v


class _Pair:
    """Cosines and sines of one frequency, their products with R and the sum of their squares."""

    def __init__(self, v: np.ndarray, rows: Callable[[slice], np.ndarray], R: np.ndarray) -> None:
        phase = np.concatenate([rows(part) @ v for part in _tiles(len(R))])
        self.cos = np.cos(phase)
        self.sin = np.sin(phase)
        self.a = self.cos @ R
        self.b = self.sin @ R
        self.value = float(self.a @ self.a + self.b @ self.b)

    def gradient(self, rows: Callable[[slice], np.ndarray], R: np.ndarray) -> np.ndarray:
        """Return the value's gradient in the frequency."""
        weights = 2 * (self.cos * (R @ self.b) - self.sin * (R @ self.a))
        return np.asarray(sum(weights[part] @ rows(part) for part in _tiles(len(R))))


def _tiles(m: int) -> Iterator[slice]:
    for start in range(0, m, _TILE):
        yield slice(start, min(start + _TILE, m))
