"""Lines of ink read with a classifier of single characters: words with confidences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets.ink import Ink
from visionshare.datasets.intake import as_rasters
from visionshare.datasets.preprocessing import PRINTED, PRINTED_SIZE, Preprocessing
from visionshare.reading.alphabet import UNKNOWN, Alphabet, Pattern
from visionshare.reading.components import Piece, find_pieces, joined, with_gaps_closed
from visionshare.reading.context import by_descent, by_height, by_neighbors, same_shape
from visionshare.reading.lines import (
    Mark,
    characters_and_marks,
    find_lines,
    mark_probabilities,
)
from visionshare.reading.page import Block, Box, Character, Line, Page, Word, enclosing_box
from visionshare.reading.reading_order import blocks_of_lines
from visionshare.reading.rules import without_rules
from visionshare.reading.touching import Recognition, join_broken, split_touching
from visionshare.reading.words import gaps_between, space_width, split_words

# Below this mean probability the ink may be segments with gaps between them.
_MAX_SURE = 0.9
MAX_PIECES_OF_FIELDS = 400
_CLEARLY_BETTER = 0.02
# No character but M and W is wider, in heights; what is wider is several.
_MAX_WIDTH = 1.6
_DOUBT = 0.3
# Beside a decimal sign or a dash among digits, a gap counts as narrower than it is.
_BESIDE_MARKS = 0.25
# A reading that fits a pattern has no character that is less probable.
_MIN_FITTING = 0.03
# The gap, in heights of a character, between neighbors with a ruled line between them.
_CELLS = 1.5
# Gaps from which on a line has a width of space of its own.
_MIN_GAPS = 20


def reader_preprocessing(classifier: CompactClassifier) -> Preprocessing:
    """Return how the reader prepares a character."""
    # As the classifier says, if it says what is ink. A classifier whose pictures are only
    # stretched says nothing of ink. Its characters are prepared as in the data set "fonts".
    steps = classifier.preprocessing
    return PRINTED if steps.polarity == "as_is" else steps


@dataclass(frozen=True)
class _ReadLine:
    """A line's pieces of ink, one a character, and the probabilities (n, k) of their classes."""

    pieces: list[Piece]
    probabilities: np.ndarray

    @property
    def height(self) -> float:
        """The height of a character: touching letters are as high as single ones."""
        return float(np.median([piece.box.height for piece in self.pieces]))


@dataclass(frozen=True)
class _MarkedLine:
    """The boxes of a line's characters and marks, in order, and their probabilities."""

    boxes: list[Box]
    probabilities: np.ndarray
    is_mark: np.ndarray
    height: float


