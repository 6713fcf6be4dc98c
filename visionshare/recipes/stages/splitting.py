"""Which pictures test when a classifier learns on: none that it has learned from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from visionshare.datasets import ImageSet
from visionshare.datasets.copies import image_digests
from visionshare.datasets.pictures.splits import HELD_OUT, NONE, TEST_FRACTION, SplitImages
from visionshare.datasets.pictures.splits import held_out as drawn
from visionshare.recipes.folder import SPLIT
from visionshare.recipes.schema import Recipe
from visionshare.recipes.teachers import joined


def together(training: ImageSet, test: ImageSet) -> ImageSet:
    """Return training and test pictures as one set."""
    groups = names = None
    if training.groups is not None and test.groups is not None:
        groups = np.concatenate([training.groups, test.groups])
    if training.names is not None and test.names is not None:
        names = (*training.names, *test.names)
    return replace(joined([training, test]), groups=groups, names=names)


def split_text(training: np.ndarray, test: np.ndarray) -> str:
    """Return what a run's folder says of which pictures trained and tested."""
    parts = {"train": training, "test": test}
    return json.dumps({name: image_digests(part) for name, part in parts.items()}) + "\n"


def split_again(split: SplitImages, recipe: Recipe) -> SplitImages:
    """Return pictures of which those test that tested before, and a part of the new ones."""
    if recipe.start is None or split.test_origin != HELD_OUT:
        return split
    both = together(split.training, split.test)
    known = _known(Path(recipe.start))
    if known is None:
        note = "no test error: it is not known which pictures the classifier learned from"
        none = both.subset(slice(0, 0))
        return replace(split, training=both, test=none, test_origin=NONE, notes=(note,))
    # 1) what was seen before stays where it was
    digests = np.array(image_digests(both.images))
    groups = both.kept_together
    trained, tested = (np.isin(digests, known[name]) for name in ("train", "test"))
    new = ~(trained | tested)
    tests = tested & ~np.isin(groups, groups[trained])
    # 2) of new ones a part is drawn, but no copy or companion of what trained
    given = recipe.data.test_fraction
    fraction = TEST_FRACTION if given is None else given
    free = new & ~np.isin(groups, groups[~new])
    chosen = np.zeros(len(both), bool)
    chosen[free] = drawn(both.labels[free], fraction, groups[free])
    tests |= chosen
    n_old = tests.sum() - chosen.sum()
    note = (
        f"{new.sum()} of {len(both)} pictures are new; {n_old} that were held out before test, "
        f"and {chosen.sum()} new ones"
    )
    kept = tuple(text for text in split.notes if not text.startswith("no test set found"))
    parts = [both.subset(np.flatnonzero(mask)) for mask in (~tests, tests)]
    origin = HELD_OUT if tests.any() else NONE
    return replace(split, training=parts[0], test=parts[1], test_origin=origin, notes=(note, *kept))


def _known(folder: Path) -> dict[str, list[str]] | None:
    """Return the digests of the pictures that trained and tested in a run's folder."""
    try:
        found = json.loads((folder / SPLIT).read_text("utf-8"))
        return {name: [str(digest) for digest in found[name]] for name in ("train", "test")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
