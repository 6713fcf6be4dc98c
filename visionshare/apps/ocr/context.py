"""Context: what a character's shape leaves open, its line and its word may say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["alike", "by_company", "by_descent", "by_height"]

# Digits and letters of one shape in many fonts.
_LIKE = (("0", "O"), ("1", "I"), ("0", "o"), ("1", "l"))
# Letters whose small form is the capital, smaller.
_SAME_SHAPE = "COSUVWXZ"
# The other reading must have at least this share of the first one's probability.
_LEAST_SHARE = 0.02


def alike(classes: Sequence[str]) -> np.ndarray:
    """Return which classes are of one shape, (k, k): 0 and O, 1 and I, capitals and small letters.

    Examples
    --------
    >>> alike(["0", "A", "O"]).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    shape = {"0": "O", "o": "O", "1": "I", "l": "I", **{c.lower(): c for c in _SAME_SHAPE}}
    shapes = np.array([shape.get(text, text) for text in classes])
    found: np.ndarray = (shapes[:, None] == shapes).astype(np.float64)
    return found


def by_company(shares: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Return the classes' numbers of a word's characters; digits stay among digits.

    Where 0 or O, 1 or I is open, and all other characters of the word are of one kind, it is of
    that kind too. A word of nothing but such characters is left as it is.

    Parameters
    ----------
    shares : ndarray of shape (n, k)
        Probabilities of the characters' classes.
    classes : sequence of str

    Examples
    --------
    >>> shares = np.array([[0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    >>> by_company(shares, ["0", "O", "7"]).tolist(), by_company(shares, ["0", "O", "T"]).tolist()
    ([0, 2], [1, 2])
    """
    found: np.ndarray = np.argmax(shares, axis=1)
    texts = [classes[c] for c in found]
    open_ones = {text for pair in _LIKE for text in pair}
    kinds = {text.isdigit() for text in texts if text not in open_ones}
    if len(kinds) != 1:
        return found
    digits = kinds.pop()
    index = {text: c for c, text in enumerate(classes)}
    for i, text in enumerate(texts):
        others = [b if text == a else a for a, b in _LIKE if text in (a, b)]
        others = [o for o in others if o in index and o.isdigit() == digits]
        if text not in open_ones or text.isdigit() == digits or not others:
            continue
        best = max(others, key=lambda other: shares[i, index[other]])
        if shares[i, index[best]] >= _LEAST_SHARE * shares[i, found[i]]:
            found[i] = index[best]
    return found


def by_height(numbers: np.ndarray, heights: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Return the classes' numbers with capitals and small letters told apart by their height.

    Of letters whose small form is the capital made smaller, those of the height of the line's
    certain capitals, digits and long letters are capitals, those of its certain short letters
    are small. A line without one of the two kinds is judged by the other.

    Parameters
    ----------
    numbers : ndarray of int, shape (n,)
        Of a line's characters.
    heights : ndarray of shape (n,)
        Of their boxes, in pixels.
    classes : sequence of str

    Examples
    --------
    >>> classes = ["T", "a", "S", "s"]
    >>> numbers = by_height(np.array([0, 1, 2, 3]), np.array([30, 20, 21, 29]), classes)
    >>> [classes[c] for c in numbers]
    ['T', 'a', 's', 'S']
    """
    index = {text: c for c, text in enumerate(classes)}
    texts = [classes[c] for c in numbers]
    pairs = {a for a in _SAME_SHAPE if a in index and a.lower() in index}
    if not pairs:
        return numbers
    tall = [h for h, t in zip(heights, texts, strict=True) if _is_tall(t)]
    short = [h for h, t in zip(heights, texts, strict=True) if t in set("aemnr")]
    if not tall and not short:
        return numbers
    top = float(np.median(tall)) if tall else float(np.median(short)) / 0.7
    low = float(np.median(short)) if short else 0.7 * top
    found = numbers.copy()
    for i, text in enumerate(texts):
        if text.upper() not in pairs:
            continue
        capital = heights[i] > (top + low) / 2
        found[i] = index[text.upper() if capital else text.lower()]
    return found


def by_descent(
    numbers: np.ndarray,
    shares: np.ndarray,
    heights: np.ndarray,
    bottoms: np.ndarray,
    classes: Sequence[str],
) -> np.ndarray:
    """Return the classes' numbers with every I that hangs below its line made a J.

    In fonts whose J hangs below the line, its shape is that of an I with a small hook.

    Parameters
    ----------
    numbers : ndarray of int, shape (n,)
        Of a line's characters.
    shares : ndarray of shape (n, k)
        Probabilities of their classes.
    heights, bottoms : ndarray of shape (n,)
        Of their boxes, in pixels.
    classes : sequence of str

    Examples
    --------
    >>> shares = np.array([[0.0, 0.0, 1.0], [0.9, 0.1, 0.0], [0.9, 0.1, 0.0]])
    >>> heights, bottoms = np.array([20, 20, 26]), np.array([20, 20, 26])
    >>> by_descent(np.array([2, 0, 0]), shares, heights, bottoms, ["I", "J", "H"]).tolist()
    [2, 0, 1]
    """
    index = {text: c for c, text in enumerate(classes)}
    if "I" not in index or "J" not in index:
        return numbers
    below = bottoms - np.median(bottoms) > 0.12 * np.median(heights)
    hangs = below & (numbers == index["I"]) & (shares[:, index["J"]] >= 1e-4)
    found: np.ndarray = np.where(hangs, index["J"], numbers)
    return found


def _is_tall(text: str) -> bool:
    if text in "0O1Il":
        return False
    certain = text.isdigit() or (text.isupper() and text not in _SAME_SHAPE)
    return certain or text in set("bdfhk")
