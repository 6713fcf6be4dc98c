"""Chains whose templates and biases gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.generators.base import check_images
from visionshare.generators.chains.layers import maps_of
from visionshare.generators.inputs import as_lines
from visionshare.resources import run_blocks

if TYPE_CHECKING:
    from visionshare.generators.chains.family import Chains

__all__ = ["TunableChains", "tunable"]

# Images whose gradients are summed together, in the same order on any number of threads.
_AT_ONCE = 32


def tunable(family: Chains) -> TunableChains:
    """Return the features of a fitted family as a function of parameters that gradients move."""
    return TunableChains(family)


class _Below(NamedTuple):
    """What the layers before the last gave for a few images, and gradients in their maps."""

    maps: list[np.ndarray]
    places: list[np.ndarray]
    gradients: list[np.ndarray]


class TunableChains:
    """Chains whose templates and biases move; a template that chains share is one parameter.

    Maps of the layers before the last are computed anew for gradients: held, they would take many
    times the memory of images and features.

    Parameters
    ----------
    family : Chains
        Restricted to the chosen features, see :meth:`Chains.take`.

    Attributes
    ----------
    parameters : list of ndarray, float32
        Of each layer the templates (n_maps, q, q, C), in units of their root mean square at the
        start, and the biases (n_maps,).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import Chains
    >>> images = (load_digits().images[:9] * 15).astype(np.uint8)
    >>> family = Chains(6, (3, 2), n_first=3, n_patches=500).fit(images)
    >>> features = TunableChains(family.take([4, 0]))
    >>> values, positions = features.forward(images)
    >>> gradients = features.backward(images, values, positions, np.ones_like(values))
    >>> [g.shape for g in gradients]
    [(1, 3, 3, 1), (1,), (2, 2, 2, 1), (2,)]
    """

    def __init__(self, family: Chains) -> None:
        self._family = family.take(np.arange(family.n_features_))
        self._sizes: list[np.ndarray] = []
        self.parameters: list[np.ndarray] = []
        for own in self._family.layers_:
            size = np.sqrt(np.mean(np.square(own.templates), axis=(1, 2, 3), keepdims=True))
            self._sizes.append(np.where(size > 0, size, 1).astype(np.float32))
            self.parameters += [own.templates / self._sizes[-1], own.biases.copy()]
        self.templates = tuple(range(0, len(self.parameters), 2))

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return features (n, n_features), float32, and where each maximum is."""
        return self._family.values_and_positions(images, n_jobs)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: np.ndarray, G: np.ndarray,
        n_jobs: int = 1,
    ) -> list[np.ndarray]:  # fmt: skip
        """Return the gradients in the parameters of Σ_if G_if x_if, float32.

        Parameters
        ----------
        images : ndarray
            As handed to :meth:`forward`.
        values, seen : ndarray of shape (n, n_features)
            What it returned.
        G : ndarray of shape (n, n_features)
        n_jobs : int, default 1
            Threads.
        """
        from visionshare.generators.maps.tuning_kernels import template_gradients

        raster = check_images(images, self._family.image_shape_)
        blocks = -(-len(raster) // _AT_ONCE)
        out = [np.zeros((blocks, *values.shape), np.float32) for values in self.parameters]
        first, lines = self._family.layers_[0], as_lines(raster)

        def block(start: int, stop: int) -> None:
            part, of_block = slice(start, stop), [sums[start // _AT_ONCE] for sums in out]
            below = self._below(raster[part], seen[part], G[part], of_block)
            templates = as_lines(of_block[0])
            template_gradients(
                lines[part], below.places[0], below.gradients[0], 0, first.pool,
                templates, of_block[1],
            )  # fmt: skip

        run_blocks(block, len(raster), _AT_ONCE, n_jobs)
        gradients = [sums.sum(axis=0) for sums in out]
        for number, size in enumerate(self._sizes):
            gradients[2 * number] *= size
        return gradients

    def image_gradients(
        self, images: np.ndarray, values: np.ndarray, seen: np.ndarray, G: np.ndarray,
        n_jobs: int = 1,
    ) -> np.ndarray:  # fmt: skip
        """Return the gradients in the images' values of Σ_if G_if x_if, (n, H, W, C), float32.

        For images of floats, such as the maps of :class:`visionshare.LearnedMaps`.
        """
        from visionshare.generators.maps.tuning_kernels import image_gradients

        raster = check_images(images, self._family.image_shape_)
        out, first = np.zeros(raster.shape, np.float32), self._family.layers_[0]
        lines, templates = as_lines(out), as_lines(first.templates)

        def block(start: int, stop: int) -> None:
            part, unused = slice(start, stop), [np.zeros_like(v) for v in self.parameters]
            below = self._below(raster[part], seen[part], G[part], unused)
            places, gradients = below.places[0], below.gradients[0]
            image_gradients(places, gradients, templates, 0, first.pool, lines[part])

        run_blocks(block, len(raster), _AT_ONCE, n_jobs)
        return out

    def _below(
        self, raster: np.ndarray, seen: np.ndarray, G: np.ndarray, out: list[np.ndarray]
    ) -> _Below:
        """Add the gradients in the parameters of all layers but the first to ``out``.

        Returns
        -------
        _Below
            With the gradients in the maps of each layer before the last.
        """
        from visionshare.generators.chains.kernels import cell_gradients, map_gradients

        family, layers = self._family, self._family.layers_
        maps, places = maps_of(layers[:-1], raster, with_places=True)
        gradients = [np.zeros_like(values) for values in maps]
        (chain, cell), last = family.layout_.T, layers[-1]
        shape = (len(raster), family.grid**2, len(last.templates))
        positions, of_cells = np.full(shape, -1, np.int32), np.zeros(shape, np.float32)
        positions[:, cell, chain] = seen
        # One by one: a feature may have been chosen twice.
        for feature, (k, c) in enumerate(family.layout_):
            of_cells[:, c, k] += G[:, feature]
        width = family.map_shapes[-1][1] * last.pool
        cell_gradients(
            maps[-1], last.templates, last.parents, width, positions, of_cells, *out[-2:],
            gradients[-1],
        )  # fmt: skip
        for number in range(len(layers) - 2, 0, -1):
            own = layers[number]
            map_gradients(
                maps[number - 1], own.templates, own.starts, own.pool, places[number],
                gradients[number], *out[2 * number : 2 * number + 2], gradients[number - 1],
            )  # fmt: skip
        return _Below(maps, places, gradients)

    def moved(self) -> None:
        """Take on the current parameters."""
        pairs = zip(self.parameters[::2], self.parameters[1::2], strict=True)
        parts = zip(self._family.layers_, self._sizes, pairs, strict=True)
        self._family.layers_ = [own.of(t * size, b.copy()) for own, size, (t, b) in parts]

    def family(self) -> Chains:
        """Return the family with the current parameters."""
        return self._family.of(self._family.layers_)
