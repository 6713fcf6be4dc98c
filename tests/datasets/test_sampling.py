"""A few examples: as many as asked, of the right classes, drawn by the seed alone."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import sample_one_class, sample_per_class, stratified_mask
from visionshare.errors import DataError, InputError

LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1, 0, 0])


def test_one_class_comes_first_and_the_others_after_it():
    rows = sample_one_class(LABELS, 1, 2, 3, np.random.default_rng(0))
    assert (LABELS[rows[:2]] == 1).all()
    assert (LABELS[rows[2:]] != 1).all()
    assert len(np.unique(rows)) == 5
    assert_array_equal(rows, sample_one_class(LABELS, 1, 2, 3, np.random.default_rng(0)))
    every = sample_one_class(LABELS, 1, None, None, np.random.default_rng(0))
    assert sorted(every.tolist()) == list(range(10))


def test_every_example_can_be_drawn():
    drawn = [sample_one_class(LABELS, 1, 1, 1, np.random.default_rng(s)) for s in range(200)]
    assert set(np.concatenate(drawn).tolist()) == set(range(10))


def test_of_each_class_at_most_so_many():
    rows = sample_per_class(LABELS, 2, np.random.default_rng(0))
    assert np.bincount(LABELS[rows]).tolist() == [2, 2, 2]
    assert (np.diff(rows) > 0).all()
    more = sample_per_class(LABELS, 3, np.random.default_rng(0))
    assert np.bincount(LABELS[more]).tolist() == [3, 3, 2]
    with pytest.raises(InputError, match=r"^n: got -1"):
        sample_per_class(LABELS, -1, np.random.default_rng(0))


@pytest.mark.parametrize("fraction", [0, 0.5, 1])
def test_a_fraction_of_each_class(fraction):
    mask = stratified_mask(LABELS, fraction, 0)
    drawn = np.bincount(LABELS[mask], minlength=3)
    assert drawn.tolist() == [round(fraction * n) for n in (5, 3, 2)]
    assert_array_equal(mask, stratified_mask(LABELS, fraction, 0))


@pytest.mark.parametrize("fraction", [-0.1, 1.1, np.nan])
def test_no_fraction_is_refused(fraction):
    with pytest.raises(InputError, match=r"^fraction: got"):
        stratified_mask(LABELS, fraction, 0)


def test_a_group_is_drawn_as_one_example_of_the_class_of_its_first():
    rng = np.random.default_rng(3)
    groups = rng.permutation(np.repeat(np.arange(40), 5))
    labels = (groups % 3).astype(np.int64)
    mask = stratified_mask(labels, 0.25, 7, groups)
    drawn = {int(g) for g in groups[mask]}
    assert not drawn & {int(g) for g in groups[~mask]}
    assert [sum(g % 3 == c for g in drawn) for c in range(3)] == [4, 3, 3]
    # What the groups are called does not matter, nor groups of one.
    assert_array_equal(stratified_mask(labels, 0.25, 7, 100 - groups), mask)
    expected = stratified_mask(labels, 0.25, 7)
    assert_array_equal(stratified_mask(labels, 0.25, 7, rng.permutation(200)), expected)


@pytest.mark.parametrize(
    ("positives", "negatives", "name"),
    [(4, 1, "positives"), (0, 1, "positives"), (1, 8, "negatives"), (True, 1, "positives")],
)
def test_more_than_there_are_is_refused(positives, negatives, name):
    with pytest.raises(InputError, match=rf"^{name}: got .* from 1 to"):
        sample_one_class(LABELS, 1, positives, negatives, np.random.default_rng(0))


def test_images_of_some_classes():
    images = ImageSet(np.arange(10.0)[:, None], LABELS, ("a", "b", "c"), "demo")
    chosen = images.of_classes(["c", "a"])
    assert chosen.classes == ("c", "a")
    assert_array_equal(chosen.images[:, 0], np.flatnonzero(LABELS != 1))
    assert [chosen.classes[c] for c in chosen.labels] == ["abc"[c] for c in LABELS if c != 1]
    for wrong in (["a", "d"], [], ["a", "a"]):
        with pytest.raises(DataError, match="demo: classes"):
            images.of_classes(wrong)
