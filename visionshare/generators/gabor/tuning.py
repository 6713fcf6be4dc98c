"""Gabor filters that gradients move."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.base import check_images
from visionshare.generators.gabor.slopes import gabor_slopes
from visionshare.generators.gabor.spectra import Filters, prefers_spectra, spectral_gradients
from visionshare.generators.gabor.values import gray_of
from visionshare.generators.inputs import flattened
from visionshare.machine.resources import run_blocks, single_threaded_blas

if TYPE_CHECKING:
    from visionshare.generators.gabor.family import GaborBank

_Axes = tuple[np.ndarray, np.ndarray]

# Filters whose gradients are computed together.
_FILTERS = 4
# Of a phase, in those of an angle.
_PHASE = 2.0


class TunableFilters:
    """Pooled absolute responses of filters whose parameters move."""

    templates: tuple[int, ...] = ()

    def __init__(self, family: GaborBank) -> None:
        filters = family.filters_.astype(np.float64)
        (low, high), (narrow, wide) = family.frequencies, family.sigmas
        self._family = family.at(family.filters_.copy())
        self._length = float(high - low) or 1.0
        least = np.minimum(filters[:, 1:4], [low, narrow, narrow])
        most = np.maximum(filters[:, 1:4], [high, wide, wide])
        self._range = least.astype(np.float32), most.astype(np.float32)
        parameters = np.column_stack(
            [filters[:, 0], filters[:, 1] / self._length, np.log(filters[:, 2:4])]
            + ([filters[:, 4] / _PHASE] if family.phases else [])
        )
        self.parameters: list[np.ndarray] = [parameters.astype(np.float32)]

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, None]:
        """Return features (n, n_features), float32; gradients need nothing else of them."""
        return self._family.transform(images, None, n_jobs), None

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: None, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if, float32."""
        from visionshare.generators.gabor.tuning_kernels import value_gradients

        family = self._family
        gray = gray_of(check_images(images, family.image_shape_))
        columns = np.ascontiguousarray(flattened(gray).T)
        reach = family._reach(np.arange(family.n_features_))
        slopes = np.empty((len(reach), 5))
        weights = np.ascontiguousarray(G.T, np.float32)
        for filters, axes in family._by_positions(reach):
            if family.pooling == "mean":
                weights[filters] *= np.float32(1 / (len(axes[0]) * len(axes[1])))
            spectral = prefers_spectra(axes, family._size[1], reach[filters])
            spectral &= family.positions is None

            def by_spectra(ids: np.ndarray, axes: _Axes = axes) -> None:
                bank = Filters(family.filters_[ids], reach[ids], family.step, family.zero_mean)
                largest = family.pooling == "max"
                gradients = spectral_gradients(gray, bank, axes, largest, weights[ids])
                for j, of_taps in zip(ids, gradients, strict=True):
                    one = slice(j, j + 1)
                    slopes[one] = gabor_slopes(
                        family.filters_[one], of_taps[None], reach[one], family.zero_mean
                    )

            def by_products(ids: np.ndarray, axes: _Axes = axes) -> None:
                taps = family._values(ids, reach[ids])
                of_taps = np.zeros(taps.shape)
                value_gradients(
                    columns, taps, reach[ids], *family._size, *axes, family.pooling == "max",
                    weights[ids], of_taps,
                )  # fmt: skip
                slopes[ids] = gabor_slopes(
                    family.filters_[ids], of_taps, reach[ids], family.zero_mean
                )

            with single_threaded_blas():
                _in_blocks(by_spectra, filters[spectral], n_jobs)
                _in_blocks(by_products, filters[~spectral], n_jobs)
        slopes *= (1, self._length, 1, 1, _PHASE)
        return [slopes[:, : self.parameters[0].shape[1]].astype(np.float32)]

    def moved(self) -> None:
        """Take on the current parameters, those beyond their range at its end."""
        (parameters,), (least, most) = self.parameters, self._range
        filters = self._family.filters_.copy()
        filters[:, 0] = parameters[:, 0]
        filters[:, 1] = parameters[:, 1] * self._length
        filters[:, 2:4] = np.exp(np.clip(parameters[:, 2:4], -80, 80))
        filters[:, 1:4] = np.clip(filters[:, 1:4], least, most)
        # The next step begins there, not beyond.
        parameters[:, 1] = np.clip(parameters[:, 1], *(r[:, 0] / self._length for r in self._range))
        parameters[:, 2:4] = np.clip(parameters[:, 2:4], np.log(least[:, 1:]), np.log(most[:, 1:]))
        if self._family.phases:
            filters[:, 4] = parameters[:, 4] * _PHASE
        self._family = self._family.at(filters)

    def family(self) -> Any:
        """Return the family of these features with the current parameters."""
        return self._family.at(self._family.filters_.copy())


tunable = TunableFilters


def _in_blocks(function: Callable[[np.ndarray], None], ids: np.ndarray, n_jobs: int) -> None:
    """Call a function with a few filters at a time, on threads."""
    run_blocks(lambda start, stop: function(ids[start:stop]), len(ids), _FILTERS, n_jobs)
