"""A page from its image to its text, with a classifier of single characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from visionshare.apps.ocr.components import Piece, find_pieces, joined
from visionshare.apps.ocr.context import alike, by_company, by_descent, by_height
from visionshare.apps.ocr.lines import characters_of, find_lines
from visionshare.apps.ocr.page import Block, Box, Character, Line, Page, Word, around
from visionshare.apps.ocr.reading_order import blocks_of_lines
from visionshare.apps.ocr.skew import estimate_skew, rotated, turned_box
from visionshare.apps.ocr.touching import mended, split_touching
from visionshare.apps.ocr.words import gaps_between, space_width, split_words
from visionshare.classifier import CompactClassifier
from visionshare.datasets.ink import SIZE, find_ink, normalize_character
from visionshare.errors import InputError
from visionshare.resources import resolve_jobs, thread_limit

__all__ = ["MOST_PIXELS", "check_reader", "read_page"]

MOST_PIXELS = 1 << 26
# Below this turn, in degrees, a line of the usual length stays within its own height.
_LEAST_TURN = 0.2


def read_page(
    classifier: CompactClassifier,
    page: np.ndarray,
    deskew: bool = True,
    context: bool = True,
    n_jobs: int = 1,
) -> Page:
    """Read a page of print: its characters in words, lines and blocks, with their boxes.

    Ink is told from paper, lines are leveled, pieces of ink are gathered to lines and
    characters, touching letters are cut and broken ones joined where the classifier is surer of
    the result. Punctuation is left out: the classes are digits and letters.

    Parameters
    ----------
    classifier : CompactClassifier
        Of single characters, 28×28 in gray, as the pipeline ``ocr`` learns it.
    page : ndarray of uint8, shape (H, W)
        Dark on light, or light on dark.
    deskew : bool, default True
        Turn a page whose lines are not level.
    context : bool, default True
        Let the line's height and the word's other characters decide where shapes are alike:
        small letters and capitals, 0 and O, 1 and I.
    n_jobs : int, default 1
        Threads; the text does not depend on it.

    Returns
    -------
    Page
        Boxes are places on the image as it was given. A page without text has no blocks.

    Raises
    ------
    InputError
        If the classifier is of other images, or the page is no gray image or too large.
    DataError
        If the page has too many pieces of ink to be print.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 28, 28), np.uint8)).take([400])
    >>> weights = np.array([[0.0], [1.0]], np.float32)
    >>> model = CompactClassifier(family, weights, np.zeros(2), np.array(["I", "L"]))
    >>> read_page(model, np.full((50, 50), 255, np.uint8)).text
    ''
    """
    check_reader(classifier)
    _check_page(page)
    reader = _Reader(classifier, context, resolve_jobs(n_jobs))
    height, width = page.shape
    ink = find_ink(page)
    angle, back = 0.0, None
    if deskew:
        angle = estimate_skew(ink.mask)
    if abs(angle) >= _LEAST_TURN:
        turned, back = rotated(page, angle)
        ink = find_ink(turned)
    else:
        angle = 0.0
    lines = [held for line in find_lines(find_pieces(ink)) if (held := characters_of(line))]
    order = blocks_of_lines([around([c.box for c in line]) for line in lines])
    blocks = [[[c for i in row for c in lines[i]] for row in block] for block in order]
    # Limiting threads takes long: once for the page, not for each piece that is judged.
    with thread_limit(reader.threads):
        found = reader.read(blocks)
    if back is not None:
        found = tuple(_turned(block, back, width, height) for block in found)
    return Page(width, height, found, angle, ink.light_on_dark)


def check_reader(classifier: CompactClassifier) -> None:
    """Raise an InputError unless the classifier is of pictures of single characters."""
    if classifier.image_shape != (SIZE, SIZE):
        given = f"one of images of shape {classifier.image_shape}"
        raise InputError(
            "classifier", given, f"a classifier of {SIZE}×{SIZE} characters (visionshare train ocr)"
        )


def _check_page(page: np.ndarray) -> None:
    if not isinstance(page, np.ndarray) or page.ndim != 2 or page.dtype != np.uint8:
        given = getattr(page, "dtype", type(page).__name__), getattr(page, "shape", ())
        raise InputError("page", given, "a gray uint8 image of shape (H, W)")
    if not 0 < page.size <= MOST_PIXELS:
        raise InputError("page", page.shape, f"an image of 1 to {MOST_PIXELS} pixels")


class _Reader:
    """A classifier with what it needs to judge pieces of ink."""

    def __init__(self, classifier: CompactClassifier, context: bool, threads: int) -> None:
        self.classifier = classifier
        self.classes = [str(c) for c in classifier.classes_.tolist()]
        self.context = context
        self.threads = threads
        self._alike = alike(self.classes)
        self._broad = np.array([text in set("MWmw") for text in self.classes])

    def probabilities(self, pieces: Sequence[Piece]) -> np.ndarray:
        """Return the probabilities (n, k) of pieces' classes."""
        if not pieces:
            return np.zeros((0, len(self.classes)))
        images = np.stack([normalize_character(p.darkness, p.mask) for p in pieces])
        return self.classifier.predict_proba(images, self.threads)

    def judge(self, pieces: Sequence[Piece]) -> tuple[np.ndarray, np.ndarray]:
        """Return what :meth:`judged` says of pieces' probabilities."""
        return self.judged(self.probabilities(pieces))

    def judged(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest probabilities, those of one shape together, and which are M or W."""
        held = shares @ self._alike
        return held.max(axis=1, initial=0.0), self._broad[np.argmax(shares, axis=1)]

    def read(self, blocks: list[list[list[Piece]]]) -> tuple[Block, ...]:
        """Return blocks of lines of characters as text."""
        lines = [line for block in blocks for line in block]
        # One call for the whole page; only what is cut or joined is judged again.
        shares = self.probabilities([piece for line in lines for piece in line])
        starts = np.cumsum([0, *(len(line) for line in lines)])
        read = [
            self._resegmented(line, shares[starts[i] : starts[i + 1]])
            for i, line in enumerate(lines)
        ]
        gaps = [self._gaps(*held) for held in read]
        widths = _space_widths(gaps)
        done = [
            self._line(*held, split_words(*spaces))
            for held, spaces in zip(read, zip(gaps, widths, strict=True), strict=True)
        ]
        ends = np.cumsum([0, *(len(block) for block in blocks)])
        return tuple(Block(tuple(done[a:b])) for a, b in pairwise(ends))

    def _resegmented(self, line: list[Piece], shares: np.ndarray) -> tuple[list[Piece], np.ndarray]:
        """Return a line's characters, touching ones cut and broken ones joined."""
        height = _height(line)
        groups = mended(line, self.judged(shares), height, self.judge)
        line, shares = self._changed(
            [joined([line[i] for i in group]) for group in groups],
            [shares[group[0]] if len(group) == 1 else None for group in groups],
        )
        parts = split_touching(line, self.judged(shares), height, self.judge)
        rows = [[shares[i]] if len(p) == 1 else [None] * len(p) for i, p in enumerate(parts)]
        return self._changed([p for part in parts for p in part], [r for row in rows for r in row])

    def _changed(self, pieces: list[Piece], rows: list[Any]) -> tuple[list[Piece], np.ndarray]:
        """Return pieces with their probabilities; those that have none are classified."""
        fresh = [i for i, row in enumerate(rows) if row is None]
        for i, row in zip(fresh, self.probabilities([pieces[i] for i in fresh]), strict=True):
            rows[i] = row
        return pieces, np.stack(rows)

    def _gaps(self, pieces: list[Piece], shares: np.ndarray) -> np.ndarray:
        texts = [self.classes[c] for c in np.argmax(shares, axis=1)]
        return gaps_between([p.box for p in pieces], texts, _height(pieces))

    def _line(self, pieces: list[Piece], shares: np.ndarray, places: list[slice]) -> Line:
        numbers = np.argmax(shares, axis=1)
        if self.context:
            for place in places:
                numbers[place] = by_company(shares[place], self.classes)
            heights = np.array([p.box.height for p in pieces])
            bottoms = np.array([p.box.bottom for p in pieces])
            numbers = by_height(numbers, heights, self.classes)
            numbers = by_descent(numbers, shares, heights, bottoms, self.classes)
        characters = [
            Character(self.classes[c], p.box, float(share[c]))
            for c, p, share in zip(numbers.tolist(), pieces, shares, strict=True)
        ]
        return Line(tuple(Word(tuple(characters[place])) for place in places))


def _height(line: list[Piece]) -> float:
    """Return the height of a line's characters: touching letters are as high as single ones."""
    return float(np.median([piece.box.height for piece in line]))


def _space_widths(gaps: list[np.ndarray]) -> list[float]:
    """Return how wide a space is on each line; short lines take the page's."""
    usual = space_width(np.concatenate(gaps)) if gaps else 0.0
    return [space_width(held) if len(held) >= 20 else usual for held in gaps]


def _turned(block: Block, back: np.ndarray, width: int, height: int) -> Block:
    def there(c: Character) -> Character:
        sides = c.box.left, c.box.top, c.box.right, c.box.bottom
        return Character(c.text, Box(*turned_box(sides, back, width, height)), c.confidence)

    return Block(
        tuple(
            Line(tuple(Word(tuple(there(c) for c in word.characters)) for word in line.words))
            for line in block.lines
        )
    )
