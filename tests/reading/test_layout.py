"""Pieces, lines, words, reading order, skew: each against a plain twin or a case by hand."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from visionshare.datasets.ink import Ink
from visionshare.errors import DataError
from visionshare.reading.components import Piece, find_pieces, joined, typical_height
from visionshare.reading.lines import characters_of, find_lines
from visionshare.reading.page import Box, enclosing_box
from visionshare.reading.reading_order import blocks_of_lines
from visionshare.reading.skew import estimate_skew, rotated, turned_box
from visionshare.reading.words import gaps_between, space_width, split_words


def _piece(left, top, right, bottom):
    shape = bottom - top, right - left
    return Piece(Box(left, top, right, bottom), np.ones(shape, bool), np.full(shape, 255, np.uint8))


def _ink(mask):
    return Ink(mask, np.where(mask, 255, 0).astype(np.uint8), False)


def _texts(lines):
    return [[(p.box.left, p.box.top) for p in line] for line in lines]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), density=st.floats(0.05, 0.5))
def test_pieces_are_those_of_scipy(seed, density):
    mask = np.kron(np.random.default_rng(seed).random((20, 25)) < density, np.ones((7, 7), bool))
    labels, _ = ndimage.label(mask, np.ones((3, 3)))
    boxes = {}
    for number, window in enumerate(ndimage.find_objects(labels), 1):
        pixels = labels[window] == number
        rows, cols = window
        boxes[Box(cols.start, rows.start, cols.stop, rows.stop)] = pixels
    pieces = {p.box: p.mask for p in find_pieces(_ink(mask))}
    assert set(pieces) <= set(boxes)
    # No rule, frame or picture is as small as this.
    missing = [b for b in set(boxes) - set(pieces) if max(b.width, b.height) <= 21]
    assert not missing
    for box, pixels in pieces.items():
        assert (pixels == boxes[box]).all()


def test_rules_frames_and_pictures_are_left_out():
    mask = np.zeros((400, 600), bool)
    for left in range(50, 500, 30):
        mask[100:120, left : left + 15] = True
    letters = len(find_pieces(_ink(mask)))
    mask[200:203, 20:580] = True
    mask[220:380, 20:24] = True
    mask[230:370, 100:300] = True
    assert letters == len(find_pieces(_ink(mask))) == 15


def test_too_many_pieces_are_refused():
    mask = np.kron(np.eye(2)[[0, 1] * 15][:, [0, 1] * 15] > 0, np.ones((7, 7), bool))
    mask[6::7] = mask[:, 6::7] = False
    assert len(find_pieces(_ink(mask), max_pieces=450)) == 450
    with pytest.raises(DataError, match="450 pieces"):
        find_pieces(_ink(mask), max_pieces=449)


def test_dots_do_not_decide_the_height():
    boxes = [Box(0, 0, 5, 20)] * 10 + [Box(0, 0, 7, 7)] * 12 + [Box(0, 0, 2, 2)] * 100
    assert typical_height(boxes) == 20
    assert typical_height([]) == 0.0


def test_joined_pieces_keep_their_ink():
    one, other = _piece(10, 20, 14, 30), _piece(11, 10, 13, 13)
    both = joined([one, other])
    assert both.box == enclosing_box([one.box, other.box]) == Box(10, 10, 14, 30)
    assert both.mask.sum() == 40 + 6
    assert both.darkness[both.mask].min() == 255
    assert joined([one]) is one


def test_lines_and_parts_of_lines():
    row = [_piece(x, 10, x + 12, 30) for x in (0, 20, 50, 200)]
    below = [_piece(x, 45, x + 12, 65) for x in (0, 20)]
    lines = find_lines([*below, *row])
    expected = [[(0, 10), (20, 10), (50, 10)], [(0, 45), (20, 45)], [(200, 10)]]
    assert sorted(_texts(lines)) == sorted(expected)
    assert find_lines([]) == []


def test_large_and_small_letters_have_their_own_lines():
    title = [_piece(x, 0, x + 40, 60) for x in (0, 60)]
    body = [_piece(x, 30, x + 8, 45) for x in (110, 122, 134)]
    assert sorted(map(len, find_lines(title + body))) == [2, 3]


def test_a_dot_and_its_stem_a_zero_and_its_dot_are_one_character():
    stem, dot = _piece(0, 10, 4, 30), _piece(0, 2, 4, 6)
    zero, inner = _piece(10, 8, 24, 30), _piece(15, 16, 19, 21)
    (line,) = find_lines([stem, dot, zero, inner])
    assert [c.box for c in characters_of(line)] == [Box(0, 2, 4, 30), Box(10, 8, 24, 30)]


def test_commas_dashes_and_dust_are_no_characters():
    letters = [_piece(x, 0, x + 12, 20) for x in (0, 30, 60)]
    marks = [_piece(15, 17, 18, 24), _piece(45, 9, 53, 12), _piece(76, 1, 78, 3)]
    (line,) = find_lines(letters + marks)
    assert [c.box for c in characters_of(line)] == [p.box for p in letters]


def test_slanted_letters_stay_apart():
    (line,) = find_lines([_piece(0, 0, 14, 20), _piece(11, 0, 24, 20), _piece(20, 0, 25, 20)])
    assert len(characters_of(line)) == 3


@pytest.mark.parametrize("bar", [(12, 10, 30, 40), (9, 14, 31, 36)])
def test_the_rings_and_the_bar_of_a_percent_sign_are_one(bar):
    """Rings may be as low as a mark, and the bar may begin first."""
    rings = [_piece(10, 10, 20, 22), _piece(23, 28, 33, 40)]
    beside = [_piece(-30, 10, -14, 40), _piece(-12, 10, 4, 40)]
    line = sorted([*beside, *rings, _piece(*bar)], key=lambda p: p.box.left)
    assert [c.box for c in characters_of(line)][2:] == [enclosing_box([p.box for p in line[2:]])]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0, 2), max_size=12))
def test_the_width_of_a_space_has_the_largest_variance_between(gaps):
    """Otsu by brute force, over all cuts of the sorted gaps, unless another step is larger."""
    values = sorted(min(g, 1.5) for g in gaps)
    cuts = []
    for cut in range(1, len(values)):
        low, high = values[:cut], values[cut:]
        apart = np.mean(high) - np.mean(low)
        middle = (low[-1] + high[0]) / 2
        if apart >= 0.25 and 0.2 <= middle <= 1.2:
            cuts.append((len(low) * len(high) * apart**2, high[0] - low[-1], middle))
    expected = 0.5
    if cuts:
        otsu = max(cuts, key=lambda c: c[0])
        other = max(cuts, key=lambda c: c[0] * c[1] ** 0.5)
        expected = (other if other[1] > 1.5 * otsu[1] else otsu)[2]
    assert space_width(np.array(gaps)) == pytest.approx(expected)


def test_a_space_is_wider_than_the_gaps_beside_a_one_and_before_a_j():
    ones = np.array([0.12, 0.2, 0.2, 0.22, 0.22, 0.22, 0.25, 0.31, 0.33, 0.34, 0.56])
    assert 0.34 < space_width(ones) < 0.56
    letters = [0.1] * 10 + [0.17] * 5 + [0.21] * 4 + [0.24, 0.24, 0.28, 0.31]
    hanging = [0.41, 0.55, 0.59, 0.59, 0.62, 0.72]
    assert 0.31 < space_width(np.array(letters + hanging)) < 0.41


def test_words_are_between_spaces():
    assert split_words(np.zeros(0), 0.5) == [slice(0, 1)]
    assert split_words(np.array([0.5, 0.1, 0.9]), 0.5) == [slice(0, 1), slice(1, 3), slice(3, 4)]


def test_a_one_is_as_wide_as_a_digit():
    boxes = [Box(0, 0, 10, 20), Box(16, 0, 20, 20), Box(26, 0, 36, 20)]
    gaps = gaps_between(boxes, "414", 20.0)
    assert (gaps < 0.3).all()
    assert gaps_between(boxes, "4I4", 20.0).tolist() == [0.3, 0.3]
    # Beside a letter it begins a word more often.
    assert gaps_between(boxes, "L14", 20.0)[0] == 0.3


def test_overlapping_boxes_have_negative_gaps_from_the_widest_so_far():
    boxes = [Box(0, 0, 30, 10), Box(5, 0, 8, 10), Box(35, 0, 40, 10)]
    assert gaps_between(boxes, "ABC", 10.0).tolist() == [-2.5, 0.5]


def _line(left, top, right):
    return Box(left, top, right, top + 20)


def test_two_columns_below_a_title():
    boxes = [
        _line(300, 100, 500), _line(0, 130, 200), _line(0, 0, 500), _line(300, 130, 500),
        _line(0, 100, 200), _line(0, 160, 150),
    ]  # fmt: skip
    assert blocks_of_lines(boxes) == [[[2]], [[4], [1], [5]], [[0], [3]]]


def test_numbers_beside_lines_are_no_column():
    names = [_line(0, 0, 100), _line(0, 40, 120), _line(0, 80, 60)]
    amounts = [_line(300, 0, 350), _line(310, 42, 350), _line(300, 80, 350)]
    is_number = [False] * 3 + [True] * 3
    rows = [[0, 3], [1, 4], [2, 5]]
    assert [row for block in blocks_of_lines(names + amounts, is_number) for row in block] == rows
    assert len(blocks_of_lines(names + amounts)) == 2
    # One amount more than there are lines.
    apart = [*names, *amounts, _line(300, 120, 350)]
    assert len(blocks_of_lines(apart, [*is_number, True])) == 2


def test_one_line_in_parts_is_one_line():
    assert blocks_of_lines([_line(300, 2, 400), _line(0, 0, 200)]) == [[[1, 0]]]


def test_paragraphs_are_blocks():
    boxes = [_line(0, y, 300) for y in (0, 30, 120, 150)]
    assert blocks_of_lines(boxes) == [[[0], [1]], [[2], [3]]]
    assert blocks_of_lines([]) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(1, 99), st.integers(1, 50)),
        max_size=25,
    )
)
def test_every_line_is_read_once(sides):
    boxes = [Box(x, y, x + w, y + h) for x, y, w, h in sides]
    order = [i for block in blocks_of_lines(boxes) for row in block for i in row]
    assert sorted(order) == list(range(len(boxes)))


def _stripes(angle):
    import cv2

    page = np.full((400, 600), 255, np.uint8)
    for top in range(60, 340, 40):
        for left in range(60, 520, 24):
            page[top : top + 18, left : left + 14] = 0
    turn = cv2.getRotationMatrix2D((299.5, 199.5), -angle, 1.0)
    return cv2.warpAffine(page, turn, (600, 400), borderValue=255)


@pytest.mark.parametrize("angle", [-5.0, -1.3, 0.0, 0.7, 4.4])
def test_skew_is_found_and_undone(angle):
    page = _stripes(angle)
    estimate = estimate_skew(page < 128)
    assert estimate == pytest.approx(angle, abs=0.15)
    turned, _ = rotated(page, estimate)
    assert abs(estimate_skew(turned < 128)) <= 0.15


def test_boxes_go_back_to_where_they_were():
    page = _stripes(3.0)
    turned, back = rotated(page, 3.0)
    ys, xs = np.nonzero(turned[50:200, 50:300] < 100)
    box = (int(xs.min()) + 50, int(ys.min()) + 50, int(xs.max()) + 51, int(ys.max()) + 51)
    left, top, right, bottom = turned_box(box, back, 600, 400)
    corners = [(x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    points = np.array([[x, y, 1.0] for x, y in corners]) @ back.T
    assert (left, top) == pytest.approx(points.min(axis=0), abs=0.6)
    assert (right, bottom) == pytest.approx(points.max(axis=0), abs=0.6)


def test_boxes_stay_inside_of_the_image():
    _, back = rotated(np.zeros((50, 40), np.uint8), 5.0)
    for a, b in combinations([(0, 0), (40, 0), (0, 50), (40, 50), (39, 49)], 2):
        box = (min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))
        left, top, right, bottom = turned_box(box, back, 40, 50)
        assert 0 <= left < right <= 40
        assert 0 <= top < bottom <= 50


def test_little_ink_is_not_turned():
    mask = np.zeros((50, 50), bool)
    mask[3, 3:20] = True
    assert estimate_skew(mask) == 0.0
