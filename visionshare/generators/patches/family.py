"""Patch templates with spatial masks: the features of ShareBoost's MNIST classifier (§7.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import (
    FeatureFamily,
    check_dtype,
    check_feature,
    check_features,
    check_images,
)
from visionshare.generators.checks import check_choice, check_memory, check_positive, check_whole
from visionshare.generators.contributions import clipped_boxes, seen_boxes
from visionshare.generators.inputs import raster_shape
from visionshare.generators.layer_summary import LayerSummary
from visionshare.generators.layers.templates.fitting import sampled_templates
from visionshare.generators.layers.templates.layer import CONTRASTS
from visionshare.generators.patches.masks import axis_masks, mask_spans
from visionshare.generators.patches.plan import (
    Plan,
    added_templates_macs,
    pool_columns,
    templates_macs,
)
from visionshare.generators.pictures import Field
from visionshare.generators.states import Arrays, State, StateAndArrays, family_state, unfitted
from visionshare.machine.resources import size_text

# Templates whose features are searched together.
_BLOCK = 16
# From so many features of a template on, they are computed as for a whole pool.
_MANY = 4


@dataclass(eq=False, repr=False)
class PatchTemplates(FeatureFamily):
    """Largest response of a template to an image, weighted by a Gaussian mask of positions.

    x = max(0, max over the mask's support of (image ⊗ template) · mask). The image is seen with
    zeros around it; a mask is the product of two one-dimensional Gaussians, each cut on its own
    axis. Feature ``t · n_masks + w · grid² + r · grid + c`` is template t with the mask of width
    w, row r and column c of the grid.

    Parameters
    ----------
    patch_size : int, default 7
        q, the side of a patch in pixels.
    n_templates : int, default 1000
        k-means centers.
    grid : int, default 4
        Masks a side.
    widths : sequence of float, default (4.9,)
        Standard deviations of the masks, in positions; several give several grids.
    cut : float, default 0.2
        Level of a one-dimensional Gaussian below which it is zero.
    padding : int, default 2
        Zero pixels around the image; more where the image is smaller than a patch.
    contrast : {"unit", "mean", "none"}, default "unit"
        Whether patches and templates are brought to zero mean and unit norm, to zero mean, or
        left unchanged. The responses of zero-mean templates ignore a patch's brightness.
    n_patches : int, default 200_000
        Patches drawn from the images for k-means.
    random_state : int, default 0
        Seed.

    Attributes
    ----------
    templates_ : ndarray of shape (n_templates, q, q, C), float32
    row_masks_, col_masks_ : ndarray of shape (widths · grid, positions), float32
    layout_ : ndarray of shape (n_features_, 3), int64
        Template, row mask and column mask of each feature.
    pads_, positions_ : tuple of int
        Zero rows above and below and zero columns at the sides; rows and columns of responses.
    n_features_ : int
    image_shape_ : tuple of int

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §7.4.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> images = load_digits().images / 16
    >>> family = PatchTemplates(patch_size=3, n_templates=8, grid=2, widths=(2.0,)).fit(images)
    >>> family.transform(images[:5]).shape, family.take([3, 0]).n_features_
    ((5, 32), 2)
    """

    name = "patches"
    tunable_on_maps = True
    patch_size: int = 7
    n_templates: int = 1000
    grid: int = 4
    widths: Sequence[float] = (4.9,)
    cut: float = 0.2
    padding: int = 2
    contrast: str = "unit"
    n_patches: int = 200_000
    random_state: int = 0

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> PatchTemplates:
        """Collect patches from images and cluster them into templates.

        Raises
        ------
        InputError
            If a parameter is out of range or the images hold too few different patches.
        """
        self.check_parameters()
        raster = self._see(images)
        self._check_size(raster.shape[1:])
        self._set_geometry(raster.shape[1:])
        rng = np.random.default_rng(self.random_state)
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        self.templates_ = sampled_templates(
            raster,
            self.patch_size,
            self.pads_,
            self.n_templates,
            self.n_patches,
            self.contrast,
            rng,
            seed,
        )
        rows, cols = self.positions_
        self.row_masks_ = self._axis_masks(rows)
        self.col_masks_ = self._axis_masks(cols)
        t, w, r, c = np.indices((len(self.templates_), self.n_widths, self.grid, self.grid))
        pairs = (t, w * self.grid + r, w * self.grid + c)
        self.layout_ = np.stack([a.ravel() for a in pairs], axis=1)
        self.n_features_ = len(self.layout_)
        self._whole_pool = True
        vars(self).pop("_plan", None)
        return self

    @property
    def n_widths(self) -> int:
        """Number of grids of masks."""
        return len(self.widths)

    def _axis_masks(self, positions: int) -> np.ndarray:
        return axis_masks(positions, self.grid, self.widths, self.cut)

    def check_parameters(self) -> None:
        check_whole("patch_size", self.patch_size)
        check_whole("n_templates", self.n_templates)
        check_whole("grid", self.grid)
        check_whole("n_patches", self.n_patches)
        check_whole("padding", self.padding, least=0)
        if not isinstance(self.cut, Real) or not 0 < self.cut < 1:
            raise InputError("cut", self.cut, "a level between 0 and 1")
        check_positive("widths", self.widths)
        check_choice("contrast", self.contrast, CONTRASTS)

    def _check_size(self, shape: tuple[int, ...]) -> None:
        """Check, for images of a shape, that the parameters are no matter of hours or gigabytes."""
        side = max(shape[:2])
        q = self.patch_size
        # Patches as bytes of float32: drawn, flattened and contrasted, then those of the clusters.
        patches = 4.0 * q * q * shape[2] * (3 * self.n_patches + 2 * self.n_templates)
        check_memory("patch_size", q, patches)
        largest = max(16, 4 * side)
        if q > largest:
            accepted = f"at most {largest} for images of {shape[0]}×{shape[1]}"
            raise InputError("patch_size", q, f"{accepted} (it takes about {size_text(patches)})")
        masks = float(self.n_widths) * self.grid
        check_memory("padding", self.padding, 4.0 * shape[2] * (2.0 * self.padding) ** 2)
        check_memory("grid", self.grid, 24 * masks * (side + 2 * self.padding))
        # The layout, and the indices that it is made of.
        check_memory("grid", self.grid, 80.0 * self.n_templates * masks * self.grid)

    def _set_geometry(self, shape: tuple[int, ...]) -> None:
        H, W, _ = shape
        q = self.patch_size
        top, left = (max(self.padding, -(-(q - side) // 2)) for side in (H, W))
        self.pads_ = pads = (top, left)
        self.positions_ = (H + 2 * pads[0] - q + 1, W + 2 * pads[1] - q + 1)

    def transform(
        self, images: np.ndarray, features: np.ndarray | None = None, n_jobs: int = 1
    ) -> np.ndarray:
        return np.ascontiguousarray(self.transform_columns(images, features, n_jobs).T)

    def transform_columns(
        self,
        images: np.ndarray,
        features: np.ndarray | None = None,
        n_jobs: int = 1,
        dtype: str = "float32",
    ) -> np.ndarray:
        """Return features transposed, (n, n_images), float32 or float16.

        A column's bits are the same whatever else is asked for, in whatever batches of images
        and on however many threads.
        """
        check_dtype(dtype)
        raster = check_images(images, self.image_shape_)
        if features is None and not self._whole_pool:
            return self._plan.columns(raster, n_jobs, dtype)
        ids = check_features(features, self.n_features_)
        n_templates = len(np.unique(self.layout_[ids, 0]))
        many = 0 < len(np.unique(ids)) == len(ids) >= _MANY * n_templates
        if self._whole_pool and many:
            return pool_columns(self, raster, ids, n_jobs, dtype)
        return self.take(ids)._plan.columns(raster, n_jobs, dtype)

    @cached_property
    def _plan(self) -> Plan:
        masks = self.row_masks_, self.col_masks_
        return Plan(self.templates_, *masks, self.layout_)

    def boxes(self, image: np.ndarray) -> np.ndarray:
        """Return where each maximum is, (n_features_, 4); where it was sought if there is none."""
        raster = check_images(np.asarray(image)[None], self.image_shape_)
        _, positions = self._plan.with_positions(raster)
        place = positions[0].astype(np.int64)
        ids = self.layout_
        spans = [mask_spans(self.row_masks_)[ids[:, 1]], mask_spans(self.col_masks_)[ids[:, 2]]]
        for span, at in zip(spans, np.divmod(place, self.positions_[1]), strict=True):
            span[place >= 0] = np.stack([at, at + 1], axis=1)[place >= 0]
        fields = (Field().after(self.patch_size, padding=padding) for padding in self.pads_)
        return clipped_boxes(seen_boxes(np.concatenate(spans, axis=1), *fields), self.image_shape_)

    def block_ids(self, features: np.ndarray) -> list[np.ndarray]:
        """Return these ids by block of templates: a block costs the same for any of its ids."""
        ids = check_features(features, self.n_features_)
        block = self.layout_[ids, 0] // _BLOCK
        order = np.argsort(block, kind="stable")
        return np.split(ids[order], np.flatnonzero(np.diff(block[order])) + 1) if len(ids) else []

    def macs(self, features: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image of these features together.

        A template is counted once for all its masks, at the positions that they reach, and each
        mask with its multiplications.
        """
        ids = check_features(features, self.n_features_)
        taps = int(np.prod(self.templates_.shape[1:]))
        masks = self.row_masks_, self.col_masks_
        return templates_macs(self.layout_[ids], *masks, taps)

    def layer_summaries(self) -> list[LayerSummary]:
        """Return one layer: templates, and what is not 0 of the Gaussian masks in use."""
        held = int(self.templates_.size)
        for masks, used in zip((self.row_masks_, self.col_masks_), (1, 2), strict=True):
            held += int(np.count_nonzero(masks[np.unique(self.layout_[:, used])]))
        n = len(self.templates_)
        return [LayerSummary(self.name, (self.n_features_,), n, held, self.macs())]

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        # A mask of a chosen template adds its own cost, and the positions that no chosen mask of
        # the template reaches.
        taps = int(np.prod(self.templates_.shape[1:]))
        layouts = self.layout_[chosen], self.layout_[features]
        masks = self.row_masks_, self.col_masks_
        return added_templates_macs(*layouts, *masks, taps)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        new = ~np.isin(self.layout_[features, 0], self.layout_[chosen, 0])
        each = self.layout_.shape[1] * self.layout_.itemsize
        masks = self.row_masks_.nbytes + self.col_masks_.nbytes
        template = self.templates_[:1].nbytes
        return each + template * new + (0 if len(chosen) else masks)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the template, the mask over all positions and its support."""
        t, r, c = self.layout_[check_feature(feature, self.n_features_)]
        rows = mask_spans(self.row_masks_[[r]])[0]
        cols = mask_spans(self.col_masks_[[c]])[0]
        template = self.templates_[t]
        return {
            "kind": "patch",
            "template": template[..., 0] if template.shape[-1] == 1 else template,
            "mask": np.outer(self.row_masks_[r], self.col_masks_[c]),
            "support": (int(rows[0]), int(rows[1]), int(cols[0]), int(cols[1])),
            "padding": tuple(int(p) for p in self.pads_),
        }

    def take(self, features: np.ndarray) -> PatchTemplates:
        ids = check_features(features, self.n_features_)
        chosen = PatchTemplates(**self.get_params())
        used, template = np.unique(self.layout_[ids, 0], return_inverse=True)
        chosen.layout_ = self.layout_[ids].copy()
        chosen.layout_[:, 0] = template
        chosen.templates_ = self.templates_[used]
        chosen.row_masks_ = self.row_masks_
        chosen.col_masks_ = self.col_masks_
        chosen.image_shape_ = self.image_shape_
        chosen.n_features_ = len(ids)
        chosen.pads_ = self.pads_
        chosen.positions_ = self.positions_
        chosen._whole_pool = False
        return chosen

    def check_tunable(self) -> None:
        """Templates and masks can be moved."""

    def to_state(self) -> StateAndArrays:
        """Return geometry as plain values; templates, masks and layout as arrays."""
        parameters = self.get_params()
        parameters["widths"] = [float(w) for w in self.widths]
        state = family_state(self, parameters=parameters, whole_pool=self._whole_pool)
        arrays = {
            "templates": self.templates_,
            "row_masks": self.row_masks_,
            "col_masks": self.col_masks_,
            "layout": self.layout_,
        }
        return state, arrays

    @classmethod
    def from_state(cls, state: State, arrays: Arrays) -> PatchTemplates:
        dimensions = {"templates": 4, "row_masks": 2, "col_masks": 2, "layout": 2}
        family = unfitted(cls, state, arrays, dimensions)
        if family.patch_size > 1024 or family.padding > 1024:
            raise InputError("patch_size", family.patch_size, "at most 1024, padding too")
        shape = family.image_shape_
        raster = raster_shape(shape)
        family._set_geometry(raster)
        family._whole_pool = state.get("whole_pool") is True
        family._adopt(arrays, raster[2])
        return family

    def _adopt(self, arrays: Arrays, channels: int) -> None:
        templates = arrays["templates"]
        layout = arrays["layout"]
        masks = arrays["row_masks"], arrays["col_masks"]
        q = self.patch_size
        if templates.shape[1:] != (q, q, channels) or templates.dtype != np.float32:
            raise InputError(
                "templates", templates.shape, f"float32 of shape (n, {q}, {q}, {channels})"
            )
        for mask, positions, side in zip(masks, self.positions_, ("row", "col"), strict=True):
            fits = mask.dtype == np.float32 and mask.shape[1] == positions and (mask >= 0).all()
            if not fits or not (mask > 0).any(axis=1).all():
                raise InputError(f"{side}_masks", mask.shape, f"masks over {positions} positions")
        if layout.shape[1] != 3 or layout.dtype != np.int64:
            raise InputError("layout", layout.shape, "int64 of shape (n, 3)")
        limits = np.array([len(templates), len(masks[0]), len(masks[1])])
        if (layout < 0).any() or (layout >= limits).any():
            raise InputError("layout", "numbers out of range", "templates and masks that exist")
        n_masks = self.n_widths * self.grid
        if self._whole_pool:
            shape = (self.n_templates, self.n_widths, self.grid, self.grid)
            if (len(layout), len(templates), len(masks[0]), len(masks[1])) != (
                int(np.prod(shape)),
                self.n_templates,
                n_masks,
                n_masks,
            ):
                raise InputError("layout", layout.shape, f"{shape} features")
            t, w, r, c = np.indices(shape)
            pairs = (t, w * self.grid + r, w * self.grid + c)
            if not np.array_equal(layout, np.stack([a.ravel() for a in pairs], axis=1)):
                raise InputError("layout", "another order", "all masks of each template in order")
        self.templates_ = np.ascontiguousarray(templates)
        self.layout_ = layout
        self.row_masks_, self.col_masks_ = map(np.ascontiguousarray, masks)
        self.n_features_ = len(layout)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_plan", None)
        return state
