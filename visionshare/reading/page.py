"""What was read: characters in words in lines in blocks, each with its box on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# Of fields in unseen fonts whose characters are all certain, one in a hundred is wrong: where
# characters touch, or a mark is lost in blur.
_CUT_RIGHT = 0.99


class Box(NamedTuple):
    """A rectangle of whole pixels: columns left to right − 1, rows top to bottom − 1.

    Examples
    --------
    >>> Box(2, 3, 7, 9).width, Box(2, 3, 7, 9).height
    (5, 6)
    """

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Columns."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Rows."""
        return self.bottom - self.top


def enclosing_box(boxes: Sequence[Box]) -> Box:
    """Return the box around boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


@dataclass(frozen=True)
class Character:
    """A character, its box, and the classifier's probability of it.

    Examples
    --------
    >>> Character("A", Box(0, 0, 5, 9), 0.9).text
    'A'
    """

    text: str
    box: Box
    confidence: float


@dataclass(frozen=True)
class Word:
    """Characters without a gap of a space's width between them.

    Examples
    --------
    >>> a = Character("A", Box(0, 0, 5, 9), 0.9)
    >>> Word((a, a)).text
    'AA'
    """

    characters: tuple[Character, ...]

    @property
    def text(self) -> str:
        """The characters as text."""
        return "".join(c.text for c in self.characters)

    @property
    def box(self) -> Box:
        """The box around the characters."""
        return enclosing_box([c.box for c in self.characters])

    @property
    def confidence(self) -> float:
        """Mean of the characters' confidences."""
        return sum(c.confidence for c in self.characters) / len(self.characters)


@dataclass(frozen=True)
class Line:
    """Words that stand on one line.

    Examples
    --------
    >>> word = Word((Character("A", Box(0, 0, 5, 9), 0.9),))
    >>> Line((word, word)).text
    'A A'
    """

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The words, with a space between them."""
        return " ".join(word.text for word in self.words)

    @property
    def box(self) -> Box:
        """The box around the words."""
        return enclosing_box([word.box for word in self.words])

    @property
    def confidence(self) -> float:
        """That all characters are right: their product, and that the line was cut right."""
        return _CUT_RIGHT * math.prod(c.confidence for word in self.words for c in word.characters)


@dataclass(frozen=True)
class Block:
    """Lines below each other: a column, or a part of one.

    Examples
    --------
    >>> line = Line((Word((Character("A", Box(0, 0, 5, 9), 0.9),)),))
    >>> Block((line, line)).text.splitlines()
    ['A', 'A']
    """

    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The lines, each on its own."""
        return "\n".join(line.text for line in self.lines)

    @property
    def box(self) -> Box:
        """The box around the lines."""
        return enclosing_box([line.box for line in self.lines])


@dataclass(frozen=True)
class Page:
    """What was read on a page, in reading order.

    Attributes
    ----------
    width, height : int
        Of the image, in pixels; boxes are rectangles on it.
    blocks : tuple of Block
    angle : float
        Degrees by which the lines of the image sink to the right.
    light_on_dark : bool
    turned : {0, 90, 180, 270}
        Degrees, counterclockwise, by which the page was turned to be upright.
    note : str
        Why the text may not be worth much, if it may not.

    Examples
    --------
    >>> a = Character("A", Box(0, 0, 5, 9), 0.9)
    >>> page = Page(20, 20, (Block((Line((Word((a, a)), Word((a,)))),)),))
    >>> page.text
    'AA A'
    """

    width: int
    height: int
    blocks: tuple[Block, ...] = ()
    angle: float = 0.0
    light_on_dark: bool = False
    turned: int = 0
    note: str = ""

    @property
    def confidence(self) -> float:
        """Mean of the characters' confidences; 0 without any."""
        characters = self.characters
        return sum(c.confidence for c in characters) / max(1, len(characters))

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of all blocks."""
        return tuple(line for block in self.blocks for line in block.lines)

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of all lines."""
        return tuple(word for line in self.lines for word in line.words)

    @property
    def characters(self) -> tuple[Character, ...]:
        """The characters of all words."""
        return tuple(c for word in self.words for c in word.characters)

    @property
    def text(self) -> str:
        """The text; an empty line stands between blocks."""
        return "\n\n".join(block.text for block in self.blocks)
