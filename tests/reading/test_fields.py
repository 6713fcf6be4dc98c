"""Fields: allowed characters, patterns, punctuation, frames, tables, pages on their side."""

import xml.etree.ElementTree as ET

import cv2
import numpy as np
import pytest
from PIL import Image

from scripts.reproduce.rendering import render_page
from visionshare import load
from visionshare.cli.main import main
from visionshare.datasets.fonts import matplotlib_fonts
from visionshare.datasets.ink import find_ink, is_blurred
from visionshare.errors import InputError
from visionshare.files.bundled import bundled_classifiers
from visionshare.reading import PageReader, read_page
from visionshare.reading.alphabet import Alphabet, Pattern
from visionshare.reading.pages import gray_pages, n_pages_of
from visionshare.reading.writers import as_alto, as_tsv


def _boxed(image, pad=6, thick=2):
    ys, xs = np.nonzero(image < 128)
    framed = image.copy()
    start = int(xs.min()) - pad, int(ys.min()) - pad
    cv2.rectangle(framed, start, (int(xs.max()) + pad, int(ys.max()) + pad), 0, thick)
    return framed


@pytest.mark.parametrize(
    "text", ["25,723.82", "1.234,56", "2026-11-27", "27.11.2026", "100", "0093518", "12:30"]
)
def test_fields_keep_their_punctuation(reader, font, text):
    assert read_page(reader, render_page([text], font, 18)).text == text


@pytest.mark.parametrize("text", ["2030-12-16", "34,754.00"])
def test_blurred_fields_are_read_sharpened(font, text):
    page = render_page([text], font, 16)
    blurred = cv2.GaussianBlur(page, (0, 0), 2.0)
    assert not is_blurred(find_ink(page))
    assert is_blurred(find_ink(blurred))
    found = PageReader(load("reader"), "0123456789.,-").read(blurred)
    assert found.text == text
    # Boxes are those of the picture as it was given.
    height, width = blurred.shape
    assert all(c.box.right <= width and c.box.bottom <= height for c in found.characters)
    assert max(c.box.right for c in found.characters) > width / 2


def test_only_allowed_characters_are_read(reader, font):
    image = render_page(["SOB 1058"], font, 18)
    assert read_page(reader, image, characters="digits").text.replace(" ", "").isdigit()
    assert read_page(reader, image, characters="capitals").text.replace(" ", "").isalpha()
    assert read_page(reader, image, characters="0158SOB").text == "SOB 1058"


def test_allowed_probabilities_are_renormalized():
    alphabet = Alphabet(["0", "O", "K"], "0K")
    rows = alphabet.restricted(np.array([[0.2, 0.7, 0.1], [0.0, 1.0, 0.0]]))
    assert rows[0, :3] == pytest.approx([2 / 3, 0, 1 / 3])
    # Nothing allowed is likely: neither is preferred.
    assert rows[1, :3] == pytest.approx([0.5, 0, 0.5])


@pytest.mark.parametrize("given", ["", " ", "digitz", "€"])
def test_unknown_characters_are_refused(reader, given):
    with pytest.raises(InputError, match="characters"):
        PageReader(reader, characters=given)


def test_a_pattern_takes_the_best_reading_that_fits(reader, font):
    image = render_page(["SERIAL AB-O123", "NOTHING"], font, 16)
    page = read_page(reader, image, pattern="AA-9999")
    assert page.text == "AB-0123"
    assert read_page(reader, image, pattern=r"[A-Z]{2}-\d+").text == "AB-0123"
    none = read_page(reader, image, pattern="99.99")
    assert (none.text, none.note) == ("", "no reading fits the pattern '99.99'")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("9A", "0O"), ("AA", "OO"), ("[0-9]+", "00"), ("(A|0)O?", "0O"), ("O{2,3}", "OO"),
        (r"\w.", "OO"), ("0*O+", "OO"), ("X9", "O0"), ("999", None), ("K+", None),
    ],
)  # fmt: skip
def test_patterns(pattern, text):
    rows = np.array([[0.3, 0.6, 0.0], [0.3, 0.6, 0.0]])
    labels = Pattern(pattern).best(rows, ["0", "O", "other"])
    assert text == (None if labels is None else "".join("0O"[c] for c in labels))


@pytest.mark.parametrize("pattern", ["", "(A", "[", "(?=A)", r"(A)\1", "A**", "[0-9]{9999}"])
def test_patterns_that_are_not_supported_are_refused(pattern):
    with pytest.raises(InputError, match="pattern"):
        Pattern(pattern)


