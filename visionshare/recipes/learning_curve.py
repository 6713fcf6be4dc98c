"""Learning curves: the test error after learning from fewer images."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visionshare.errors import VisionshareError
from visionshare.recipes.run import Run
from visionshare.recipes.schema import Recipe
from visionshare.recipes.stages.evaluation import Evaluation
from visionshare.recipes.stages.images import RunImages

if TYPE_CHECKING:
    from visionshare.reports.figures import CurvePoint

__all__ = ["curve_sizes", "measure_learning_curve"]

#: Trains a recipe in a folder, and returns its figures.
Trainer = Callable[[Recipe, Path], Mapping[str, Any]]
_logger = logging.getLogger(__name__)

# The largest is half of the images: together they take less time than the training itself.
_DIVISORS = (8, 4, 2)
_FEWEST_OF_A_CLASS = 2


def curve_sizes(n_images: int, n_classes: int) -> list[int]:
    """Return the numbers of images of the smaller trainings, ascending."""
    fewest = _FEWEST_OF_A_CLASS * n_classes
    return [n_images // d for d in _DIVISORS if n_images // d >= fewest]


def measure_learning_curve(
    run: Run, images: RunImages, evaluation: Evaluation, train: Trainer
) -> tuple[CurvePoint, ...]:
    """Train a run's recipe on parts of its images, and evaluate each on the same test images."""
    # A part is a random one, of the recipe's seed, and contains the smaller ones. Sizes with
    # which the recipe cannot be trained are left out.
    from visionshare.reports.figures import CurvePoint
    from visionshare.reports.results import error_interval

    n_test, points = len(images.test), []
    if not n_test:
        _logger.warning("a learning curve needs test images")
        return ()
    for size in curve_sizes(images.n_originals, len(images.training.classes)):
        data = run.recipe.data.model_copy(update={"limit": size})
        recipe = run.recipe.model_copy(update={"data": data})
        try:
            figures = train(recipe, run.work / f"curve-{size}")
        except VisionshareError as error:
            _logger.warning("no point of the learning curve at %d images: %s", size, error)
            continue
        errors = int(figures["test_errors"])
        points.append(CurvePoint(size, errors / n_test, *error_interval(errors, n_test)))
    errors = evaluation.errors or 0
    interval = error_interval(errors, n_test)
    return (*points, CurvePoint(images.n_originals, errors / n_test, *interval))
