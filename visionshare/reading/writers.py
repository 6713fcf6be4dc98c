"""What was read as text, JSON, hOCR, ALTO, TSV and a picture with the boxes."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template

from visionshare.reading.page import Box, Line, Page

#: Formats of text that a page can be written in.
FORMATS = ("text", "json", "hocr", "alto", "tsv")
_TSV_COLUMNS = (
    "level", "page_num", "block_num", "par_num", "line_num", "word_num", "left", "top", "width",
    "height", "conf", "text",
)  # fmt: skip


def as_values(page: Page, image: str = "") -> dict[str, Any]:
    """Return a page as plain values that JSON can hold."""
    # A box is left, top, right, bottom in pixels, the last two not included. A confidence is the
    # classifier's probability of the character; a word's is the mean of its characters'.
    return {
        "image": image,
        "width": page.width,
        "height": page.height,
        "angle": page.angle,
        "light_on_dark": page.light_on_dark,
        "text": page.text,
        "blocks": [
            {"box": list(block.box), "lines": [_line_values(line) for line in block.lines]}
            for block in page.blocks
        ],
    }


def _line_values(line: Line) -> dict[str, Any]:
    return {
        "text": line.text,
        "box": list(line.box),
        "words": [
            {
                "text": word.text,
                "box": list(word.box),
                "confidence": round(word.confidence, 4),
                "characters": [
                    {"text": c.text, "box": list(c.box), "confidence": round(c.confidence, 4)}
                    for c in word.characters
                ],
            }
            for word in line.words
        ],
    }


def as_json(page: Page, image: str = "") -> str:
    """Return a page as JSON, see :func:`as_values`."""
    return json.dumps(as_values(page, image), ensure_ascii=False) + "\n"


def as_lines(page: Page, image: str = "", number: int = 1) -> str:
    """Return a page as lines of JSON: one object for each line of text, or for an empty page."""
    values = {"file": image, "page": number, "width": page.width, "height": page.height}
    if page.note:
        values["note"] = page.note
    lines: list[dict[str, Any]] = [
        {"text": line.text, "confidence": round(line.confidence, 4), **_line_values(line)}
        for line in page.lines
    ]
    found = lines or [{"text": "", "confidence": 0.0, "words": []}]
    return "".join(json.dumps({**values, **one}, ensure_ascii=False) + "\n" for one in found)


def as_tsv(page: Page, number: int = 1, header: bool = True) -> str:
    """Return a page as the table that Tesseract writes: one row per page, block, line and word."""
    rows: list[tuple[Any, ...]] = [(1, number, 0, 0, 0, 0, 0, 0, page.width, page.height, -1, "")]

    def add(level: int, places: tuple[int, ...], box: Box, confidence: float, text: str) -> None:
        sides = box.left, box.top, box.width, box.height
        rows.append((level, number, *places, *sides, confidence, text))

    for b, block in enumerate(page.blocks, 1):
        add(2, (b, 0, 0, 0), block.box, -1, "")
        add(3, (b, 1, 0, 0), block.box, -1, "")
        for n, line in enumerate(block.lines, 1):
            add(4, (b, 1, n, 0), line.box, -1, "")
            for w, word in enumerate(line.words, 1):
                add(5, (b, 1, n, w), word.box, round(100 * word.confidence, 2), word.text)
    table = [_TSV_COLUMNS, *rows] if header else rows
    return "".join("\t".join(map(str, row)) + "\n" for row in table)


def as_alto(page: Page, image: str = "") -> str:
    """Return a page as ALTO 4: a page, text blocks, lines and strings, with confidences."""
    from visionshare import __version__

    return _template("page.alto.j2").render(page=page, image=image, version=__version__)


def as_hocr(page: Page, image: str = "") -> str:
    """Return a page as hOCR 1.2, which is XHTML: pages, areas, lines, words and characters."""
    from visionshare import __version__

    # hOCR quotes the name, and knows no way to escape a quote.
    name = image.replace("\\", "/").replace('"', "'")
    title = _plain(image) or "page"
    return _template("page.hocr.j2").render(page=page, image=name, title=title, version=__version__)


@cache
def _template(name: str) -> Template:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        # XML has no control characters, not even escaped.
        finalize=lambda value: _plain(value) if type(value) is str else value,
    )
    source = files("visionshare.reading").joinpath(name).read_text(encoding="utf-8")
    return environment.from_string(source)


def _plain(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return "".join(
        c for c in text if c in "\n\t" or (" " <= c < "\ud800") or ("\ue000" <= c < "\ufffe")
        or c > "\uffff"
    )  # fmt: skip


def as_picture(gray: np.ndarray, page: Page) -> np.ndarray:
    """Return the page with the boxes of characters, words and blocks, (H, W, 3) uint8."""
    # Characters are green, orange below a confidence of a half; words blue, blocks red.
    import cv2

    picture = np.repeat(gray[..., None], 3, axis=2)
    thin = max(1, round(min(gray.shape) / 1500))

    def draw(box: Box, color: tuple[int, int, int], wider: int, width: int) -> None:
        start = box.left - 1 - wider, box.top - 1 - wider
        cv2.rectangle(picture, start, (box.right + wider, box.bottom + wider), color, width)

    for character in page.characters:
        draw(
            character.box, (0, 158, 115) if character.confidence >= 0.5 else (230, 130, 0), 0, thin
        )
    for word in page.words:
        draw(word.box, (0, 114, 178), 2 * thin, thin)
    for block in page.blocks:
        draw(block.box, (204, 60, 60), 6 * thin, 2 * thin)
    return picture
