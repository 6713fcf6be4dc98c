"""A page from its image to its text, with a classifier of single characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier
from visionshare.datasets.ink import find_ink
from visionshare.datasets.intake import as_rasters
from visionshare.datasets.preprocessing import PRINTED, PRINTED_SIZE, Preprocessing
from visionshare.errors import InputError
from visionshare.machine.resources import resolve_jobs, single_threaded_blas
from visionshare.reading.components import MAX_PIECES, Piece, find_pieces, joined
from visionshare.reading.context import by_descent, by_height, by_neighbors, same_shape
from visionshare.reading.lines import characters_of, find_lines
from visionshare.reading.page import Block, Box, Character, Line, Page, Word, around
from visionshare.reading.reading_order import blocks_of_lines
from visionshare.reading.skew import estimate_skew, rotated, turned_box
from visionshare.reading.touching import Recognition, join_broken, split_touching
from visionshare.reading.words import gaps_between, space_width, split_words

__all__ = ["MAX_PIXELS", "check_reader", "read_page", "reader_preprocessing"]

MAX_PIXELS = 1 << 26
# Below this turn, in degrees, a line of the usual length stays within its own height.
_MIN_TURN = 0.2
# Gaps from which on a line has a width of space of its own.
_MIN_GAPS = 20


def read_page(
    classifier: CompactClassifier,
    page: np.ndarray,
    deskew: bool = True,
    context: bool = True,
    n_jobs: int = 1,
    max_pixels: int = MAX_PIXELS,
    max_pieces: int = MAX_PIECES,
) -> Page:
    """Read a page of print: its characters in words, lines and blocks, with their boxes.

    Ink is told from paper, lines are leveled, pieces of ink are gathered to lines and
    characters, touching letters are cut and broken ones joined where the classifier finds the
    result more probable. Punctuation is ignored: the classes are digits and letters.

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
    max_pixels : int, default 67108864
        Pixels of the page that are accepted at most.
    max_pieces : int, default 20000
        Pieces of ink that are accepted at most.

    Returns
    -------
    Page
        Boxes are rectangles of the image as it was given. A page without text has no blocks.

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
    _check_page(page, max_pixels)
    reader = _Reader(classifier, context, resolve_jobs(n_jobs))
    height, width = page.shape
    ink = find_ink(page)
    angle = estimate_skew(ink.mask) if deskew else 0.0
    back = None
    if abs(angle) >= _MIN_TURN:
        turned, back = rotated(page, angle)
        ink = find_ink(turned)
    else:
        angle = 0.0
    lines = [characters_of(line) for line in find_lines(find_pieces(ink, max_pieces))]
    lines = [line for line in lines if line]
    order = blocks_of_lines([around([c.box for c in line]) for line in lines])
    layout = [[[c for i in row for c in lines[i]] for row in block] for block in order]
    # Once for the page, not for each piece that is classified.
    with single_threaded_blas():
        blocks = reader.read(layout)
    if back is not None:
        blocks = tuple(_turned(block, back, width, height) for block in blocks)
    return Page(width, height, blocks, angle, ink.light_on_dark)


def check_reader(classifier: CompactClassifier) -> None:
    """Raise an InputError unless the classifier is of pictures of single characters."""
    if classifier.image_shape != PRINTED_SIZE:
        given = f"one of images of shape {classifier.image_shape}"
        raise InputError(
            "classifier", given, "a classifier of 28×28 characters (visionshare train ocr)"
        )


def reader_preprocessing(classifier: CompactClassifier) -> Preprocessing:
    """Return how the reader prepares a character."""
    # As the classifier says, if it says what is ink. A classifier whose pictures are only
    # stretched says nothing of ink. Its characters are prepared as those of the data set "fonts".
    steps = classifier.preprocessing
    return PRINTED if steps.polarity == "as_is" else steps


def _check_page(page: np.ndarray, max_pixels: int) -> None:
    if not isinstance(page, np.ndarray) or page.ndim != 2 or page.dtype != np.uint8:
        given = getattr(page, "dtype", type(page).__name__), getattr(page, "shape", ())
        raise InputError("page", given, "a gray uint8 image of shape (H, W)")
    if not 0 < page.size <= max_pixels:
        raise InputError("page", page.shape, f"an image of 1 to {max_pixels} pixels")


@dataclass(frozen=True)
class _ReadLine:
    """A line's pieces of ink, one a character, and the probabilities (n, k) of their classes."""

    pieces: list[Piece]
    probabilities: np.ndarray

    @property
    def boxes(self) -> list[Box]:
        return [piece.box for piece in self.pieces]

    @property
    def height(self) -> float:
        """The height of a character: touching letters are as high as single ones."""
        return float(np.median([box.height for box in self.boxes]))


