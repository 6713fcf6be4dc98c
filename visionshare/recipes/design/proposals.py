"""Proposals: structures that fit images and a budget, drawn in an order that a seed fixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple, TypeVar

import numpy as np

from visionshare.errors import InputError
from visionshare.learners.fine_tuning.heads import UNITS
from visionshare.recipes.design.cost import Budget, Cost, cost_of
from visionshare.recipes.design.settings import Design
from visionshare.recipes.design.structure import MapLayer, Structure

__all__ = ["Proposals", "draw_structure"]

T = TypeVar("T")
# Draws in a row that give nothing new, after which nothing more is expected.
_IN_VAIN = 20_000


class _Drawn(NamedTuple):
    structure: Structure
    cost: Cost


def draw_structure(design: Design, rng: np.random.Generator) -> Structure:
    """Return a structure at random, whether it fits anything or not."""

    def one(values: Sequence[T]) -> T:
        return values[int(rng.integers(len(values)))]

    layers = tuple(
        MapLayer(one(design.n_maps), one(design.map_sizes), one(design.pools))
        for _ in range(one(design.n_layers))
    )
    head, units = one(design.heads), one(design.n_units)
    return Structure(
        layers,
        one(design.patch_sizes),
        one(design.n_templates),
        one(design.grids),
        head,
        units if head in UNITS else 0,
        one(design.deslanted),
        tuple(one(design.channels)),
    )


class Proposals:
    """Different structures within a budget, by number."""

    def __init__(
        self,
        design: Design,
        budget: Budget,
        raster: tuple[int, int, int],
        n_classes: int,
        max_products: int | None = None,
        seed: int = 0,
    ) -> None:
        self._design, self._budget = design, budget
        self._images = raster, n_classes, max_products
        self._known: list[_Drawn] = []
        self._least: dict[str, int] = {}
        self._rest = self._draws(np.random.default_rng([seed, 3]))

    def __getitem__(self, number: int) -> _Drawn:
        """Return a structure and its cost."""
        while len(self._known) <= number:
            drawn = next(self._rest, None)
            if drawn is None:
                raise IndexError(number)
            self._known.append(drawn)
        return self._known[number]

    def has(self, number: int) -> bool:
        """Return whether there are so many structures and one more."""
        try:
            self[number]
        except IndexError:
            return False
        return True

    def check(self) -> None:
        """Check that there is a structure at all."""
        if self.has(0):
            return
        (height, width, _), *_ = self._images
        if not self._least:
            accepted = f"smaller templates or cells, for images of {height}×{width} pixels"
            raise InputError("design", "no structure that fits", accepted)
        for name, limit in self._budget.limits.items():
            if limit < self._least[name]:
                raise InputError(name, limit, f"at least {self._least[name]}, for what may vary")
        limits = ", ".join(f"{name} {limit}" for name, limit in self._budget.limits.items())
        accepted = "other limits, other structures in [design], or a lower design.least_use"
        raise InputError("budget", limits, accepted)

    def _draws(self, rng: np.random.Generator) -> Iterator[_Drawn]:
        seen: set[Structure] = set()
        in_vain = 0
        raster, n_classes, max_products = self._images
        while in_vain < _IN_VAIN:
            in_vain += 1
            structure = draw_structure(self._design, rng)
            too_many = structure.n_features > self._design.max_features
            if too_many or structure in seen or not structure.fits(raster):
                continue
            cost = cost_of(structure, raster, n_classes, max_products)
            for name, value in asdict(cost).items():
                self._least[name] = min(value, self._least.get(name, value))
            use = self._budget.use(cost)
            if use is None or self._design.least_use <= use <= 1:
                seen.add(structure)
                in_vain = 0
                yield _Drawn(structure, cost)
