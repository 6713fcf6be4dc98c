"""Pages in fonts that taught nothing: clean, turned, shaded, inverted, noisy, empty, random."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from scripts.reproduce.rendering import render_page
from visionshare import CompactClassifier, Pixels
from visionshare.datasets.fonts import matplotlib_fonts
from visionshare.datasets.ink import find_ink
from visionshare.datasets.preprocessing import PRINTED, Preprocessing
from visionshare.errors import DataError, InputError
from visionshare.reading import Page, read_page
from visionshare.reading.components import find_pieces
from visionshare.reading.line_reader import reader_preprocessing
from visionshare.reading.lines import characters_of, find_lines
from visionshare.reading.page import enclosing_box

LINES = ["THE QUICK BROWN FOX", "JUMPED OVER 2345 LAZY DOGS", "68 79 42 PAGE 3"]
TEXT = "\n".join(LINES)


def _pasted(*parts):
    """Return a page of (top, left, part) on white."""
    height = max(top + part.shape[0] for top, _, part in parts)
    width = max(left + part.shape[1] for _, left, part in parts)
    page = np.full((height, width), 255, np.uint8)
    for top, left, part in parts:
        window = slice(top, top + part.shape[0]), slice(left, left + part.shape[1])
        page[window] = np.minimum(page[window], part)
    return page


def _turned(page, angle):
    import cv2

    height, width = page.shape
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), -angle, 1.0)
    return cv2.warpAffine(page, turn, (width, height), flags=cv2.INTER_CUBIC, borderValue=255)


@pytest.mark.parametrize("points", [12, 17, 24, 40])
def test_a_clean_page_is_read(reader, font, points):
    assert read_page(reader, render_page(LINES, font, points)).text == TEXT


def test_another_family_that_taught_nothing(reader):
    font = next(path for path in matplotlib_fonts() if path.stem == "cmss10")
    assert read_page(reader, render_page(LINES, font, 18)).text == TEXT


def test_light_letters_on_dark(reader, font):
    page = read_page(reader, 255 - render_page(LINES, font, 16))
    assert (page.text, page.light_on_dark) == (TEXT, True)


@pytest.mark.parametrize("angle", [-4.0, 1.0, 3.0])
def test_a_turned_page_is_leveled(reader, font, angle):
    image = _turned(render_page(LINES, font, 18, margin=1.0), angle)
    page = read_page(reader, image)
    assert page.text == TEXT
    assert page.angle == pytest.approx(angle, abs=0.3)
    for character in page.characters:
        box = character.box
        assert image[box.top : box.bottom, box.left : box.right].min() < 100
    assert read_page(reader, image, deskew=False).angle == 0.0


def test_a_shaded_noisy_scan(reader, font):
    page = render_page(LINES, font, 18) * np.linspace(0.95, 0.5, 3)[:, None][1]
    shade = np.linspace(1.0, 0.5, page.shape[1])
    noise = np.random.default_rng(0).normal(0, 5, page.shape)
    image = np.clip(page * shade + noise, 0, 255).astype(np.uint8)
    assert read_page(reader, image).text == TEXT


def test_the_amounts_of_a_receipt_stay_on_their_lines(reader, font):
    names = render_page(["BREAD", "MILK", "TOTAL"], font, 18, margin=0.1)
    amounts = render_page(["1.99", "20.85", "22.84"], font, 18, margin=0.1)
    height = max(len(names), len(amounts))
    page = np.full((height, names.shape[1] + amounts.shape[1] + 200), 255, np.uint8)
    page[: len(names), : names.shape[1]] = names
    page[: len(amounts), -amounts.shape[1] :] = amounts
    assert read_page(reader, page).text.split("\n") == ["BREAD 1.99", "MILK 20.85", "TOTAL 22.84"]


def test_columns_are_read_one_after_the_other(reader, font):
    title = render_page(["TWO COLUMNS AND A TITLE"], font, 20, margin=0.1)
    left = render_page(["FAR LEFT", "STANDS", "THE FACT"], font, 12, margin=0.1)
    right = render_page(["RATHER", "UPRIGHT", "TEXT"], font, 12, margin=0.1)
    page = read_page(reader, _pasted((0, 0, title), (140, 0, left), (140, 450, right)))
    assert page.text == (
        "TWO COLUMNS AND A TITLE\n\nFAR LEFT\nSTANDS\nTHE FACT\n\nRATHER\nUPRIGHT\nTEXT"
    )
    assert len(page.blocks) == 3


def test_rules_frames_and_specks_are_not_read(reader, font):
    page = render_page(LINES, font, 18, margin=0.6).copy()
    page[40:44, 20:-20] = page[20:-20, 20:23] = 0
    page[20:24, 20:-20] = page[-24:-20, 20:-20] = page[20:-20, -24:-20] = 0
    rng = np.random.default_rng(0)
    for y, x in zip(
        rng.integers(50, 90, 30), rng.integers(50, page.shape[1] - 50, 30), strict=True
    ):
        page[y : y + 2, x : x + 2] = 0
    assert read_page(reader, page).text == TEXT


def test_punctuation_is_told_by_its_size_and_place(reader, font):
    page = read_page(reader, render_page(["FOX, DOG. CAT- 12:30"], font, 20))
    assert page.text == "FOX, DOG. CAT- 12:30"


def test_letters_that_touch_are_cut(reader, font):
    page = render_page(["HEAT"], font, 24).copy()
    rows, cols = np.nonzero(page < 128)
    foot = rows.max() - 1
    page[foot - 3 : foot, cols.min() : cols.max()] = 0
    assert read_page(reader, page).text == "HEAT"


def test_boxes_are_around_the_ink(reader, font):
    image = render_page(["EH  FT"], font, 30)
    page = read_page(reader, image)
    assert [word.text for word in page.words] == ["EH", "FT"]
    rows, cols = np.nonzero(image < 128)
    box = page.lines[0].box
    assert abs(box.left - cols.min()) <= 1
    assert abs(box.right - 1 - cols.max()) <= 1
    assert abs(box.top - rows.min()) <= 1
    assert abs(box.bottom - 1 - rows.max()) <= 1
    assert (page.width, page.height) == (image.shape[1], image.shape[0])
    lefts = [c.box.left for c in page.characters]
    assert lefts == sorted(lefts)


@pytest.mark.parametrize("points", [12, 24])
def test_the_crop_of_a_character_is_prepared_alike_by_predict_and_read(reader, font, points):
    """One image of a character: equal arrays, and on its page nearly equal ones."""
    image = render_page(["HEAT 2345", "FOX 679"], font, points, spacing=2.0)
    lines = [characters_of(line) for line in find_lines(find_pieces(find_ink(image)))]
    characters = [character for line in lines for character in line]
    assert len(characters) == 14
    steps, size = reader_preprocessing(reader), (28, 28)
    for character in characters:
        box = character.box
        crop = np.pad(image[box.top : box.bottom, box.left : box.right], 4, constant_values=255)
        raster = steps.apply(crop, size)
        (line,) = find_lines(find_pieces(find_ink(crop)))
        (piece,) = characters_of(line)
        assert_array_equal(steps.apply_to_ink(piece.darkness, piece.mask, size), raster)
        (read,) = read_page(reader, crop, deskew=False, context=False).characters
        assert read.confidence == pytest.approx(reader.predict_proba(raster[None]).max())
        on_page = steps.apply_to_ink(character.darkness, character.mask, size)
        assert np.corrcoef(on_page.ravel(), raster.ravel())[0, 1] > 0.9
        assert reader.predict(on_page[None]) == reader.predict(raster[None])


def test_a_page_is_prepared_as_its_classifier_says(reader, font):
    assert reader_preprocessing(reader) == PRINTED
    steps = Preprocessing("automatic", contrast=True, crop=True, fit="box", margin=3)
    arrays = reader.weights, reader.intercept, reader.classes_
    other = CompactClassifier(reader.family, *arrays, preprocessing=steps)
    assert reader_preprocessing(other) == steps
    assert read_page(other, render_page(LINES, font, 24)).text == TEXT


def test_limits_are_arguments(reader, font):
    image = render_page(["HEAT"], font, 20)
    with pytest.raises(InputError, match=r"^page: got .* 1 to 99 pixels"):
        read_page(reader, image, max_pixels=99)
    with pytest.raises(DataError, match="more than 3"):
        read_page(reader, image, max_pieces=3)
    assert read_page(reader, image, max_pixels=image.size, max_pieces=4).text == "HEAT"


def test_threads_change_nothing(reader, font):
    image = render_page(LINES, font, 14)
    assert read_page(reader, image, n_jobs=2) == read_page(reader, image)


@pytest.mark.parametrize("value", [0, 90, 255])
def test_an_empty_page_has_no_text(reader, value):
    page = read_page(reader, np.full((90, 120), value, np.uint8))
    assert (page.text, page.blocks) == ("", ())


def test_soft_noise_has_no_text(reader):
    noise = np.random.default_rng(0).normal(220, 7, (400, 300))
    assert read_page(reader, noise.astype(np.uint8)).text == ""


@pytest.mark.exhaustive
def test_a_page_of_salt_and_pepper_is_refused_or_read(reader):
    noise = np.random.default_rng(0).integers(0, 2, (300, 300), np.uint8) * 255
    sparse = np.where(np.random.default_rng(0).random((2000, 2000)) < 0.2, 0, 255).astype(np.uint8)
    assert isinstance(read_page(reader, noise), Page)
    with pytest.raises(DataError, match="pieces of ink"):
        read_page(reader, sparse)


def test_a_giant_page_is_refused_before_work(reader):
    giant = np.broadcast_to(np.uint8(255), (1 << 14, 1 << 14))
    with pytest.raises(InputError, match="page"):
        read_page(reader, giant)


@pytest.mark.parametrize(
    "page", [np.zeros((5, 5)), np.zeros((5, 5, 3), np.uint8), np.zeros((0, 5), np.uint8), None]
)
def test_something_else_than_a_page_is_refused(reader, page):
    with pytest.raises(InputError, match="page"):
        read_page(reader, page)


def test_a_classifier_of_other_images_is_refused():
    family = Pixels().fit(np.zeros((1, 8, 8), np.uint8)).take([3])
    model = CompactClassifier(family, np.ones((2, 1)), np.zeros(2), np.array(["a", "b"]))
    with pytest.raises(InputError, match="train ocr"):
        read_page(model, np.zeros((9, 9), np.uint8))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    height=st.integers(1, 120),
    width=st.integers(1, 120),
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["noise", "blots", "strokes"]),
)
def test_no_image_is_too_strange(reader, height, width, seed, kind):
    rng = np.random.default_rng(seed)
    image = np.full((height, width), 255, np.uint8)
    if kind == "noise":
        image = rng.integers(0, 256, (height, width), np.uint8)
    for _ in range(0 if kind == "noise" else int(rng.integers(1, 30))):
        y, x = int(rng.integers(height)), int(rng.integers(width))
        h, w = (int(v) for v in rng.integers(1, 40 if kind == "blots" else 60, 2))
        if kind == "strokes":
            h = min(h, 3) if rng.random() < 0.5 else h
        image[y : y + h, x : x + w] = rng.integers(0, 256)
    page = read_page(reader, image)
    assert len(page.text.replace(" ", "").replace("\n", "")) == len(page.characters)
    for c in page.characters:
        assert 0 <= c.box.left < c.box.right <= width
        assert 0 <= c.box.top < c.box.bottom <= height
        assert 0 <= c.confidence <= 1
    for word in page.words:
        assert word.box == enclosing_box([c.box for c in word.characters])
