"""Learned maps: few small templates, rectified and pooled, under the features of a family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.around import FamilyAround
from visionshare.generators.base import FeatureFamily, check_images
from visionshare.generators.checks import check_memory, check_whole
from visionshare.generators.contributions import clipped_boxes, seen_boxes
from visionshare.generators.inputs import as_lines
from visionshare.generators.layers import LayerSummary
from visionshare.generators.maps.fitting import sampled_templates
from visionshare.generators.nested import parts_from_state, parts_to_state
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.pictures import Field
from visionshare.generators.states import family_state, unfitted
from visionshare.resources import run_blocks

__all__ = ["LearnedMaps"]

# Images of one call of the kernel.
_AT_ONCE = 64


class LearnedMaps(FamilyAround):
    """The features of a family on maps of an image, each of one small template.

    map_m(y, x) = max(0, max over a pool × pool cell of (image ⊗ template_m) + bias_m). The maps
    are the channels of the image that the family sees. They are computed once for all features;
    maps of maps are made by a family of this kind inside. Templates come from patches of training
    images; fine-tuning moves them.

    Parameters
    ----------
    family : FeatureFamily
        Unfitted, such as ``PatchTemplates(patch_size=3, masks="cells")``.
    n_maps : int, default 4
    size : int, default 5
        q, the side of a template in pixels.
    pool : int, default 2
        Side of the cells whose maximum is taken; 1 for every position.
    padding : int, default 0
        Zero pixels around the image.
    n_patches : int, default 100_000
        Patches drawn from the images for k-means.
    random_state : int, default 0
        Seed.

    Attributes
    ----------
    templates_ : ndarray of shape (n_maps, q, q, C), float32
    biases_ : ndarray of shape (n_maps,), float32
    part_ : FeatureFamily
        The fitted family, of images of ``map_shape_``.
    map_shape_ : tuple of int
        Rows and columns of a map, and the number of maps.
    n_features_ : int
    image_shape_ : tuple of int

    References
    ----------
    T. Serre, L. Wolf, T. Poggio et al., "Robust object recognition with cortex-like mechanisms",
    PAMI 29, 2007: layers S1 and C1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import Pixels
    >>> images = load_digits().images / 16
    >>> family = LearnedMaps(Pixels(), n_maps=3, size=3).fit(images)
    >>> family.map_shape_, family.n_features_
    ((3, 3, 3), 27)
    """

    name: ClassVar[str] = "maps"
    tunable_on_maps: ClassVar[bool] = True

    def __init__(
        self,
        family: Any = None,
        n_maps: int = 4,
        size: int = 5,
        pool: int = 2,
        padding: int = 0,
        n_patches: int = 100_000,
        random_state: int = 0,
    ) -> None:
        self.family = family
        self.n_maps = n_maps
        self.size = size
        self.pool = pool
        self.padding = padding
        self.n_patches = n_patches
        self.random_state = random_state

    @property
    def raster_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of an image; a vector is one row."""
        shape = tuple(self.image_shape_)
        height, width, channels = {1: (1, *shape, 1), 2: (*shape, 1)}.get(len(shape), shape)
        return height, width, channels

    def _check_own(self) -> None:
        check_whole("n_maps", self.n_maps, most=1024)
        check_whole("size", self.size, most=64)
        check_whole("pool", self.pool, most=11)
        check_whole("padding", self.padding, least=0, most=64)
        check_whole("n_patches", self.n_patches)

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> LearnedMaps:
        """Learn templates from patches of images, then the family from the maps.

        Raises
        ------
        InputError
            If a parameter is out of range or asks for more memory than there is, or the images are
            smaller than a cell of maps or hold too few different patches.
        """
        self.check_parameters()
        raster = self._see(images)
        self.map_shape_ = self._map_shape(raster.shape[1:])
        self._check_size(raster)
        self.templates_ = sampled_templates(
            raster, self.size, self.padding, self.n_maps, self.n_patches, self.random_state
        )
        self.biases_ = np.zeros(self.n_maps, np.float32)
        part = unfitted_copy(self.family).fit(self.computed(images), y)
        return self._with(part)

    def _map_shape(self, raster: tuple[int, ...]) -> tuple[int, int, int]:
        positions = (side + 2 * self.padding - self.size + 1 for side in raster[:2])
        rows, cols = (max(0, side) // self.pool for side in positions)
        if rows < 1 or cols < 1:
            least = self.size + self.pool - 1 - 2 * self.padding
            raise InputError("images", raster, f"images of at least {least}×{least} pixels")
        return rows, cols, self.n_maps

    def _check_size(self, images: Any) -> None:
        """Check that patches, padded images and maps are no matter of gigabytes."""
        n, *sides, channels = images.shape
        taps = 4.0 * self.size**2 * channels
        check_memory("n_patches", self.n_patches, taps * (3 * self.n_patches + 2 * self.n_maps))
        area = float(np.prod([side + 2 * self.padding for side in sides]))
        check_memory("padding", self.padding, images.dtype.itemsize * channels * area)
        # Maps of some images at a time.
        check_memory("n_maps", self.n_maps, 8.0 * min(n, 16) * float(np.prod(self.map_shape_)))

    def _with(self, part: FeatureFamily) -> LearnedMaps:
        self.part_, self.n_features_ = part, part.n_features_
        return self

    def of(self, part: FeatureFamily, templates: np.ndarray, biases: np.ndarray) -> LearnedMaps:
        """Return the same maps with other templates and biases, and other features on them."""
        family = LearnedMaps(**self.get_params(deep=False))
        family.image_shape_, family.map_shape_ = self.image_shape_, self.map_shape_
        family.templates_ = np.ascontiguousarray(templates, np.float32)
        family.biases_ = np.ascontiguousarray(biases, np.float32)
        return family._with(part)

    def around(self, part: FeatureFamily) -> LearnedMaps:
        return self.of(part, self.templates_, self.biases_)

    def _inner_shape(self) -> tuple[int, ...]:
        return self.map_shape_

    def inner_images(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return the maps, see :meth:`maps`."""
        return self.maps(images, n_jobs)

    def maps(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return the maps (n, h, w, n_maps), float32, of images of the shape that is known."""
        return self._maps(images, n_jobs, with_places=False)[0]

    def maps_and_places(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the maps, and where each maximum is in its cell, int8; −1 where the map is 0."""
        return self._maps(images, n_jobs, with_places=True)

    def _maps(
        self, images: np.ndarray, n_jobs: int, with_places: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        from visionshare.generators.maps.kernels import maps_of_block

        raster = check_images(images, self.image_shape_)
        lines, templates = as_lines(raster), as_lines(self.templates_)
        out = np.empty((len(raster), *self.map_shape_), np.float32)
        places = np.empty(out.shape if with_places else (0, 0, 0, 0), np.int8)

        def block(start: int, stop: int) -> None:
            part = places[start:stop] if with_places else places
            maps_of_block(
                lines[start:stop], templates, self.biases_, self.padding, self.pool,
                out[start:stop], part,
            )  # fmt: skip

        run_blocks(block, len(raster), _AT_ONCE, n_jobs)
        return out, places

    def outer_boxes(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the receptive fields of boxes of the maps, (n, 4)."""
        field = Field().after(self.size, self.pool, self.padding)
        return clipped_boxes(seen_boxes(boxes, field, field), self.image_shape_)

    @property
    def shared_macs(self) -> int:
        """Multiply-accumulates per image of all maps."""
        rows, cols, _ = self.map_shape_
        return rows * cols * self.pool**2 * int(self.templates_.size)

    def layers(self) -> list[LayerSummary]:
        """Return the maps, then the layers of the family."""
        held = int(self.templates_.size + self.biases_.size)
        own = LayerSummary(self.name, self.map_shape_, self.n_maps, held, self.shared_macs)
        return [own, *self.part_.layers()]

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the templates of the maps, and what the family says of the feature on them."""
        inner = self.part_.describe(feature)
        return {"kind": "maps", "templates": self.templates_, "feature": inner}

    def check_tunable(self) -> None:
        """Check that the family inside can be moved, and knows its gradients in the maps."""
        super().check_tunable()
        if not self.family.tunable_on_maps:
            accepted = "a family that fine-tuning can move on maps: patches, or maps"
            raise InputError("family", self.family.name, accepted)

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        parameters = self.get_params(deep=False)
        del parameters["family"]
        states, arrays = parts_to_state([self.part_])
        arrays.update({"templates": self.templates_, "biases": self.biases_})
        return family_state(self, parameters=parameters, parts=states), arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> LearnedMaps:
        """Return the family that :meth:`to_state` described."""
        family = unfitted(cls, state, arrays, {"templates": 4, "biases": 1}, without=("family",))
        family._check_own()
        family.map_shape_ = family._map_shape(family.raster_shape)
        shape = (family.n_maps, family.size, family.size, family.raster_shape[2])
        templates, biases = arrays["templates"], arrays["biases"]
        if templates.shape != shape or templates.dtype != np.float32:
            raise InputError("templates", templates.shape, f"float32 of shape {shape}")
        if biases.shape != shape[:1] or biases.dtype != np.float32:
            raise InputError("biases", biases.shape, f"float32 of shape {shape[:1]}")
        _, parts = parts_from_state(state, arrays, family.map_shape_)
        if len(parts) != 1:
            raise InputError("parts", len(parts), "one family")
        family.family = unfitted_copy(parts[0])
        return family.of(parts[0], templates, biases)
