"""Context: what a character's shape leaves open is decided by its line and its word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visionshare.reading.page import Box

# Digits and letters of one shape in many fonts.
_DIGITS_LIKE_LETTERS = (("0", "O"), ("1", "I"), ("0", "o"), ("1", "l"))
# Letters whose small form is the capital, smaller.
_CAPITALS_LIKE_SMALL = "COSUVWXZ"
# The other class must have at least this fraction of the first one's probability: of a letter, and
# of a digit among digits.
_MIN_RATIO = 0.02
_MIN_RATIO_OF_DIGITS = 1e-4
# An I is made a J from this probability of J on.
_MIN_PROBABILITY_OF_J = 1e-4


def same_shape(classes: Sequence[str]) -> np.ndarray:
    """Return which classes are of one shape, (k, k)."""
    # 0 and O, 1 and I, capitals and small letters.
    small = {c.lower(): c for c in _CAPITALS_LIKE_SMALL}
    shape_of = {"0": "O", "o": "O", "1": "I", "l": "I", **small}
    shapes = np.array([shape_of.get(text, text) for text in classes])
    return (shapes[:, None] == shapes).astype(np.float64)


def by_neighbors(probabilities: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Return the labels of a word's characters; digits and capitals stay among their kind."""
    return _of_one_case(_of_one_kind(probabilities, classes), classes)


def _of_one_case(labels: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Return labels where an l among capitals is an I, and an I among small letters an l."""
    index = {text: c for c, text in enumerate(classes)}
    texts = [classes[c] for c in labels]
    sure = [
        t for t in texts if t.isalpha() and t not in "Il" and t.upper() not in _CAPITALS_LIKE_SMALL
    ]
    if not sure or "I" not in index or "l" not in index:
        return labels
    for i, text in enumerate(texts):
        if text == "l" and all(map(str.isupper, sure)):
            labels[i] = index["I"]
        elif text == "I" and i > 0 and all(map(str.islower, sure)):
            labels[i] = index["l"]
    return labels


def _of_one_kind(probabilities: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Return the labels of a word's characters; digits stay among digits."""
    # Where 0 or O, 1 or I is open, and all other characters of the word are of one kind, it is of
    # that kind too. A word of such characters alone is a number if one of them looks like a
    # digit.
    labels: np.ndarray = np.argmax(probabilities, axis=1)
    texts = [classes[c] for c in labels]
    open_texts = {text for pair in _DIGITS_LIKE_LETTERS for text in pair}
    # Punctuation says nothing of its word.
    kinds = {text.isdigit() for text in texts if text not in open_texts and text.isalnum()}
    if not kinds and len(texts) > 1 and any(text.isdigit() for text in texts):
        kinds = {True}
    if len(kinds) != 1:
        return labels
    digits = kinds.pop()
    index = {text: c for c, text in enumerate(classes)}
    for i, text in enumerate(texts):
        others = [b if text == a else a for a, b in _DIGITS_LIKE_LETTERS if text in (a, b)]
        others = [o for o in others if o in index and o.isdigit() == digits]
        if text not in open_texts or text.isdigit() == digits or not others:
            continue
        row = probabilities[i]
        best = max((index[other] for other in others), key=lambda c: row[c])
        least = _MIN_RATIO_OF_DIGITS if digits else _MIN_RATIO
        if row[best] >= least * row[labels[i]]:
            labels[i] = best
    return labels


def by_height(labels: np.ndarray, boxes: Sequence[Box], classes: Sequence[str]) -> np.ndarray:
    """Return labels with capitals and small letters told apart by their height."""
    # Of letters whose small form is the capital made smaller, those of the height of the line's
    # certain capitals, digits and long letters are capitals, those of its certain short letters
    # are small. On a line with one of the two kinds alone, that one decides.
    index = {text: c for c, text in enumerate(classes)}
    texts = [classes[c] for c in labels]
    pairs = {a for a in _CAPITALS_LIKE_SMALL if a in index and a.lower() in index}
    if not pairs:
        return labels
    tall = [box.height for box, t in zip(boxes, texts, strict=True) if _is_tall(t)]
    short = [box.height for box, t in zip(boxes, texts, strict=True) if t in set("aemnr")]
    if not tall and not short:
        return labels
    top = float(np.median(tall)) if tall else float(np.median(short)) / 0.7
    low = float(np.median(short)) if short else 0.7 * top
    labels = labels.copy()
    for i, (box, text) in enumerate(zip(boxes, texts, strict=True)):
        if text.upper() in pairs:
            is_capital = box.height > (top + low) / 2
            labels[i] = index[text.upper() if is_capital else text.lower()]
    return labels


def by_descent(
    labels: np.ndarray, probabilities: np.ndarray, boxes: Sequence[Box], classes: Sequence[str]
) -> np.ndarray:
    """Return labels with every I that hangs below its line made a J."""
    # In fonts whose J hangs below the line, its shape is that of an I with a small hook.
    index = {text: c for c, text in enumerate(classes)}
    if "I" not in index or "J" not in index:
        return labels
    heights = np.array([box.height for box in boxes])
    bottoms = np.array([box.bottom for box in boxes])
    below = bottoms - np.median(bottoms) > 0.12 * np.median(heights)
    possible = probabilities[:, index["J"]] >= _MIN_PROBABILITY_OF_J
    is_j = below & (labels == index["I"]) & possible
    return np.where(is_j, index["J"], labels)


def _is_tall(text: str) -> bool:
    if text in "0O1Il":
        return False
    certain = text.isdigit() or (text.isupper() and text not in _CAPITALS_LIKE_SMALL)
    return certain or text in set("bdfhk")