@pytest.mark.parametrize(("text", "pad"), [("4711", 4), ("7", 8), ("AB 12", 20)])
def test_a_frame_is_no_character(reader, font, text, pad):
    assert read_page(reader, _boxed(render_page([text], font, 20), pad)).text == text


def test_cells_of_a_table_are_words(reader, font):
    image = np.full((220, 480), 255, np.uint8)
    for row in range(2):
        for col in range(3):
            part = render_page([str(1000 * row + 37 * col + 11)], font, 14, margin=0.05)
            y, x = 90 * row + 40, 140 * col + 50
            image[y : y + part.shape[0], x : x + part.shape[1]] = part
    for y in (20, 110, 200):
        cv2.line(image, (30, y), (450, y), 0, 2)
    for x in (30, 170, 310, 450):
        cv2.line(image, (x, 20), (x, 200), 0, 2)
    page = read_page(reader, image)
    assert [[word.text for word in line.words] for line in page.lines] == [
        ["11", "48", "85"], ["1011", "1048", "1085"],
    ]  # fmt: skip


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_page_on_its_side_is_turned(reader, font, quarters):
    image = render_page(["THE QUICK BROWN FOX", "JUMPED OVER 2345"], font, 18)
    upright = read_page(reader, image)
    given = np.ascontiguousarray(np.rot90(image, -quarters))
    page = read_page(reader, given)
    assert (page.text, page.turned) == (upright.text, 90 * quarters)
    assert (page.height, page.width) == given.shape
    for character in page.characters:
        box = character.box
        assert given[box.top : box.bottom, box.left : box.right].min() < 100


def test_tsv_and_alto_have_the_words(reader, font):
    page = read_page(reader, render_page(["TWO WORDS", "AND 42"], font, 18))
    rows = [row.split("\t") for row in as_tsv(page).splitlines()]
    assert rows[0][0] == "level"
    assert [row[-1] for row in rows if row[0] == "5"] == ["TWO", "WORDS", "AND", "42"]
    assert {len(row) for row in rows} == {12}
    root = ET.fromstring(as_alto(page, 'a "<b>.png').encode())
    strings = root.findall(".//{http://www.loc.gov/standards/alto/ns-v4#}String")
    assert [string.get("CONTENT") for string in strings] == ["TWO", "WORDS", "AND", "42"]


def test_digits_of_seven_segments_are_read():
    """Segments with gaps between them, as the benchmark draws them."""
    from benchmarks.fields import drawn_segments

    reader = PageReader(load("reader"), "0123456789.")
    texts = ["8071", "236.9", "4517.0"]
    pictures = [drawn_segments(text, np.random.default_rng(5)) for text in texts]
    read = [reader.read(picture).text.replace(" ", "") for picture in pictures]
    assert read == texts


def test_prose_and_foreign_characters_are_noted():
    reader = PageReader(load("reader"))
    font = next(path for path in matplotlib_fonts() if path.stem == "DejaVuSans")
    prose = ["and then he went over the hill to see", "what was on the other side of it"]
    assert "Tesseract" in reader.read(render_page(prose, font, 16)).note
    foreign = reader.read(render_page(["ЖДИЯ ЩЮЛФ ЦЪЭШ"], font, 16))
    assert "Tesseract" in foreign.note
    assert reader.read(render_page(["INVOICE 2026-11-27"], font, 16)).note == ""


def test_a_pdf_is_read_page_by_page(font, tmp_path):
    pytest.importorskip("pypdfium2")
    pages = [Image.fromarray(render_page([text], font, 16)) for text in ("47 11", "08 15")]
    pages[0].save(tmp_path / "two.pdf", save_all=True, append_images=pages[1:], resolution=200)
    assert n_pages_of(tmp_path / "two.pdf") == 2
    texts = [read_page(load("reader"), gray).text for gray in gray_pages(tmp_path / "two.pdf")]
    assert texts == ["47 11", "08 15"]


def test_bundled_classifiers_are_small_and_have_names(capsys):
    assert main(["models"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == sorted(bundled_classifiers())
    assert {"mnist-10k", "mnist-4k", "reader"} <= set(listed)
    for name, file in bundled_classifiers().items():
        assert file.stat().st_size < 500_000
        assert file.with_suffix(".md").is_file()
        assert load(name).image_shape == (28, 28)
