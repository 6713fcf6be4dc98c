"""Chosen features whose parameters move: values, and gradients in the parameters.

To make a family tunable, write a class with the methods of :class:`Tunable` and add one line to
:data:`TUNABLE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import check_images
from visionshare.generators.patches import PatchTemplates
from visionshare.generators.restricted import RestrictedPlan
from visionshare.resources import thread_limit

__all__ = ["TUNABLE", "Tunable", "TunableTemplates", "check_tunable", "tunable"]


class Tunable(Protocol):
    """Chosen features as a function of parameters, for learners that move them."""

    parameters: np.ndarray

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs of them."""
        ...

    def backward(self, images: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return the gradient in the parameters of Σ_if G_if x_if."""
        ...

    def move(self, parameters: np.ndarray) -> None:
        """Take on other parameters of the same shape."""
        ...

    def family(self) -> Any:
        """Return the family of these features with the parameters as they are now."""
        ...


class TunableTemplates:
    """Patch features whose templates move; masks, and so the cost, stay as they are.

    Parameters
    ----------
    family : PatchTemplates
        Restricted to the chosen features, see :meth:`PatchTemplates.take`.

    Attributes
    ----------
    parameters : ndarray of shape (n_templates, q, q, C), float32
        The templates.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> images = (load_digits().images[:9] * 15).astype(np.uint8)
    >>> family = PatchTemplates(3, 8, grid=2, widths=(2.0,), n_patches=500).fit(images)
    >>> features = TunableTemplates(family.take([4, 0]))
    >>> values, places = features.forward(images)
    >>> features.backward(images, places, np.ones_like(values)).shape
    (2, 3, 3, 1)
    """

    def __init__(self, family: PatchTemplates) -> None:
        self._family = family.take(np.arange(family.n_features_))
        self.parameters = self._family.templates_.copy()
        held = self._family
        self._plan = RestrictedPlan(
            self.parameters, held.row_masks_, held.col_masks_, held.layout_,
            held._pads, held.image_shape_,
        )  # fmt: skip
        template = held.layout_[:, 0]
        self._order = np.argsort(template, kind="stable")
        numbers = np.arange(len(self.parameters) + 1)
        self._starts = np.searchsorted(template[self._order], numbers)

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return features (n, n_features), float32, and where each maximum was found."""
        return self._plan.evaluate_places(check_images(images, self._family.image_shape_), n_jobs)

    def backward(
        self, images: np.ndarray, seen: np.ndarray, G: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Return the gradient in the templates of Σ_if G_if x_if, float32.

        Parameters
        ----------
        images : ndarray
            As handed to :meth:`forward`.
        seen : ndarray of shape (n, n_features), int32
            Where each maximum was found.
        G : ndarray of shape (n, n_features)
        n_jobs : int, default 1
            Threads.
        """
        from visionshare.generators.tuning_kernels import template_gradients

        family, held = self._family, check_images(images, self._family.image_shape_)
        templates, q, _, _ = self.parameters.shape
        out = np.empty((templates, q, self.parameters[0, 0].size), np.float32)
        rows = np.ascontiguousarray(held).reshape(*held.shape[:2], -1)
        unit = np.float32(1 / 255) if held.dtype == np.uint8 else np.float32(1)
        with thread_limit(n_jobs):
            template_gradients(
                rows, unit, *family._pads, seen, np.asarray(G, np.float32), self._order,
                self._starts, family.layout_, family.row_masks_, family.col_masks_, out,
            )  # fmt: skip
        return out.reshape(self.parameters.shape)

    def move(self, parameters: np.ndarray) -> None:
        """Take on other templates of the same shape."""
        self.parameters = np.ascontiguousarray(parameters, np.float32)
        self._plan.set_templates(self.parameters)

    def family(self) -> PatchTemplates:
        """Return the family with the templates as they are now."""
        moved = self._family.take(np.arange(self._family.n_features_))
        moved.templates_ = self.parameters.copy()
        return moved


TUNABLE: dict[str, Callable[[Any], Tunable]] = {"patches": TunableTemplates}


def check_tunable(family: Any) -> None:
    """Check that the parameters of such a family can move.

    Raises
    ------
    InputError
        If they cannot.
    """
    if family.name not in TUNABLE:
        raise InputError("family", family.name, " or ".join(map(repr, TUNABLE)))


def tunable(family: Any) -> Tunable:
    """Return the features of a fitted family as a function of their parameters.

    Raises
    ------
    InputError
        If the parameters of such a family cannot move.
    """
    check_tunable(family)
    return TUNABLE[family.name](family)
