"""Located ink: the largest connected ink inside, and what belongs to it."""

import numpy as np
import pytest

from visionshare.datasets import Preprocessing
from visionshare.datasets.locating import MOST_RUNS, find
from visionshare.errors import InputError

THRESHOLD = round(0.3 * 2**16)


def paper_with(*boxes):
    """Return values light on dark, with boxes of ink, and a value for each."""
    values = np.full((60, 80), 20)
    for top, bottom, left, right, value in boxes:
        values[top:bottom, left:right] = value
    return values


DIGIT = (20, 40, 30, 34, 200)


@pytest.mark.parametrize(
    ("more", "box"),
    [
        ([], (20, 40, 30, 34)),
        # A speck far away, one that is near and too small, and a piece that belongs to it.
        ([(5, 7, 70, 72, 250)], (20, 40, 30, 34)),
        ([(22, 23, 36, 37, 200)], (20, 40, 30, 34)),
        ([(20, 26, 37, 44, 200)], (20, 40, 30, 44)),
        # What the border cuts, even where it is larger or near; corners connect.
        ([(0, 60, 0, 20, 180)], (20, 40, 30, 34)),
        ([(10, 60, 36, 80, 180)], (20, 40, 30, 34)),
        ([(40, 44, 34, 38, 200)], (20, 44, 30, 38)),
    ],
)
def test_boxes(more, box):
    values = paper_with(DIGIT, *more)
    found = find(values, 2 * 20, int(values.max()), THRESHOLD)
    assert found.box == box
    assert found.mask[25, 31]
    assert not found.mask[0].any()
    assert (found.paper, found.high) == (40, 200)


def test_ink_in_a_shadow_takes_a_higher_threshold():
    values = paper_with((0, 60, 0, 40, 90), DIGIT)
    found = find(values, 2 * 20, 200, THRESHOLD)
    assert found.box == (20, 40, 30, 34)
    assert found.paper > 40


@pytest.mark.parametrize(
    "boxes",
    [[], [(5, 7, 70, 72, 250)], [(0, 30, 30, 34, 200)], [(20, 40, 30, 34, 40)]],
    ids=["paper", "speck", "cut", "faint"],
)
def test_nothing_is_there(boxes):
    values = paper_with(*boxes)
    assert find(values, 2 * 20, int(values.max()), THRESHOLD) is None


def test_noise_is_nothing():
    values = np.zeros((60, 80), int)
    values[1:-1:2, 1:-1:2] = 200
    assert values.any(axis=1).sum() * 39 > MOST_RUNS
    assert find(values, 0, 200, THRESHOLD) is None


def test_only_whole_numbers_locate():
    with pytest.raises(InputError, match="arithmetic"):
        Preprocessing("automatic", crop="located")
    steps = Preprocessing("automatic", crop="located", arithmetic="whole")
    assert "largest connected ink" in " ".join(steps.describe())
    assert Preprocessing.from_values(steps.to_values()) == steps
    assert not steps.apply(np.full((30, 30), 200, np.uint8), (8, 8)).any()
