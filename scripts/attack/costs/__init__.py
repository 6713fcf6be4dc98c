"""Builders of inputs that are expensive for their size, a module for each group of formats."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.attack.costs.bodies import BODIES
from scripts.attack.costs.costly import Costly
from scripts.attack.costs.files import CLASSIFIER, RECIPE
from scripts.attack.costs.hdf5 import HDF5
from scripts.attack.costs.packed import IDX, LIBSVM, NPZ, PARQUET, TABLE, TAR
from scripts.attack.costs.pictures import HEADER, PICTURE

__all__ = ["COSTS", "Costly"]

COSTS: Mapping[str, Costly] = {
    "picture": PICTURE,
    "picture header": HEADER,
    "HDF5": HDF5,
    "Parquet": PARQUET,
    "tar": TAR,
    "IDX": IDX,
    "npz": NPZ,
    "libsvm": LIBSVM,
    "table": TABLE,
    "classifier": CLASSIFIER,
    "recipe": RECIPE,
    "HTTP body": BODIES,
}
