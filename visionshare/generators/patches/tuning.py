"""Patch templates and masks that gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.base import check_images
from visionshare.generators.inputs import as_lines, raster_shape
from visionshare.generators.layers.layer import pixel_unit
from visionshare.generators.layers.templates.tables import code_of
from visionshare.generators.patches.plan import Plan
from visionshare.machine.resources import run_blocks, single_threaded_blas

if TYPE_CHECKING:
    from visionshare.generators.patches.family import PatchTemplates

# Images whose gradients are summed together, in the same order on any number of threads.
_AT_ONCE = 64


class TunableTemplates:
    """Patch features whose templates and masks move; the supports of the masks stay the same."""

    def __init__(self, family: PatchTemplates) -> None:
        self._family = copy = family.take(np.arange(family.n_features_))
        copy.row_masks_ = copy.row_masks_[copy.layout_[:, 1]]
        copy.col_masks_ = copy.col_masks_[copy.layout_[:, 2]]
        copy.layout_[:, 1] = copy.layout_[:, 2] = np.arange(copy.n_features_)
        size = np.sqrt(np.mean(np.square(copy.templates_), axis=(1, 2, 3), keepdims=True))
        self._size = np.where(size > 0, size, 1).astype(np.float32)
        self._reached = copy.row_masks_ > 0, copy.col_masks_ > 0
        logs = [
            np.log(np.where(reached, masks, 1)).astype(np.float32)
            for masks, reached in zip(
                (copy.row_masks_, copy.col_masks_), self._reached, strict=True
            )
        ]
        self.parameters: list[np.ndarray] = [copy.templates_ / self._size, *logs]
        self.templates = (0,)
        self._plan = Plan(copy.templates_, copy.row_masks_, copy.col_masks_, copy.layout_)
        template = copy.layout_[:, 0]
        order = np.argsort(template, kind="stable")
        self._order = order
        self._starts = np.searchsorted(template[order], np.arange(len(copy.templates_) + 1))
        # All positions are one cell: integers as layers of templates have them.
        cells = (np.zeros(copy.positions_[0], np.int64), np.zeros(copy.positions_[1], np.int64))
        shape = raster_shape(copy.image_shape_)
        biases = np.zeros(len(copy.templates_), np.float32)
        self._ints = code_of(shape, copy.templates_, biases, copy.pads_, cells).ints
        self._places = self._ints[-copy.positions_[0] * copy.positions_[1] :].astype(np.int32)

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return features (n, n_features), float32, and where each maximum is."""
        raster = check_images(images, self._family.image_shape_)
        return self._plan.with_positions(raster, n_jobs)

    def backward(
        self,
        images: np.ndarray,
        values: np.ndarray,
        seen: np.ndarray,
        G: np.ndarray,
        n_jobs: int = 1,
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if, float32."""
        from visionshare.generators.layers.templates.kernels import template_gradients

        family = self._family
        raster = check_images(images, self._family.image_shape_)
        lines = as_lines(raster)
        blocks = -(-len(raster) // _AT_ONCE)
        G = np.asarray(G, np.float32)
        n_templates, q, _, channels = family.templates_.shape
        templates = np.zeros((blocks, n_templates, q, q * channels), np.float32)
        features = np.arange(family.n_features_)
        of_masks = [np.zeros((blocks, *logs.shape), np.float32) for logs in self.parameters[1:]]

        def block(start: int, stop: int) -> None:
            part = slice(start, stop)
            number = start // _AT_ONCE
            places, slopes = self._places_and_slopes(seen[part], G[part])
            template_gradients(
                lines[part],
                pixel_unit(raster),
                self._ints,
                self._order,
                self._starts,
                places,
                slopes,
                templates[number],
                np.zeros(n_templates, np.float32),
            )
            # A feature is proportional to its masks where its maximum is.
            change = np.where(seen[part] < 0, np.float32(0), G[part] * values[part])
            for masks, at in zip(of_masks, self._rows_and_cols(seen[part]), strict=True):
                np.add.at(masks[number], (features, at), change)

        run_blocks(block, len(raster), _AT_ONCE, n_jobs)
        of_templates = templates.sum(axis=0).reshape(family.templates_.shape)
        return [of_templates * self._size, *(masks.sum(axis=0) for masks in of_masks)]

    def image_gradients(
        self,
        images: np.ndarray,
        values: np.ndarray,
        seen: np.ndarray,
        G: np.ndarray,
        n_jobs: int = 1,
    ) -> np.ndarray:
        """Return the gradients in the images' values of Σ_if G_if x_if, (n, H, W, C), float32."""
        # For images of floats, such as the maps of layers before.
        from visionshare.generators.layers.templates.kernels import image_gradients

        family = self._family
        out = np.empty(check_images(images, family.image_shape_).shape, np.float32)
        rows = as_lines(out)
        templates = as_lines(family.templates_)
        owners = np.ascontiguousarray(family.layout_[:, 0])
        G = np.asarray(G, np.float32)

        def block(start: int, stop: int) -> None:
            part = slice(start, stop)
            places, slopes = self._places_and_slopes(seen[part], G[part])
            image_gradients(templates, self._ints, owners, places, slopes, rows[part])

        with single_threaded_blas():
            run_blocks(block, len(out), _AT_ONCE, n_jobs)
        return out

    def _places_and_slopes(self, seen: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where patches with maxima begin in a canvas, and the slopes of responses."""
        # The derivative of a maximum is that of the response where it is, times its mask.
        rows, cols = self._rows_and_cols(seen)
        features = np.arange(seen.shape[1])
        masks = self._family.row_masks_[features, rows] * self._family.col_masks_[features, cols]
        return np.where(seen < 0, np.int32(-1), self._places[seen]), G * masks

    def _rows_and_cols(self, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.divmod(np.maximum(seen, 0), self._family.positions_[1])

    def moved(self) -> None:
        """Take on the current parameters."""
        family = self._family
        family.templates_ = self.parameters[0] * self._size
        masks = zip(("row_masks_", "col_masks_"), self._reached, self.parameters[1:], strict=True)
        for name, reached, logs in masks:
            setattr(family, name, np.where(reached, np.exp(logs), np.float32(0)))
        self._plan.set_parameters(family.templates_, family.row_masks_, family.col_masks_)

    def family(self) -> PatchTemplates:
        """Return the family with the current parameters."""
        return self._family.take(np.arange(self._family.n_features_))


tunable = TunableTemplates