class _Reader:
    """A classifier with what it needs to recognize pieces of ink."""

    def __init__(self, classifier: CompactClassifier, context: bool, threads: int) -> None:
        self.classifier = classifier
        self.classes = list(class_names(classifier.classes_))
        self.context = context
        self.threads = threads
        self._steps = reader_preprocessing(classifier)
        self._same_shape = same_shape(self.classes)
        self._is_broad = np.array([text in set("MWmw") for text in self.classes])

    def probabilities(self, pieces: Sequence[Piece]) -> np.ndarray:
        """Return the probabilities (n, k) of pieces' classes."""
        if not pieces:
            return np.zeros((0, len(self.classes)))
        images = [self._steps.apply_to_ink(p.darkness, p.mask, PRINTED_SIZE) for p in pieces]
        return self.classifier.predict_proba(as_rasters(np.stack(images)), self.threads)

    def recognize(self, pieces: Sequence[Piece]) -> Recognition:
        """Return the largest probability of each piece, and which are M or W."""
        return self.recognition(self.probabilities(pieces))

    def recognition(self, probabilities: np.ndarray) -> Recognition:
        """Return the largest probabilities, those of one shape together, and which are M or W."""
        by_shape = probabilities @ self._same_shape
        return Recognition(
            by_shape.max(axis=1, initial=0.0), self._is_broad[np.argmax(probabilities, axis=1)]
        )

    def read(self, blocks: list[list[list[Piece]]]) -> tuple[Block, ...]:
        """Return blocks of lines of characters as text."""
        lines = [line for block in blocks for line in block]
        # One call for the whole page; only what is cut or joined is classified again.
        probabilities = self.probabilities([piece for line in lines for piece in line])
        starts = np.cumsum([0, *(len(line) for line in lines)])
        read = [
            self._resegmented(_ReadLine(line, probabilities[a:b]))
            for line, (a, b) in zip(lines, pairwise(starts), strict=True)
        ]
        gaps = [self._gaps(line) for line in read]
        words = [split_words(*pair) for pair in zip(gaps, _space_widths(gaps), strict=True)]
        texts = [self._text(*pair) for pair in zip(read, words, strict=True)]
        ends = np.cumsum([0, *(len(block) for block in blocks)])
        return tuple(Block(tuple(texts[a:b])) for a, b in pairwise(ends))

    def _resegmented(self, line: _ReadLine) -> _ReadLine:
        """Return a line with touching characters cut and broken ones joined."""
        height = line.height
        pieces = line.pieces
        known = line.probabilities
        groups = join_broken(pieces, self.recognition(known), height, self.recognize)
        line = self._classified(
            [joined([pieces[i] for i in group]) for group in groups],
            [known[group[0]] if len(group) == 1 else None for group in groups],
        )
        pieces = line.pieces
        known = line.probabilities
        parts = split_touching(pieces, self.recognition(known), height, self.recognize)
        rows = [[known[i]] if len(p) == 1 else [None] * len(p) for i, p in enumerate(parts)]
        return self._classified(
            [piece for part in parts for piece in part], [row for part in rows for row in part]
        )

    def _classified(self, pieces: list[Piece], rows: Sequence[np.ndarray | None]) -> _ReadLine:
        """Return a line of pieces; those without a row of probabilities are classified."""
        new = iter(
            self.probabilities([p for p, row in zip(pieces, rows, strict=True) if row is None])
        )
        return _ReadLine(pieces, np.stack([next(new) if row is None else row for row in rows]))

    def _gaps(self, line: _ReadLine) -> np.ndarray:
        texts = [self.classes[c] for c in np.argmax(line.probabilities, axis=1)]
        return gaps_between(line.boxes, texts, line.height)

    def _text(self, line: _ReadLine, words: list[slice]) -> Line:
        labels = np.argmax(line.probabilities, axis=1)
        if self.context:
            for word in words:
                labels[word] = by_neighbors(line.probabilities[word], self.classes)
            labels = by_height(labels, line.boxes, self.classes)
            labels = by_descent(labels, line.probabilities, line.boxes, self.classes)
        characters = [
            Character(self.classes[c], box, float(row[c]))
            for c, box, row in zip(labels.tolist(), line.boxes, line.probabilities, strict=True)
        ]
        return Line(tuple(Word(tuple(characters[word])) for word in words))


def _space_widths(gaps: list[np.ndarray]) -> list[float]:
    """Return how wide a space is on each line; short lines take the page's."""
    usual = space_width(np.concatenate(gaps)) if gaps else 0.0
    return [space_width(line) if len(line) >= _MIN_GAPS else usual for line in gaps]


def _turned(block: Block, back: np.ndarray, width: int, height: int) -> Block:
    """Return a block of a turned page with the boxes of the page that was given."""

    def turned(c: Character) -> Character:
        return Character(c.text, turned_box(c.box, back, width, height), c.confidence)

    return Block(
        tuple(
            Line(tuple(Word(tuple(turned(c) for c in word.characters)) for word in line.words))
            for line in block.lines
        )
    )
