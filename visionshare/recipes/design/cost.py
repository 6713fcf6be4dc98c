"""What a structure costs, before anything is learned; and budgets."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from visionshare.errors import InputError
from visionshare.export.targets.flash import TableSize, estimated_flash
from visionshare.generators.layers.deslant.layer import MACS_PER_VALUE
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.learners.fine_tuning.heads import UNITS
from visionshare.recipes.design.structure import Structure

__all__ = ["Budget", "Cost", "cost_of", "flash_of"]

_FLOAT, _ID = 4, 8


@dataclass(frozen=True)
class Cost:
    """What prediction costs."""

    macs: int
    parameters: int
    nbytes: int


@dataclass(frozen=True)
class Budget:
    """What a structure may cost at most; what is None is not limited.

    Attributes
    ----------
    macs, parameters, nbytes : int, optional

    Raises
    ------
    InputError
        If a limit is below 1.

    Examples
    --------
    >>> budget = Budget(macs=1000, parameters=50)
    >>> budget.use(Cost(200, 25, 999))
    0.5
    """

    macs: int | None = None
    parameters: int | None = None
    nbytes: int | None = None

    def __post_init__(self) -> None:
        for name, limit in asdict(self).items():
            whole = isinstance(limit, int) and not isinstance(limit, bool)
            if limit is not None and not (whole and limit >= 1):
                raise InputError(name, limit, "a whole number of at least 1, or None")

    @property
    def limits(self) -> dict[str, int]:
        """The limits that there are, by name."""
        return {name: limit for name, limit in asdict(self).items() if limit is not None}

    def use(self, cost: Cost) -> float | None:
        """Return the largest fraction of a limit that a cost is; None without limits."""
        parts = [getattr(cost, name) / limit for name, limit in self.limits.items()]
        return max(parts, default=None)


def cost_of(
    structure: Structure,
    raster: tuple[int, int, int],
    n_classes: int,
    max_products: int | None = None,
    members: int = 1,
) -> Cost:
    """Return what the classifiers of a structure cost, those that lack no template."""
    height, width, channels = raster
    macs = MACS_PER_VALUE * height * width * channels if structure.deslanted else 0
    macs += structure.channels_macs(raster)
    parameters = 0
    rasters = structure.rasters(raster)
    for layer, below, maps in zip(structure.layers, rasters, rasters[1:], strict=False):
        taps = layer.n_maps * layer.size**2 * below[2]
        macs += maps[0] * maps[1] * layer.pool**2 * taps
        parameters += taps + layer.n_maps
    rows, cols = structure.positions(raster)
    taps = structure.n_templates * structure.patch_size**2 * rasters[-1][2]
    features = structure.n_features
    head = _cost_of_head(structure, n_classes, max_products)
    macs += rows * cols * taps + head.macs
    parameters += taps + structure.n_templates + head.parameters
    # Where each feature is in the last layer's output.
    given = structure.n_units if structure.head in UNITS else features
    one = Cost(macs, parameters, _FLOAT * parameters + _ID * given + head.nbytes)
    if members == 1:
        return one
    # A mean keeps of each feature whose it is.
    nbytes = members * (one.nbytes + _ID * given)
    return Cost(members * one.macs, members * one.parameters, nbytes)


def _cost_of_head(structure: Structure, n_classes: int, max_products: int | None) -> Cost:
    """Return the cost of what follows the features; the bytes are those of no parameter."""
    features, units = structure.n_features, structure.n_units
    if structure.head in UNITS:
        directions, weights = features * units, units * n_classes
        squares = units if UNITS[structure.head] == "square" else 0
        return Cost(directions + squares + weights, directions + units + weights + n_classes, 0)
    weights, products, ids = features * n_classes, 0, 0
    if structure.head == "products":
        pairs = features * (features + 1) // 2
        products = pairs if max_products is None else min(pairs, max_products)
        weights += products * n_classes
        # The factors of each monomial, and where they begin.
        ids = _ID * (features + 2 * products + features + products + 1)
    return Cost(products + weights, weights + n_classes, ids)


def flash_of(structure: Structure, raster: tuple[int, int, int], n_classes: int, bits: Bits) -> int:
    """Return about the flash of a structure's classifiers in whole numbers, code included."""
    rasters, tables = structure.rasters(raster), []
    for layer, below in zip(structure.layers, rasters, strict=False):
        tables.append(TableSize(layer.n_maps, layer.size**2 * below[2], bits.templates))
    taps = structure.patch_size**2 * rasters[-1][2]
    tables.append(TableSize(structure.n_templates, taps, bits.templates))
    values = structure.n_features
    if structure.head in UNITS:
        tables.append(TableSize(structure.n_units, values, bits.weights))
        values = structure.n_units
    tables.append(TableSize(n_classes, values, bits.weights))
    return estimated_flash(tables, structure.deslanted, UNITS.get(structure.head) == "square")
