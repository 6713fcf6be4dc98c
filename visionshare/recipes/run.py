"""The run object: what every stage of a training run knows."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from visionshare.datasets import ImageSet, StoredPictures
from visionshare.errors import RecipeError
from visionshare.files.durable import remove_folder, write_text
from visionshare.files.fingerprints import array_fingerprint
from visionshare.machine.progress import stage
from visionshare.machine.resources import parse_size
from visionshare.recipes.folder import IDENTITY
from visionshare.recipes.schema import Recipe, as_settings
from visionshare.recipes.stages.stored import names_storage

_logger = logging.getLogger(__name__)


class Clock:
    """Seconds that each stage took, summed over its calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.processor_seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the seconds of a ``with`` block to a stage's, and show what runs."""
        start = time.perf_counter()
        processor = time.process_time()
        with stage(name):
            yield
        seconds = self.seconds.get(name, 0.0) + time.perf_counter() - start
        self.seconds[name] = round(seconds, 3)
        processor = self.processor_seconds.get(name, 0.0) + time.process_time() - processor
        self.processor_seconds[name] = round(processor, 3)
        _logger.info("%s: %.1f s", name, self.seconds[name])


@dataclass(frozen=True)
class TrainingRun:
    """A recipe and how it is executed; stages take it and what earlier stages returned."""

    recipe: Recipe
    work: Path
    data_dir: Path | None = None
    jobs: int = 1
    clock: Clock = field(default_factory=Clock, compare=False)
    client: Any = None
    trials: Mapping[str, Sequence[Any]] | None = None
    # Loss, training error and validation error of each epoch, by the folder of the training.
    curves: dict[Path, list[tuple[float, float, float]]] = field(default_factory=dict)

    def curve(self) -> list[tuple[float, float, float]]:
        """Return the list that receives the epochs of this training."""
        return self.curves.setdefault(self.work, [])

    @property
    def in_partitions(self) -> bool:
        """Whether the columns are divided by examples."""
        recipe = self.recipe
        here = recipe.store.partitions is None and not names_storage(recipe.data.source)
        return self.client is not None or not here

    @property
    def memory(self) -> int:
        """Bytes that the run's data may take: images, columns, and what is computed from them."""
        return parse_size(self.recipe.store.memory, "store.memory")

    def member(self, number: int) -> TrainingRun:
        """Return the run of one of the recipe's members, with another seed and folder."""
        n = self.recipe.members
        recipe = self.recipe.model_copy(update={"seed": self.recipe.seed * n + number})
        work = self.work / f"member-{number + 1}" if n > 1 else self.work
        return replace(self, recipe=recipe, work=work)


def claim_work_folder(run: TrainingRun, training: ImageSet | StoredPictures, resume: bool) -> None:
    """Make the work folder this run's: empty, or that of the same recipe where it resumes."""
    identity = dict(as_settings(run.recipe))
    # More rounds, another memory bound or place resume from the same columns and rounds.
    identity["learner"] = {**identity["learner"], "rounds": None}
    identity["store"] = {"dtype": run.recipe.store.dtype}
    if run.in_partitions:
        # Their number changes the last bits.
        identity["store"]["partitions"] = run.recipe.store.partitions
    identity["images"] = fingerprint_of(training)
    text = json.dumps(identity, sort_keys=True)
    file = run.work / IDENTITY
    if not resume:
        remove_folder(run.work)
    elif file.exists() and file.read_bytes() != text.encode():
        raise RecipeError(f"{run.work}: holds another run; leave --resume out to restart")
    write_text(file, text)


def fingerprint_of(pictures: ImageSet | StoredPictures) -> str:
    """Return what tells pictures and their labels from others."""
    if isinstance(pictures, StoredPictures):
        return pictures.fingerprint()
    return array_fingerprint(pictures.images, pictures.labels)
