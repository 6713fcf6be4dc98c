"""Ink: thresholds against other implementations, polarity, shadows, and one way to normalize."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from skimage.filters import threshold_sauvola

from visionshare.datasets.fonts import draw_character, matplotlib_fonts
from visionshare.datasets.ink import INNER, SIZE, find_ink, normalize_character, sauvola_threshold
from visionshare.datasets.pages import render_page
from visionshare.errors import DataError, InputError

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
    assert normalize_character(ink.darkness, ink.mask).shape == (SIZE, SIZE)


@pytest.mark.parametrize(
    "gray", [np.zeros((3, 3)), np.zeros((3, 3, 3), np.uint8), np.zeros((0, 3), np.uint8), "page"]
)
def test_ink_of_something_else_is_refused(gray):
    with pytest.raises(InputError, match="gray"):
        find_ink(gray)


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
    assert np.ptp(rows) + 1 == max(1, round(INNER * height / longer))
    assert np.ptp(cols) + 1 == max(1, round(INNER * width / longer))
    assert abs(rows[0] + rows[-1] - (SIZE - 1)) <= 1
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


def test_pages_are_rendered_at_their_size():
    page = render_page(["HHH", "HHH"], FONT, 36, dpi=100, margin=0.2, spacing=2.0)
    rows = np.flatnonzero((page < 128).any(axis=1))
    starts = rows[np.flatnonzero(np.diff(rows, prepend=-9) > 1)]
    # 36 points at 100 dpi are 50 pixels, and DejaVu's capitals are 0.73 of that.
    assert np.diff(starts).tolist() == [100]
    assert rows[-1] - starts[1] + 1 == pytest.approx(0.73 * 50, abs=1.5)
    assert page.shape[0] == 2 * 100 + 2 * 20 + 1
    assert render_page([], FONT).min() == 255


def test_pages_of_no_font_or_size_are_refused(tmp_path):
    (tmp_path / "no.ttf").write_bytes(b"nothing")
    with pytest.raises(DataError, match="font"):
        render_page(["A"], tmp_path / "no.ttf")
    with pytest.raises(InputError, match="points"):
        render_page(["A"], FONT, 0.5)
