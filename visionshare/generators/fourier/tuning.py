"""Frequencies that gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from visionshare.generators.base import check_images
from visionshare.generators.inputs import flattened, rows_of
from visionshare.machine.resources import run_blocks, single_threaded_blas

if TYPE_CHECKING:
    from visionshare.generators.fourier.family import RandomFourier

# Images of one product; their gradients are summed in the same order on any number of threads.
_AT_ONCE = 512


class _Waves(NamedTuple):
    """Scaled inputs (n, p), and cosines and sines of all pairs (n, n_pairs)."""

    inputs: np.ndarray
    cos: np.ndarray
    sin: np.ndarray


class TunableFrequencies:
    """Cosines and sines whose frequencies move; both of a pair share theirs."""

    templates: tuple[int, ...] = ()

    def __init__(self, family: RandomFourier) -> None:
        self._family = family.take(np.arange(family.n_features_))
        sigma = self._family.bandwidths_[:, None]
        self._size = 1 / np.where(sigma > 0, sigma, np.float32(1))
        self.parameters: list[np.ndarray] = [self._family.frequencies_ / self._size]
        self._pair, self._is_sine = np.divmod(self._family.ids_, 2)
        # A feature may be there more than once: its gradients add up.
        _, first = np.unique(self._family.ids_, return_index=True)
        self._first = first
        self._again = np.setdiff1d(np.arange(len(self._pair)), first)

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, _Waves]:
        """Return features (n, n_features), float32, and what gradients need of them."""
        family = self._family
        X = flattened(check_images(images, family.image_shape_))
        n, p = X.shape
        V = np.ascontiguousarray(family.frequencies_.T)
        seen = _Waves(*(np.empty((n, width), np.float32) for width in (p, *2 * V.shape[1:])))
        values = np.empty((n, family.n_features_), np.float32)

        def block(start: int, stop: int) -> None:
            inputs, cos, sin = (part[start:stop] for part in seen)
            inputs[:] = (rows_of(X[start:stop]) - family.input_offset_) * family.input_scale_
            phases = inputs @ V
            np.cos(phases, out=cos)
            np.sin(phases, out=sin)
            values[start:stop] = np.where(self._is_sine, sin[:, self._pair], cos[:, self._pair])

        with single_threaded_blas():
            run_blocks(block, n, _AT_ONCE, n_jobs)
        return values, seen

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: _Waves, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if, float32."""
        n = len(seen.inputs)
        of_blocks = np.zeros((-(-n // _AT_ONCE), *self.parameters[0].shape), np.float32)

        def block(start: int, stop: int) -> None:
            of_phases = self._of_phases(seen.cos[start:stop], seen.sin[start:stop], G[start:stop])
            of_blocks[start // _AT_ONCE] = of_phases.T @ seen.inputs[start:stop]

        with single_threaded_blas():
            run_blocks(block, n, _AT_ONCE, n_jobs)
        total = of_blocks.sum(axis=0, dtype=np.float64) * self._size
        return [total.astype(np.float32)]

    def _of_phases(self, cos: np.ndarray, sin: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the gradients in v·x, (n, n_pairs)."""
        of_features = np.zeros((*cos.shape, 2), np.float32)
        first = self._first
        of_features[:, self._pair[first], self._is_sine[first]] = G[:, first]
        for f in self._again:
            of_features[:, self._pair[f], self._is_sine[f]] += G[:, f]
        return np.asarray(of_features[:, :, 1] * cos - of_features[:, :, 0] * sin)

    def moved(self) -> None:
        """Take on the current parameters."""
        self._family.frequencies_ = np.asarray(self.parameters[0] * self._size, np.float32)

    def family(self) -> Any:
        """Return the family of these features with the current parameters."""
        return self._family.take(np.arange(self._family.n_features_))


tunable = TunableFrequencies
