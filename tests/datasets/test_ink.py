"""Ink: thresholds against other implementations, polarity, shadows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from skimage.filters import threshold_sauvola

from scripts.reproduce.rendering import render_page
from visionshare.datasets.fonts import matplotlib_fonts
from visionshare.datasets.ink import find_ink, sauvola_threshold
from visionshare.errors import InputError

FONT = next(path for path in matplotlib_fonts() if path.name == "DejaVuSans.ttf")
LINES = ["PAGE 0123456789", "OF SOME LINES"]


def _same(one, other):
    return (one == other).mean()


@pytest.mark.parametrize("window", [3, 15, 41])
def test_sauvola_is_scikit_images(window):
    gray = np.random.default_rng(0).integers(0, 256, (70, 90), np.uint8)
    expected = threshold_sauvola(gray, window, k=0.3, r=100.0)
    assert_allclose(sauvola_threshold(gray, window, 0.3, 100.0), expected, rtol=1e-4)


def test_sauvola_is_its_formula():
    gray = np.random.default_rng(1).integers(0, 256, (9, 8), np.uint8)
    padded = np.pad(gray.astype(float), 2, mode="reflect")
    for y in range(9):
        for x in range(8):
            square = padded[y : y + 5, x : x + 5]
            expected = square.mean() * (1 + 0.2 * (square.std() / 128 - 1))
            assert sauvola_threshold(gray, 5)[y, x] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("window", [0, 4])
def test_sauvola_refuses_windows_without_a_middle(window):
    with pytest.raises(InputError, match="window"):
        sauvola_threshold(np.zeros((5, 5)), window)


def test_ink_of_a_clean_page_is_its_dark_half():
    page = render_page(LINES, FONT, 14)
    ink = find_ink(page)
    assert _same(ink.mask, page < 128) > 0.995
    assert not ink.light_on_dark


def test_polarity_does_not_matter():
    page = render_page(LINES, FONT, 14)
    dark, light = find_ink(page), find_ink(255 - page)
    assert light.light_on_dark
    assert_array_equal(dark.mask, light.mask)
    assert_array_equal(dark.darkness, light.darkness)


def test_shadows_and_noise_change_little():
    page = render_page(LINES, FONT, 14)
    shade = np.linspace(1.0, 0.4, page.shape[1])
    noise = np.random.default_rng(0).normal(0, 4, page.shape)
    shaded = np.clip(page * shade + noise, 0, 255).astype(np.uint8)
    assert _same(find_ink(shaded).mask, page < 128) > 0.985


def test_thick_strokes_are_not_hollow():
    page = np.full((300, 300), 230, np.uint8)
    page[60:240, 120:190] = 20
    assert_array_equal(find_ink(page).mask, page < 100)


@pytest.mark.parametrize("value", [0, 130, 255])
def test_a_blank_page_has_no_ink(value):
    assert not find_ink(np.full((60, 50), value, np.uint8)).mask.any()


def test_noise_on_paper_is_no_ink():
    noise = np.random.default_rng(0).normal(200, 6, (200, 200))
    assert not find_ink(noise.astype(np.uint8)).mask.any()


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    seed=st.integers(0, 1000),
    levels=st.integers(1, 256),
)
def test_any_image_has_some_ink_or_none(shape, seed, levels):
    gray = np.random.default_rng(seed).integers(0, levels, shape).astype(np.uint8)
    ink = find_ink(gray)
    assert ink.mask.shape == ink.darkness.shape == shape
    assert not ink.darkness[ink.mask].size or ink.darkness[ink.mask].min() > 0


@pytest.mark.parametrize(
    "gray", [np.zeros((3, 3)), np.zeros((3, 3, 3), np.uint8), np.zeros((0, 3), np.uint8), "page"]
)
def test_ink_of_something_else_is_refused(gray):
    with pytest.raises(InputError, match="gray"):
        find_ink(gray)


def test_polarity_can_be_given():
    # A bar that fills most of the picture looks like paper.
    picture = np.full((30, 30), 20, np.uint8)
    picture[:, :4] = picture[:, -4:] = 230
    assert_array_equal(find_ink(picture, light_on_dark=False).mask, picture < 100)
    assert_array_equal(find_ink(picture, light_on_dark=True).mask, picture > 100)
