"""A page from its image to its text, with a classifier of single characters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier
from visionshare.datasets.ink import Ink, find_ink, is_blurred, magnified
from visionshare.datasets.preprocessing import PRINTED_SIZE
from visionshare.errors import InputError
from visionshare.machine.resources import resolve_jobs, single_threaded_blas
from visionshare.reading.alphabet import UNKNOWN, Alphabet, Pattern
from visionshare.reading.components import MAX_PIECES
from visionshare.reading.line_reader import LineReader, confidence_of
from visionshare.reading.page import Block, Box, Line, Page, Word
from visionshare.reading.skew import estimate_skew, rotated, turned_box

MAX_PIXELS = 1 << 26
# Below this turn, in degrees, a line of the usual length stays within its own height.
_MIN_TURN = 0.2
# Below this uprightness a page may be turned, if it has as many characters; and how much better
# it must be when turned.
_SURELY_UPRIGHT = 0.95
_ENOUGH = 4
_CLEARLY_BETTER = 0.03
# And of a field that may be upside down, with letters and with digits alone.
_OF_LETTERS = 0.12
_OF_DIGITS = 0.35
_SHORT_LINES = 0.3
# From this mean confidence on a field that was sharpened is not read as it is.
_SHARP = 0.8
_MAX_PIXELS_OF_FIELDS = 500_000
# Below this mean confidence a text is worth a note.
_DOUBTFUL = 0.75
# Words of a page of prose.
_PROSE = 10


def read_page(
    classifier: CompactClassifier,
    page: np.ndarray,
    deskew: bool = True,
    context: bool = True,
    n_jobs: int = 1,
    max_pixels: int = MAX_PIXELS,
    max_pieces: int = MAX_PIECES,
    characters: str | None = None,
    pattern: str | None = None,
) -> Page:
    """Read a page of print: its characters in words, lines and blocks, with their boxes.

    Ink is told from paper, lines are leveled, pieces of ink are gathered to lines and
    characters, touching letters are cut and broken ones joined where the classifier finds the
    result more probable. Frames and ruled lines are removed; ``. , - :`` are told apart by their
    size and position.

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
    characters : str, optional
        The characters that may be read: ``"0123456789.,"``, or a set: ``digits``, ``capitals``,
        ``letters``, ``serial``, ``date``, ``amount``, ``hex``. Probabilities are those among them.
    pattern : str, optional
        A mask such as ``AA-9999``, or a regular expression, see
        :class:`visionshare.reading.alphabet.Pattern`. Of each line, or of each of its words, the
        most probable reading that fits is taken; what cannot fit is left out.

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
    reader = PageReader(classifier, characters, pattern, deskew, context, n_jobs)
    return reader.read(page, max_pixels, max_pieces)