class LineReader:
    """A classifier with what it needs to recognize pieces of ink."""

    def __init__(
        self,
        classifier: CompactClassifier,
        alphabet: Alphabet,
        pattern: Pattern | None,
        context: bool,
        threads: int,
    ) -> None:
        self.classifier = classifier
        self.alphabet = alphabet
        self.texts = alphabet.texts
        self.pattern = pattern
        self.context = context
        self.threads = threads
        self._are_segments = False
        self._steps = reader_preprocessing(classifier)
        self._same_shape = same_shape(self.texts)
        self._is_broad = np.array([text in set("MWmw") and bool(text) for text in self.texts])

    def probabilities(self, pieces: Sequence[Piece]) -> np.ndarray:
        """Return the probabilities (n, k) of pieces' classes among those that may be read."""
        if not pieces:
            return np.zeros((0, len(self.texts)))
        images = [self._steps.apply_to_ink(p.darkness, p.mask, PRINTED_SIZE) for p in pieces]
        raw = self.classifier.predict_proba(as_rasters(np.stack(images)), self.threads)
        rows = self.alphabet.restricted(raw)
        if {"1", "7"} <= set(self.texts):
            pair = [self.texts.index("1"), self.texts.index("7")]
            for i in np.flatnonzero(np.argmax(rows, axis=1) == pair[0]).tolist():
                if _is_seven(pieces[i].mask, self._are_segments):
                    rows[i, pair] = rows[i, pair[::-1]]
        return rows

    def recognize(self, pieces: Sequence[Piece]) -> Recognition:
        """Return the largest probability of each piece, and which are M or W."""
        return self.recognition(self.probabilities(pieces))

    def recognition(self, probabilities: np.ndarray) -> Recognition:
        """Return the largest probabilities, those of one shape together, and which are M or W."""
        by_shape = probabilities @ self._same_shape
        return Recognition(
            by_shape.max(axis=1, initial=0.0), self._is_broad[np.argmax(probabilities, axis=1)]
        )

    def read_ink(self, ink: Ink, max_pieces: int) -> tuple[Block, ...]:
        """Return the text of a page's ink."""
        ink, rules = without_rules(ink)
        pieces = find_pieces(ink, max_pieces)
        blocks = self._read(pieces, rules)
        sure = confidence_of(blocks)
        if sure < _MAX_SURE and 0 < len(pieces) <= MAX_PIECES_OF_FIELDS:
            # Displays draw their digits in segments: read again with the gaps closed.
            self._are_segments = True
            closed = self._read(find_pieces(with_gaps_closed(ink), max_pieces), rules)
            self._are_segments = False
            if confidence_of(closed) > sure + _CLEARLY_BETTER:
                return closed
        return blocks

    def _read(self, pieces: list[Piece], rules: list[Box]) -> tuple[Block, ...]:
        lines = [characters_and_marks(line) for line in find_lines(pieces)]
        lines = [line for line in lines if line[0]]
        # One call for the whole page; only what is cut or joined is classified again.
        known = self.probabilities([c for line in lines for c in line[0]])
        ends = np.cumsum([len(line[0]) for line in lines], dtype=np.int64)
        parts = np.split(known, ends[:-1])
        is_number = [self._is_number(part) for part in parts[: len(lines)]]
        boxes = [enclosing_box([c.box for c in line[0]]) for line in lines]
        order = blocks_of_lines(boxes, is_number)
        read = []
        for row in [row for block in order for row in block]:
            pieces = [c for i in row for c in lines[i][0]]
            line = self._resegmented(_ReadLine(pieces, np.concatenate([parts[i] for i in row])))
            read.append(self._marked(line, [mark for i in row for mark in lines[i][1]]))
        gaps = [self._gaps(line, rules) for line in read]
        words = [split_words(*pair) for pair in zip(gaps, _space_widths(gaps), strict=True)]
        texts = iter([self._text(*pair) for pair in zip(read, words, strict=True)])
        blocks = [[next(texts) for _ in block] for block in order]
        kept = [tuple(line for line in block if line.words) for block in blocks]
        return tuple(Block(block) for block in kept if block)

    def _is_number(self, probabilities: np.ndarray) -> bool:
        """Return whether half of a line's characters or more are digits."""
        labels = np.argmax(probabilities, axis=1).tolist()
        return 2 * sum(self.texts[c].isdigit() for c in labels) >= len(labels)

    def _marked(self, line: _ReadLine, marks: list[Mark]) -> _MarkedLine:
        """Return a line with its punctuation, from left to right, without specks."""
        boxes = [piece.box for piece in line.pieces]
        rows = [self.alphabet.mark(mark_probabilities(m, boxes, line.height)) for m in marks]
        kept = [i for i, row in enumerate(rows) if row[-1] < 0.5]
        all_boxes = boxes + [marks[i].box for i in kept]
        table = np.concatenate([line.probabilities, *(rows[i][None] for i in kept)])
        order = sorted(range(len(all_boxes)), key=lambda i: (all_boxes[i].left, i))
        is_mark = np.array(order) >= len(boxes)
        return _MarkedLine([all_boxes[i] for i in order], table[order], is_mark, line.height)

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

    def _gaps(self, line: _MarkedLine, rules: list[Box]) -> np.ndarray:
        texts = [self.texts[c] for c in np.argmax(line.probabilities, axis=1)]
        gaps = gaps_between(line.boxes, texts, line.height)
        for i in range(1, len(texts) - 1):
            digits = texts[i - 1].isdigit() and texts[i + 1].isdigit()
            if digits and (line.is_mark[i] or texts[i] == "/"):
                gaps[i - 1 : i + 1] -= _BESIDE_MARKS
        # Cells of a table are words of their own.
        for i, (one, other) in enumerate(pairwise(line.boxes)):
            for rule in rules:
                between = one.left < (rule.left + rule.right) / 2 < other.right
                if between and rule.top < one.bottom and rule.bottom > one.top:
                    gaps[i] = max(gaps[i], _CELLS)
        return gaps

    def _text(self, line: _MarkedLine, words: list[slice]) -> Line:
        if self.pattern is not None:
            return self._matching(self.pattern, line, words)
        labels = np.argmax(line.probabilities, axis=1)
        inked = ~line.is_mark
        if self.context:
            # The parts of AB-1234 are words of their own.
            for word in words:
                cuts = np.flatnonzero(line.is_mark[word]) + word.start
                for a, b in pairwise([word.start - 1, *cuts.tolist(), word.stop]):
                    if b - a > 1:
                        part = slice(a + 1, b)
                        labels[part] = by_neighbors(line.probabilities[part], self.texts)
            boxes = [box for box, mark in zip(line.boxes, line.is_mark, strict=True) if not mark]
            labels[inked] = by_height(labels[inked], boxes, self.texts)
            labels[inked] = by_descent(labels[inked], line.probabilities[inked], boxes, self.texts)
        confidences = line.probabilities[np.arange(len(labels)), labels]
        if self.context:
            # What the context decided is as sure as the shape.
            alike = (line.probabilities @ self._same_shape)[np.arange(len(labels)), labels]
            confidences = np.where(inked, alike, confidences)
        return self._line(line, labels, np.minimum(confidences, 1.0), words)

    def _matching(self, pattern: Pattern, line: _MarkedLine, words: list[slice]) -> Line:
        """Return the best reading that fits: of the whole line, or of its words."""
        whole = slice(0, len(line.boxes))
        labels = np.zeros(len(line.boxes), np.int64)
        confidences = np.zeros(len(line.boxes))
        fitting = []
        for part in [whole, *words]:
            rows = line.probabilities[part]
            found = pattern.best(rows, self.texts)
            if found is None:
                continue
            places = np.arange(len(found))
            alike = np.minimum((rows @ self._same_shape)[places, found], 1.0)
            sure = np.maximum(alike, pattern.confidences(rows, found, self.texts))
            inked = found < len(self.texts) - 1
            if sure[inked].min(initial=1.0) < _MIN_FITTING or not rows[~inked, -1].all():
                continue
            labels[part] = found
            confidences[part] = sure
            if part is whole:
                return self._line(line, labels, confidences, words)
            fitting.append(part)
        return self._line(line, labels, confidences, fitting)

    def _line(
        self, line: _MarkedLine, labels: np.ndarray, confidences: np.ndarray, words: list[slice]
    ) -> Line:
        read = [
            Character(self.texts[c], box, float(confidence))
            for c, box, confidence in zip(
                labels.tolist(), line.boxes, confidences.tolist(), strict=True
            )
        ]
        read = [replace(c, confidence=1 - c.confidence) if c.text == UNKNOWN else c for c in read]
        wide = _MAX_WIDTH * line.height
        read = [
            replace(c, confidence=_DOUBT * c.confidence)
            if c.box.width > wide and c.text not in "MW"
            else c
            for c in read
        ]
        parts = [tuple(c for c in read[word] if c.text) for word in words]
        return Line(tuple(Word(part) for part in parts if part))


def _is_seven(mask: np.ndarray, is_closed: bool) -> bool:
    """Return whether a one is a seven of three segments: in parts, broad above, narrow below."""
    import cv2

    rows, cols = mask.shape
    if cols < max(2, rows // 3):
        return False
    if not is_closed and cv2.connectedComponents(mask.astype(np.uint8))[0] < 3:
        return False
    band = max(1, rows // 8)
    above = mask[:band].any(axis=0).mean()
    below = np.asarray(mask[-2 * band :].any(axis=0))
    is_right = below[: cols // 2].mean() < 0.25
    return bool(above >= 0.6 and below.mean() <= 0.5 and is_right)


def _space_widths(gaps: list[np.ndarray]) -> list[float]:
    """Return how wide a space is on each line; short lines take the page's."""
    usual = space_width(np.concatenate(gaps)) if gaps else 0.0
    return [space_width(line) if len(line) >= _MIN_GAPS else usual for line in gaps]


def confidence_of(blocks: tuple[Block, ...]) -> float:
    """Return the mean confidence of the characters of blocks."""
    return Page(1, 1, blocks).confidence
