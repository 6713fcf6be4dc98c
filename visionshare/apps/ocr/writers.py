"""What was read as text, JSON, hOCR and a picture with the boxes."""

from __future__ import annotations

import html
import json
from typing import Any

import numpy as np

from visionshare.apps.ocr.page import Box, Page

__all__ = ["as_hocr", "as_json", "as_picture", "as_values"]

_HOCR = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN"
 "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en">
 <head>
  <title>{title}</title>
  <meta http-equiv="Content-Type" content="text/html;charset=utf-8"/>
  <meta name="ocr-system" content="visionshare {version}"/>
  <meta name="ocr-capabilities"
   content="ocr_page ocr_carea ocr_line ocrx_word ocrx_cinfo ocrp_wconf"/>
 </head>
 <body>
{body}
 </body>
</html>
"""


def _sides(box: Box) -> list[int]:
    return [box.left, box.top, box.right, box.bottom]


def as_values(page: Page, image: str = "") -> dict[str, Any]:
    """Return a page as plain values that JSON can hold.

    A box is left, top, right, bottom in pixels, the last two not included. A confidence is the
    classifier's probability of the character; a word's is the mean of its characters'.

    Parameters
    ----------
    page : Page
    image : str, default ""
        Name of the image, to be told.

    Examples
    --------
    >>> as_values(Page(3, 2), "a.png")
    {'image': 'a.png', 'width': 3, 'height': 2, 'angle': 0.0, 'light_on_dark': False,
     'text': '', 'blocks': []}
    """
    return {
        "image": image,
        "width": page.width,
        "height": page.height,
        "angle": page.angle,
        "light_on_dark": page.light_on_dark,
        "text": page.text,
        "blocks": [
            {"box": _sides(block.box), "lines": [_line_values(line) for line in block.lines]}
            for block in page.blocks
        ],
    }


def _line_values(line: Any) -> dict[str, Any]:
    return {
        "text": line.text,
        "box": _sides(line.box),
        "words": [
            {
                "text": word.text,
                "box": _sides(word.box),
                "confidence": round(word.confidence, 4),
                "characters": [
                    {"text": c.text, "box": _sides(c.box), "confidence": round(c.confidence, 4)}
                    for c in word.characters
                ],
            }
            for word in line.words
        ],
    }


def as_json(page: Page, image: str = "") -> str:
    """Return a page as JSON, see :func:`as_values`."""
    return json.dumps(as_values(page, image), ensure_ascii=False) + "\n"


def as_hocr(page: Page, image: str = "") -> str:
    """Return a page as hOCR 1.2, which is XHTML: pages, areas, lines, words and characters.

    Parameters
    ----------
    page : Page
    image : str, default ""
        Name of the image, to be told.

    Examples
    --------
    >>> "ocr_page" in as_hocr(Page(3, 2), 'a"b.png')
    True
    """
    from visionshare import __version__

    name = image.replace("\\", "/").replace('"', "'")
    about = f'image "{name}"; bbox 0 0 {page.width} {page.height}; ppageno 0'
    rows = [f'  <div class="ocr_page" id="page_1" title="{html.escape(about)}">']
    n_lines = n_words = 0
    for b, block in enumerate(page.blocks, 1):
        rows.append(f'   <div class="ocr_carea" id="block_1_{b}" title="{_bbox(block.box)}">')
        for line in block.lines:
            n_lines += 1
            at = f'id="line_1_{n_lines}" title="{_bbox(line.box)}"'
            rows.append(f'    <span class="ocr_line" {at}>')
            for word in line.words:
                n_words += 1
                about = f"{_bbox(word.box)}; x_wconf {round(100 * word.confidence)}"
                inner = "".join(
                    f'<span class="ocrx_cinfo" title="x_bboxes {_numbers(c.box)}; '
                    f'x_conf {100 * c.confidence:.1f}">{html.escape(_plain(c.text))}</span>'
                    for c in word.characters
                )
                at = f'id="word_1_{n_words}" title="{about}"'
                rows.append(f'     <span class="ocrx_word" {at}>{inner}</span>')
            rows.append("    </span>")
        rows.append("   </div>")
    rows.append("  </div>")
    title = html.escape(_plain(image) or "page")
    # XML has no control characters, not even escaped.
    body = _plain("\n".join(rows))
    return _HOCR.format(title=title, version=__version__, body=body)


def _numbers(box: Box) -> str:
    return " ".join(map(str, _sides(box)))


def _bbox(box: Box) -> str:
    return f"bbox {_numbers(box)}"


def _plain(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return "".join(
        c for c in text if c in "\n\t" or (" " <= c < "\ud800") or ("\ue000" <= c < "\ufffe")
        or c > "\uffff"
    )  # fmt: skip


def as_picture(gray: np.ndarray, page: Page) -> np.ndarray:
    """Return the page with the boxes of characters, words and blocks, (H, W, 3) uint8.

    Characters are green, orange below a confidence of a half; words blue, blocks red.

    Parameters
    ----------
    gray : ndarray of uint8, shape (H, W)
        The image that was read.
    page : Page
    """
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
