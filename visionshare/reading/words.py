"""Words: how wide a gap on a line is a space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visionshare.reading.page import Box

# In heights of a character: where there are no two kinds of gaps, and from where to where.
_USUAL = 0.5
_MIN = 0.2
_MAX = 1.2
# Of the means of spaces and of gaps between letters.
_MIN_DIFFERENCE = 0.25
_LARGER_STEP = 1.5
# A 1 is widened, not towards letters, by this fraction of what it is narrower than other digits.
_WIDENING_OF_ONE = 0.35


def gaps_between(boxes: Sequence[Box], texts: Sequence[str], height: float) -> np.ndarray:
    """Return the gaps between neighbors on a line, in heights of a character."""
    # A 1 counts nearly as wide as the line's other digits: in most fonts they stand at equal
    # distances, but in some a 1 is narrower.
    lefts, rights = np.array([(b.left, b.right) for b in boxes], np.float64).T
    widths = rights - lefts
    ones = np.array([text == "1" for text in texts])
    digits = np.array([text.isdigit() for text in texts]) & ~ones
    if ones.any():
        usual = np.median(widths[digits]) if digits.any() else 0.6 * height
        more = np.maximum(usual - widths, 0.0) * _WIDENING_OF_ONE * ones
        letters = np.array([text.isalpha() for text in texts])
        lefts[1:] -= more[1:] * ~letters[:-1]
        rights[:-1] += more[:-1] * ~letters[1:]
    return (lefts[1:] - np.maximum.accumulate(rights)[:-1]) / height


def space_width(gaps: np.ndarray) -> float:
    """Return the width from which on a gap is a space, in heights of a character."""
    # Otsu's threshold, the one with the largest variance between its two sides, if the sides are
    # far enough apart; the usual 0.5 otherwise. Where spaces are few, that is among the gaps of
    # letters: a step that is clearly larger is taken instead.
    values = np.sort(np.minimum(np.asarray(gaps, np.float64), 1.5))
    n_low = np.arange(1, len(values))
    n_high = len(values) - n_low
    sums = np.cumsum(values)
    apart = (sums[-1:] - sums[:-1]) / n_high - sums[:-1] / n_low
    middles = (values[:-1] + values[1:]) / 2
    allowed = (middles >= _MIN) & (middles <= _MAX) & (apart >= _MIN_DIFFERENCE)
    if not allowed.any():
        return _USUAL
    between = np.where(allowed, n_low * n_high * apart**2, -1.0)
    steps = np.diff(values)
    cut = int(np.argmax(between))
    other = int(np.argmax(between * np.sqrt(steps)))
    return float(middles[other if steps[other] > _LARGER_STEP * steps[cut] else cut])


def split_words(gaps: np.ndarray, width: float) -> list[slice]:
    """Return the slices of the words on a line of len(gaps) + 1 characters."""
    ends = [*(np.flatnonzero(np.asarray(gaps) >= width) + 1).tolist(), len(gaps) + 1]
    return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
