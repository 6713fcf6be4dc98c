"""The one normalizer of characters, and that pictures, pages and fonts come through it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from visionshare.datasets import Preprocessing
from visionshare.datasets.characters import ink_alone, normalize_character, without_specks
from visionshare.datasets.fonts import draw_character, matplotlib_fonts
from visionshare.datasets.ink import find_ink
from visionshare.datasets.preprocessing import PRINTED, PRINTED_SIZE
from visionshare.errors import InputError
from visionshare.recipes import load_recipe

FONT = next(path for path in matplotlib_fonts() if path.name == "DejaVuSans.ttf")


def _drawn(points, character="R"):
    from PIL import ImageFont

    darkness = 255 - draw_character(ImageFont.truetype(str(FONT), points), character)
    return normalize_character(darkness, darkness > 127)


def test_size_does_not_matter():
    small, large = _drawn(40).astype(float), _drawn(160).astype(float)
    assert np.corrcoef(small.ravel(), large.ravel())[0, 1] > 0.97


@pytest.mark.parametrize(("height", "width"), [(50, 10), (10, 50), (6, 3), (1, 1), (200, 200)])
def test_the_longer_side_fills_the_picture_and_proportions_stay(height, width):
    mask = np.pad(np.ones((height, width), bool), 7)
    picture = normalize_character(np.where(mask, 180, 0).astype(np.uint8), mask)
    rows, cols = np.flatnonzero(picture.any(axis=1)), np.flatnonzero(picture.any(axis=0))
    longer = max(height, width)
    assert np.ptp(rows) + 1 == max(1, round(22 * height / longer))
    assert np.ptp(cols) + 1 == max(1, round(22 * width / longer))
    assert abs(rows[0] + rows[-1] - 27) <= 1
    assert picture.max() == 255


def test_neighbors_inside_of_the_box_are_left_out():
    mask = np.zeros((40, 40), bool)
    mask[5:35, 5:9] = mask[31:35, 5:30] = True
    darkness = np.where(mask, 255, 0).astype(np.uint8)
    alone = normalize_character(darkness, mask)
    darkness[5:20, 20:30] = 255
    assert_array_equal(normalize_character(darkness, mask), alone)


def test_no_ink_is_a_black_picture():
    assert not normalize_character(np.zeros((5, 5), np.uint8), np.zeros((5, 5), bool)).any()


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    seed=st.integers(0, 1000),
    margin=st.integers(0, 9),
    center=st.sampled_from(["box", "mass"]),
)
def test_any_ink_stays_inside_of_its_margin(shape, seed, margin, center):
    rng = np.random.default_rng(seed)
    darkness, mask = rng.integers(0, 256, shape).astype(np.uint8), rng.random(shape) < 0.1
    made = normalize_character(darkness, mask, (20, 28), margin, center)
    assert (made.shape, made.dtype) == ((20, 28), np.uint8)
    rows, cols = (np.flatnonzero(made.any(axis=axis)) for axis in (1, 0))
    assert len(rows) == 0 or np.ptp(rows) < 20 - 2 * margin
    assert len(cols) == 0 or np.ptp(cols) < 28 - 2 * margin


def test_specks_are_pieces_many_times_smaller_than_the_largest():
    mask = np.zeros((30, 30), bool)
    mask[2:12, 2:12] = mask[20, 20:22] = mask[25, 25] = True
    assert without_specks(mask).sum() == 102
    assert without_specks(mask, 100).sum() == 103
    assert_array_equal(without_specks(mask[:12]), mask[:12])


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("character", list("AIJQ08M"))
def test_a_picture_is_prepared_as_ink_on_a_page_is(character, dark):
    from PIL import ImageFont

    picture = draw_character(ImageFont.truetype(str(FONT), 50), character, margin=8)
    picture = 20 + (picture // 3 if dark else (255 - picture) // 2)
    picture = picture.astype(np.uint8)
    ink = find_ink(picture)
    assert ink.light_on_dark != dark
    expected = normalize_character(ink.darkness, ink.mask)
    assert_array_equal(PRINTED.apply(picture, PRINTED_SIZE), expected)
    assert_array_equal(PRINTED.apply_to_ink(ink.darkness, ink.mask, PRINTED_SIZE), expected)
    color = PRINTED.apply(np.repeat(picture[..., None], 3, axis=2), PRINTED_SIZE)
    assert_array_equal(color, np.repeat(expected[..., None], 3, axis=2))
    assert_array_equal(PRINTED.apply(picture), ink_alone(ink.darkness, ink.mask))


def test_ink_of_a_page_is_given_to_other_steps_as_a_picture():
    """A classifier of MNIST prepares ink on a page as it prepares a picture of that ink."""
    steps = Preprocessing("automatic", contrast=True, crop=True, fit="box", margin=4, center="mass")
    darkness = np.zeros((40, 30), np.uint8)
    darkness[5:35, 8:13] = darkness[31:35, 8:24] = 255
    expected = steps.apply(255 - darkness, (28, 28))
    assert_array_equal(steps.apply_to_ink(darkness, darkness > 127, (28, 28)), expected)
    with pytest.raises(InputError, match=r"^polarity: got"):
        Preprocessing().apply_to_ink(darkness, darkness > 127, (28, 28))
    with pytest.raises(InputError, match=r"^margin: got"):
        PRINTED.apply_to_ink(darkness, darkness > 127, (6, 6))


def test_the_recipe_of_readers_says_how_its_characters_were_prepared():
    assert Preprocessing(**load_recipe("ocr").preprocessing.model_dump()) == PRINTED


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"fit": "character"}, "fit"),
        ({"fit": "character", "polarity": "automatic", "crop": True}, "crop"),
        ({"fit": "character", "polarity": "automatic", "contrast": True}, "contrast"),
    ],
)
def test_steps_that_contradict_a_character_are_named(values, name):
    with pytest.raises(InputError, match=f"^{name}: got"):
        Preprocessing(**values)


def test_the_steps_are_told_in_words():
    told = " ".join(PRINTED.describe())
    assert "Sauvola" in told
    assert "3 pixel(s)" in told