class PageReader:
    """A reader of many pages: a classifier with the settings of :func:`read_page`.

    Parameters
    ----------
    classifier, characters, pattern, deskew, context, n_jobs
        As in :func:`read_page`.

    Examples
    --------
    >>> from visionshare import load
    >>> reader = PageReader(load("reader"), characters="digits")
    >>> reader.read(np.full((50, 50), 255, np.uint8)).text
    ''
    """

    def __init__(
        self,
        classifier: CompactClassifier,
        characters: str | None = None,
        pattern: str | None = None,
        deskew: bool = True,
        context: bool = True,
        n_jobs: int = 1,
    ) -> None:
        check_reader(classifier)
        alphabet = Alphabet(class_names(classifier.classes_), characters)
        fitting = Pattern(pattern) if pattern is not None else None
        threads = resolve_jobs(n_jobs)
        self.pattern = pattern
        self.deskew = deskew
        self._lines = LineReader(classifier, alphabet, None, context, threads)
        self._fitting = LineReader(classifier, alphabet, fitting, context, threads)

    def read(
        self, page: np.ndarray, max_pixels: int = MAX_PIXELS, max_pieces: int = MAX_PIECES
    ) -> Page:
        """Read a page, as :func:`read_page` does."""
        _check_page(page, max_pixels)
        best = self._upright(page, max_pieces)
        quarters = 0
        # A page on its side, or upside down, is read with doubts.
        if self.deskew and len(best.characters) >= _ENOUGH and _uprightness(best) < _SURELY_UPRIGHT:
            # Turned by a quarter, a line is a column of many short ones.
            for turn in (2,) if len(best.lines) == 1 else (1, 2, 3):
                turned = self._upright(np.rot90(page, turn), max_pieces)
                # Many digits are digits upside down, too.
                is_field = len(best.characters) < _PROSE
                least = _CLEARLY_BETTER
                if turn == 2 and is_field:
                    letters = any(c.text.isalpha() for c in turned.characters)
                    least = _OF_LETTERS if letters else _OF_DIGITS
                better = _uprightness(turned) > _uprightness(best) + least
                if better and len(turned.characters) >= _ENOUGH:
                    best = turned
                    quarters = turn
        note = _note(best)
        if self.pattern is not None:
            best = self._upright(np.rot90(page, quarters), max_pieces, fitting=True)
            note = note if best.blocks else f"no reading fits the pattern {self.pattern!r}"
        return replace(_turned_back(best, quarters, page.shape), note=note)

    def _upright(self, page: np.ndarray, max_pieces: int, fitting: bool = False) -> Page:
        reader = self._fitting if fitting else self._lines
        height, width = page.shape
        ink = find_ink(page)
        angle = estimate_skew(ink.mask) if self.deskew else 0.0
        back = None
        if abs(angle) >= _MIN_TURN:
            turned, back = rotated(page, angle)
            ink = find_ink(turned)
        else:
            angle = 0.0
        # Once for the page, not for each piece that is classified.
        with single_threaded_blas():
            blocks = self._blocks(reader, page if back is None else turned, ink, max_pieces)
        if back is not None:
            blocks = _moved(blocks, lambda box: turned_box(box, back, width, height))
        return Page(width, height, blocks, angle, ink.light_on_dark)

    def _blocks(
        self, reader: LineReader, page: np.ndarray, ink: Ink, max_pieces: int
    ) -> tuple[Block, ...]:
        """Return the text of a level page."""
        if page.size > _MAX_PIXELS_OF_FIELDS or not is_blurred(ink):
            return reader.read_ink(ink, max_pieces)
        # A blurred field is read sharpened, and as it is if that leaves doubts.
        large = reader.read_ink(find_ink(magnified(page), ink.light_on_dark), max_pieces)
        sharp = _moved(
            large, lambda b: Box(b.left // 2, b.top // 2, -(-b.right // 2), -(-b.bottom // 2))
        )
        if confidence_of(sharp) >= _SHARP:
            return sharp
        return max(sharp, reader.read_ink(ink, max_pieces), key=confidence_of)


def _uprightness(page: Page) -> float:
    """Return the mean confidence, less where most lines are a character or two."""
    sizes = [sum(len(word.characters) for word in line.words) for line in page.lines]
    short = sum(size <= 2 for size in sizes) / len(sizes) if len(sizes) > 2 else 0.0
    return page.confidence - _SHORT_LINES * short


def _turned_back(page: Page, quarters: int, shape: tuple[int, ...]) -> Page:
    """Return a page that was read after quarter turns, with the boxes of the page before."""
    if quarters == 0:
        return page
    height, width = shape

    def back(box: Box) -> Box:
        left, top, right, bottom = box
        if quarters == 1:
            return Box(width - bottom, left, width - top, right)
        if quarters == 2:
            return Box(width - right, height - bottom, width - left, height - top)
        return Box(top, height - right, bottom, height - left)

    blocks = _moved(page.blocks, back)
    return replace(page, width=width, height=height, blocks=blocks, turned=90 * quarters)


def _note(page: Page) -> str:
    """Return why this page's text may be worth little."""
    texts = [c.text for c in page.characters]
    n = max(1, len(texts))
    if sum(text == UNKNOWN for text in texts) > 0.15 * n:
        return "many characters that this reader does not know; Tesseract knows more scripts"
    n_small = sum(text.islower() for text in texts)
    if len(page.words) >= _PROSE and n_small > 0.5 * n:
        return "prose; this reader is made for fields, Tesseract reads prose better"
    if len(texts) >= _ENOUGH and page.confidence < _DOUBTFUL:
        return "low confidence: handwriting, a picture, or a poor scan?"
    return ""


def check_reader(classifier: CompactClassifier) -> None:
    """Raise an InputError unless the classifier is of pictures of single characters."""
    if classifier.image_shape != PRINTED_SIZE:
        given = f"one of images of shape {classifier.image_shape}"
        raise InputError(
            "classifier", given, "a classifier of 28×28 characters (visionshare train ocr)"
        )


def _check_page(page: np.ndarray, max_pixels: int) -> None:
    if not isinstance(page, np.ndarray) or page.ndim != 2 or page.dtype != np.uint8:
        given = getattr(page, "dtype", type(page).__name__), getattr(page, "shape", ())
        raise InputError("page", given, "a gray uint8 image of shape (H, W)")
    if not 0 < page.size <= max_pixels:
        raise InputError("page", page.shape, f"an image of 1 to {max_pixels} pixels")


def _moved(blocks: tuple[Block, ...], move: Callable[[Box], Box]) -> tuple[Block, ...]:
    """Return blocks with the boxes of their characters moved."""

    def moved(word: Word) -> Word:
        return Word(tuple(replace(c, box=move(c.box)) for c in word.characters))

    return tuple(
        Block(tuple(Line(tuple(moved(word) for word in line.words)) for line in block.lines))
        for block in blocks
    )
