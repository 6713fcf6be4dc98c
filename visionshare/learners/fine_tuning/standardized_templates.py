"""Weight standardization: templates of zero mean, each with a gain."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from visionshare.generators.tuning import QuantizableTunable, Tunable

# Below this length a template has no direction.
_SHORTEST = 1e-8


class StandardizedTemplates:
    """Features whose templates move as directions of zero mean, each with a gain."""

    def __init__(self, features: Tunable) -> None:
        self._features = features
        self._templates = tuple(features.templates)
        self.templates: tuple[int, ...] = ()
        # Of each array of templates the directions, and what they were divided by.
        self._directions: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        gains = []
        self.parameters = list(features.parameters)
        for position in self._templates:
            templates = features.parameters[position]
            centered = _centered(templates)
            size = _root_mean_square(centered)
            gains.append(size.ravel().copy())
            length = np.float32(np.sqrt(2 / templates[0].size))
            self.parameters[position] = centered / np.maximum(size, _SHORTEST) * length
        self.parameters += gains
        self.moved()

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs of them."""
        return self._features.forward(images, n_jobs)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if."""
        gradients = self._features.backward(images, values, seen, G, n_jobs)
        of_gains = []
        for position, gain in self._with_gains():
            known = self._directions[position]
            gradients[position], of_gain = _gradients(known, gain, gradients[position])
            of_gains.append(of_gain)
        return gradients + of_gains

    def moved(self) -> None:
        """Take on the current parameters."""
        for position, gain in self._with_gains():
            direction, size = _direction(self.parameters[position])
            self._directions[position] = direction, size
            self._features.parameters[position][...] = direction * _per_template(gain, direction)
        self._features.moved()

    def quantize(
        self, bits: Any, images: np.ndarray, exponents: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Round the features' parameters from now on; those that move here stay as they are."""
        # See :class:`visionshare.generators.tuning.QuantizableTunable`.
        features = cast("QuantizableTunable", self._features)
        return features.quantize(bits, images, exponents, n_jobs)

    def whole_layers(self) -> tuple[list[Any], np.ndarray]:
        """Return the layers that compute the features, and where in the last one each is."""
        return cast("QuantizableTunable", self._features).whole_layers()

    def family(self) -> Any:
        """Return the family of these features with the current parameters."""
        return self._features.family()

    def _with_gains(self) -> list[tuple[int, np.ndarray]]:
        gains = self.parameters[len(self._features.parameters) :]
        return list(zip(self._templates, gains, strict=True))


def _per_template(values: np.ndarray, templates: np.ndarray) -> np.ndarray:
    return values.reshape(-1, *(1,) * (templates.ndim - 1))


def _mean(templates: np.ndarray) -> np.ndarray:
    # np.mean has the same bits and takes twice as long: templates are small.
    flat = templates.reshape(len(templates), -1)
    return _per_template(np.add.reduce(flat, axis=1) / np.float32(flat.shape[1]), templates)


def _centered(templates: np.ndarray) -> np.ndarray:
    return templates - _mean(templates)


def _root_mean_square(templates: np.ndarray) -> np.ndarray:
    return np.sqrt(_mean(np.square(templates)))


def _direction(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return templates of zero mean and a mean square of 1, and what they were divided by."""
    centered = _centered(v)
    size = np.maximum(_root_mean_square(centered), _SHORTEST)
    return centered / size, size


def _gradients(
    known: tuple[np.ndarray, np.ndarray], gain: np.ndarray, G: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients in what directions are of and in the gains, from the templates'."""
    direction, size = known
    along = _mean(G * direction)
    of_v = _per_template(gain, G) * (_centered(G) - along * direction) / size
    return np.asarray(of_v, np.float32), np.asarray(along.ravel() * G[0].size, np.float32)
