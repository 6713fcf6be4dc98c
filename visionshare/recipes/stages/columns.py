"""The columns that a recipe's search looks at: kept, drawn, or computed from the inputs' order."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.datasets import ImageSet, StoredPictures
from visionshare.errors import RecipeError
from visionshare.machine.memory import check_fits, hold, memory_room
from visionshare.machine.resources import size_text
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.schema import DrawsPart, Recipe

# Searches whose columns are computed whenever they are asked for.
_NEVER_STORED = ("sampled", "stumps")
# Searches that take columns whose examples lie in several places.
_IN_PARTITIONS = ("exhaustive", "random")


def check_columns(recipe: Recipe, family: Any) -> None:
    """Check that the search fits the family and the store, before any work.

    Raises
    ------
    RecipeError
        If it does not.
    """
    search = recipe.learner.search_name
    name = type(family).name
    if search == "sampled" and not family.is_continuous:
        raise RecipeError(
            f"learner.search: 'sampled' draws from a continuous family, such as gabor or fourier; "
            f"the pool {recipe.features.pool!r} is of the family {name!r}"
        )
    if search == "stumps" and name != "stumps":
        kind = recipe.learner.kind
        setting = f"learner.search: {search!r}"
        raise RecipeError(
            f"{setting if kind != 'jointboost' else f'learner.kind: {kind!r}'} takes a pool of "
            f"the family 'stumps'; {recipe.features.pool!r} is of the family {name!r}"
        )
    if search == "products":
        raise RecipeError("learner.search: 'products' is not for recipes; see ProductColumns")
    if search in _NEVER_STORED and recipe.store.where == "disk":
        raise RecipeError(f"store.where: the search {search!r} keeps no columns; leave it out")


def check_partitions(recipe: Recipe, learner: Any) -> None:
    """Check that a learner and its search take columns in partitions, before any work."""
    if not getattr(learner, "takes_partitions", False):
        said = f"learner.kind: {recipe.learner.kind!r} takes no columns in partitions"
        raise RecipeError(f"{said}, as a cluster has; {_taking()} do")
    search = recipe.learner.search_name
    if search not in _IN_PARTITIONS:
        accepted = " or ".join(map(repr, _IN_PARTITIONS))
        raise RecipeError(f"learner.search: with columns in partitions {accepted}, not {search!r}")


def _taking() -> str:
    """Return the kinds of learners that take columns in partitions."""
    from visionshare.learners.registry import CLASSIFIERS, classifier_class

    return ", ".join(repr(kind) for kind in CLASSIFIERS if classifier_class(kind).takes_partitions)


def searches_at_most(recipe: Recipe) -> int:
    """Return how often a learner may search before it ends."""
    learner = recipe.learner
    template = getattr(learner, "learner", None) or learner
    rounds = getattr(learner, "rounds", 1) + getattr(template, "n_backward", 0)
    if not hasattr(learner, "n_entering"):
        return rounds
    # Before each candidate that enters all searches but one of its patience may be in vain.
    return (rounds + 1) * getattr(learner, "patience", 1)


def make_columns(
    run: TrainingRun, family: Any, pictures: ImageSet | StoredPictures
) -> tuple[Any, Any]:
    """Return columns for the recipe's learner, and the features whose columns they are."""
    store = run.recipe.store
    search = run.recipe.learner.search_name
    jobs = run.jobs
    # Those of an earlier member, or of a trial that failed, are gone.
    hold("columns", 0)
    if isinstance(pictures, StoredPictures):
        return _partitioned(run, family, pictures), family
    images = pictures.images
    if search == "sampled":
        return _drawn(run, family, images)
    if search == "stumps":
        ways = "fewer or smaller images, fewer thresholds"
        check_fits("the orders of stumps", 4.0 * images.size + 12.0 * family.n_features_, ways)
        from visionshare.generators.stumps import StumpColumns

        return StumpColumns(family, images, jobs), family
    if run.in_partitions:
        return _partitioned(run, family, images), family
    # What is left beside the images: half of it for columns, the rest for what is computed.
    memory = max(0, min(run.memory, memory_room()))
    size = len(images) * family.n_features_ * np.dtype(store.dtype).itemsize
    if store.where == "memory" or (store.where == "auto" and size <= memory // 2):
        from visionshare.columns import ArrayColumns

        check_fits("columns in memory", size, 'fewer features or images, store.where="disk"')
        hold("columns", size)
        return ArrayColumns.from_family(family, images, store.dtype, jobs), family
    if store.where == "auto" and _in_rings(family):
        from visionshare.generators.anchors import AnchorColumns

        return AnchorColumns(family, images, jobs), family
    from visionshare.store import create_store

    _check_room("disk", size, _room(run.work))
    columns = create_store(run.work / "store", family, images, store.dtype, max(memory, 1), jobs)
    columns.fill()
    return columns, family


def _partitioned(run: TrainingRun, family: Any, images: np.ndarray | StoredPictures) -> Any:
    """Return columns in partitions: on the run's cluster, or here where it has none."""
    from visionshare.distributed import DistributedColumns, PartitionedColumns

    store = run.recipe.store
    options: dict[str, Any] = {"partitions": store.partitions, "dtype": store.dtype}
    if run.client is not None:
        options["memory"] = run.memory
        return DistributedColumns.from_family(family, images, run.client, **options)
    if isinstance(images, StoredPictures):
        options["memory"] = max(1, min(run.memory, memory_room()))
        return PartitionedColumns.from_family(family, images, **options, n_jobs=run.jobs)
    size = len(images) * family.n_features_ * np.dtype(store.dtype).itemsize
    check_fits("columns in memory", size, "fewer features or images, or a cluster")
    hold("columns", size)
    return PartitionedColumns.from_family(family, images, **options, n_jobs=run.jobs)


def _drawn(run: TrainingRun, family: Any, images: np.ndarray) -> tuple[Any, Any]:
    from visionshare.generators.draws import Draws
    from visionshare.store import DrawnColumns

    n = (run.recipe.draws or DrawsPart()).n
    draws = Draws(family, n, searches_at_most(run.recipe), run.recipe.seed)
    return DrawnColumns(draws, images, run.jobs), draws


def _room(work: Path) -> int:
    """Return the bytes that a run's columns may take on its disk: free ones, and those it has."""
    existing = work
    while not existing.exists():
        existing = existing.parent
    written = sum(path.stat().st_size for path in work.glob("store/shards/*"))
    return shutil.disk_usage(existing).free + written


def _check_room(where: str, needed: int, room: int) -> None:
    if needed > room:
        raise RecipeError(
            f"features: their columns take about {size_text(needed)} of {where}; there are "
            f"{size_text(room)}: choose fewer features, or fewer images (data.limit)"
        )


def _in_rings(family: Any) -> bool:
    """Return whether a pool is of piece-wise linear anchors: searched without their columns."""
    return type(family).name == "anchors" and family.kind != "gaussian"
