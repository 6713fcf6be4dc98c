"""Overlays show what an explanation says."""

import numpy as np
import pytest

from visionshare import CompactClassifier, Pixels
from visionshare.classifier import explain
from visionshare.errors import InputError
from visionshare.reports.overlays import overlay_picture

WEIGHTS = np.zeros((2, 16))
WEIGHTS[0, 0], WEIGHTS[1, 15] = 4.0, 2.0
MODEL = CompactClassifier(
    Pixels().fit(np.zeros((1, 4, 4))), WEIGHTS, np.zeros(2), np.array(["a", "b"])
)
IMAGE = np.ones((4, 4))
SAID = explain(MODEL, IMAGE)
PICTURE = np.full((4, 4), 255, np.uint8)


def _dominant(pixels):
    red, _, blue = pixels.reshape(-1, 3).astype(int).mean(axis=0)
    return "red" if red > blue + 20 else "blue" if blue > red + 20 else "none"


@pytest.mark.parametrize(("name", "colors"), [("a", ("red", "blue")), ("b", ("blue", "red"))])
def test_what_speaks_for_a_class_is_red(name, colors):
    drawn = overlay_picture(PICTURE, SAID, name, side=200)
    assert drawn.shape[0] == 200
    relief = drawn[:, -200:]
    assert _dominant(relief[:50, :50]) == colors[0]
    assert _dominant(relief[150:, 150:]) == colors[1]
    assert _dominant(relief[80:120, 80:120]) == "none"
    boxes = drawn[:, :200]
    assert _dominant(boxes[48:50, :50]) == colors[0]
    assert (boxes[80:120, 80:120] == 255).all()


def test_numbers_of_boxes_do_not_cover_each_other():
    """Eight boxes in one place: eight numbers beside each other."""
    weights = np.zeros((2, 16))
    weights[0] = np.arange(1, 17)
    family = Pixels().fit(np.zeros((1, 4, 4)))
    crowded = explain(CompactClassifier(family, weights, np.zeros(2), np.arange(2)), IMAGE)
    same = crowded.placed(np.tile([0, 3, 0, 3], (16, 1)), (4, 4))
    side, label = 280, 10
    one, eight = (overlay_picture(PICTURE, same, 0, top=n, side=side)[:, :side] for n in (1, 8))
    changed = (one != eight).any(axis=2)
    # The first number stays where it is; seven more follow on the same line.
    assert not changed[:label, :label].any()
    for n in range(1, 8):
        assert changed[2 : label - 2, n * label + 2 : (n + 1) * label - 2].any()
    assert not changed[30:, : 3 * side // 4 - 10].any()


def test_a_picture_of_another_size_is_refused():
    with pytest.raises(InputError, match=r"^picture"):
        overlay_picture(PICTURE[:3], SAID)
