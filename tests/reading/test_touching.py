"""Cuts of touching letters and the joining of broken ones, with recognizers made by hand."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visionshare.reading.components import Piece
from visionshare.reading.context import by_descent, by_height, by_neighbors, same_shape
from visionshare.reading.page import Box
from visionshare.reading.touching import (
    Recognition,
    best_cuts,
    cut_columns,
    join_broken,
    part_of,
    split_touching,
)


def _piece(mask, left=0, top=0):
    mask = np.asarray(mask, bool)
    box = Box(left, top, left + mask.shape[1], top + mask.shape[0])
    return Piece(box, mask, np.where(mask, 255, 0).astype(np.uint8))


def _bars(*widths, gap=3, height=20):
    """Return bars of these widths that a thin foot joins."""
    mask = np.zeros((height, sum(widths) + gap * (len(widths) - 1)), bool)
    mask[-2:] = True
    left = 0
    for width in widths:
        mask[:, left : left + width] = True
        left += width + gap
    return mask


@settings(max_examples=80, deadline=None)
@given(n=st.integers(2, 6), seed=st.integers(0, 1000))
def test_the_best_path_is_the_best_of_all(n, seed):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n, n)) < 0.2, -np.inf, -rng.random((n, n)))
    values[0, n - 1] = -2.0
    best, expected = -np.inf, []
    for k in range(n - 1):
        for inner in combinations(range(1, n - 1), k):
            path = [0, *inner, n - 1]
            total = sum(values[a, b] for a, b in pairwise(path))
            if total > best:
                best, expected = total, list(inner)
    assert best_cuts(values) == expected


def test_no_path_is_no_cut():
    assert best_cuts(np.full((3, 3), -np.inf)) == []


def test_cuts_are_where_little_ink_is():
    assert cut_columns(_bars(8, 8, 8)) == [9, 20]
    assert len(cut_columns(_bars(8, 8, 8), max_cuts=1)) == 1
    assert cut_columns(np.ones((20, 30), bool)) == []
    assert cut_columns(np.ones((20, 3), bool)) == []


def test_parts_lose_what_the_cut_left_of_others():
    mask = np.zeros((20, 20), bool)
    mask[:, 2:8] = True
    mask[19, 10:12] = True
    part = part_of(_piece(mask, left=100, top=50), 0, 15)
    assert part.box == Box(102, 50, 108, 70)
    assert part.mask.all()
    assert part_of(_piece(mask), 12, 15) is None


def _by_width(table):
    """Return a recognizer with the probabilities that this table has of widths."""

    def recognize(pieces):
        return _first(*(table.get(p.box.width, 0.01) for p in pieces))

    return recognize


def _first(*probabilities):
    return Recognition(np.array(probabilities), np.zeros(len(probabilities), bool))


def test_touching_letters_are_cut_where_the_parts_are_most_probable():
    piece = _piece(_bars(8, 8, 8))
    recognize = _by_width({8: 0.9, 9: 0.9, 10: 0.9, 11: 0.9, 12: 0.9})
    parts = split_touching([piece], _first(0.3), 20, recognize)[0]
    assert [p.box.left for p in parts] == [0, 9, 20]
    assert parts[-1].box.right == piece.box.right


def test_what_is_certain_and_not_wide_is_left_alone():
    def never(pieces):
        raise AssertionError("asked about a certain letter")

    piece = _piece(_bars(8, 8))
    assert split_touching([piece], _first(0.99), 20, never) == [[piece]]


def test_a_whole_letter_beats_improbable_halves():
    piece = _piece(_bars(8, 8))
    assert split_touching([piece], _first(0.8), 20, _by_width({9: 0.7, 10: 0.7})) == [[piece]]


def test_strokes_of_a_broken_letter_are_joined():
    left, right, far = _piece(np.ones((20, 5))), _piece(np.ones((20, 6)), 6), _piece(
        np.ones((20, 9)), 40
    )  # fmt: skip
    pieces, recognize = [left, right, far], _by_width({12: 0.95})
    assert join_broken(pieces, _first(0.5, 0.4, 0.3), 20, recognize) == [[0, 1], [2]]
    assert join_broken(pieces, _first(0.99, 0.99, 0.3), 20, recognize) == [[0], [1], [2]]
    seldom = _by_width({12: 0.3})
    assert join_broken(pieces, _first(0.5, 0.4, 0.3), 20, seldom) == [[0], [1], [2]]


CLASSES = ["0", "1", "7", "I", "O", "T", "l", "o"]


def _probabilities(*pairs):
    rows = np.full((len(pairs), len(CLASSES)), 1e-6)
    for row, (text, probability, other) in zip(rows, pairs, strict=True):
        row[CLASSES.index(other)] = 1 - probability
        row[CLASSES.index(text)] = probability
    return rows


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([("7", 1, "7"), ("O", 0.9, "0"), ("I", 0.8, "1")], "701"),
        ([("T", 1, "T"), ("0", 0.9, "O"), ("1", 0.8, "I")], "TOI"),
        ([("T", 1, "T"), ("7", 1, "7"), ("0", 0.9, "O")], "T70"),
        ([("0", 0.6, "O"), ("1", 0.6, "I")], "01"),
        ([("T", 1, "T"), ("0", 0.999, "O")], "T0"),
    ],
)
def test_digits_stay_among_digits(pairs, text):
    assert "".join(CLASSES[c] for c in by_neighbors(_probabilities(*pairs), CLASSES)) == text


@pytest.mark.parametrize(
    ("read", "text"),
    [("lNE", "INE"), ("NlE", "NIE"), ("bIue", "blue"), ("It", "It"), ("l", "l"), ("OIl", "OIl")],
)
def test_capitals_stay_among_capitals(read, text):
    classes = list("INEbuetlO")
    probabilities = np.eye(len(classes))[[classes.index(c) for c in read]]
    assert "".join(classes[c] for c in by_neighbors(probabilities, classes)) == text


def _boxes(*heights):
    return [Box(0, 0, 10, height) for height in heights]


def test_small_letters_and_capitals_are_told_apart_by_height():
    classes = list("Aaos0OSx")
    word = [classes.index(c) for c in "AOSxa"]
    labels = by_height(np.array(word), _boxes(30, 21, 30, 29, 20), classes)
    # Of x there is no capital among the classes: it stays.
    assert [classes[c] for c in labels] == list("AoSxa")
    capitals = list("AOS")
    assert by_height(np.array([0, 1, 2]), _boxes(30, 15, 20), capitals).tolist() == [0, 1, 2]


def test_only_what_hangs_is_a_j():
    rows = np.array([[0.9, 0.1, 0], [0.9, 0.1, 0], [1.0, 0, 0], [0, 0, 1.0], [0, 0, 1.0]])
    boxes = _boxes(20, 25, 25, 20, 20)
    labels = by_descent(np.argmax(rows, axis=1), rows, boxes, ["I", "J", "H"])
    assert labels.tolist() == [0, 1, 0, 2, 2]


def test_classes_of_one_shape():
    one = same_shape(list("0oOcCx1IlA"))
    groups = {frozenset(np.flatnonzero(row)) for row in one}
    assert groups == {frozenset(g) for g in ({0, 1, 2}, {3, 4}, {5}, {6, 7, 8}, {9})}
