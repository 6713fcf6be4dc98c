"""Made pictures of fields in unseen fonts, read by visionshare and by others beside it.

``python -m benchmarks.fields --fonts DIR`` draws digits, dates, amounts, serials, seven segments
and boxed numbers in fonts that the reader has not seen, each clean and damaged in five ways, and
counts whole fields right, characters wrong, CPU time, memory, and how far confidences
hold. Readers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from visionshare import load
from visionshare.datasets.fonts import find_fonts, matches, usable_fonts
from visionshare.datasets.glyphs import Fonts
from visionshare.reading import PageReader
from visionshare.recipes import load_recipe

KINDS = ("digits", "date", "amount", "serial", "segments", "boxed")
DAMAGES = ("none", "noise", "blur", "skew", "jpeg", "light")
# Serials leave out what no font tells apart for certain.
_SERIAL = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ-"
_ALLOWED = {
    "digits": "0123456789", "date": "0123456789-/.", "amount": "0123456789.,$€-", "serial": _SERIAL,
    "segments": "0123456789.-", "boxed": "0123456789",
}  # fmt: skip
_RANGES = (0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.01)
# The segments of each digit: top, upper left and right, middle, lower left and right, bottom.
_SEGMENTS = (
    "1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010",
    "1111111", "1111011",
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A picture of a field, and what stands in it."""

    kind: str
    damage: str
    family: str
    text: str
    image: np.ndarray


def made_text(kind: str, rng: np.random.Generator) -> str:
    """Return the text of a field."""

    def number(low: int, high: int) -> str:
        return str(int(rng.integers(low, high)))

    if kind == "date":
        day, month, year = (int(rng.integers(*span)) for span in ((1, 29), (1, 13), (1990, 2036)))
        forms = (
            f"{year}-{month:02}-{day:02}",
            f"{day:02}.{month:02}.{year}",
            f"{day:02}/{month:02}/{year}",
        )
        return forms[int(rng.integers(3))]
    if kind == "amount":
        cents = int(rng.integers(100, 10_000_000))
        text = f"{cents // 100:,}.{cents % 100:02}"
        german = text.translate(str.maketrans(",.", ".,"))
        return (text, german, "$" + text, text.replace(",", ""))[int(rng.integers(4))]
    if kind == "serial":
        letters = "".join(rng.choice(list(_SERIAL[10:-1]), int(rng.integers(2, 5))))
        return f"{letters}-{number(1000, 1_000_000)}"
    if kind == "segments":
        text = number(100, 100_000)
        return text[:-1] + "." + text[-1] if rng.random() < 0.4 else text
    digits = "".join(rng.choice(list("0123456789"), int(rng.integers(4, 9))))
    return digits


def drawn_text(text: str, font: str, rng: np.random.Generator) -> np.ndarray:
    """Return a text, dark on light, in a font."""
    face = ImageFont.truetype(font, int(rng.integers(30, 52)))
    left, top, right, bottom = (int(v) for v in face.getbbox(text))
    edge = int(rng.integers(14, 30))
    picture = Image.new("L", (right - left + 2 * edge, bottom - top + 2 * edge), 235)
    ImageDraw.Draw(picture).text((edge - left, edge - top), text, fill=35, font=face)
    return np.asarray(picture)


def drawn_segments(text: str, rng: np.random.Generator) -> np.ndarray:
    """Return digits of seven segments: light on dark or dark on light, slanted, with gaps."""
    high = int(rng.integers(40, 64))
    wide = round(high * rng.uniform(0.5, 0.6))
    thick = max(4, round(high * rng.uniform(0.1, 0.15)))
    gap = max(1.0, thick * rng.uniform(0.1, 0.25))
    step = wide + round(high * rng.uniform(0.3, 0.45))
    n_digits = sum(c.isdigit() for c in text)
    canvas = np.zeros((high + 60, step * n_digits + 80), np.uint8)
    half = thick / 2
    x = 36.0
    for c in text:
        if c == ".":
            side = thick * 1.1
            x0 = x - step + wide + (step - wide - side) / 2
            corners = [
                (x0, 30 + high - side),
                (x0 + side, 30 + high - side),
                (x0 + side, 30 + high),
                (x0, 30 + high),
            ]
            cv2.fillPoly(canvas, [np.round(corners).astype(np.int32)], 255)
            continue
        middle = high / 2
        level = [(0.0, half), (middle, middle), (high - half, high - half)]
        for on, segment in zip(_SEGMENTS[int(c)], range(7), strict=True):
            if on == "0":
                continue
            if segment in (0, 3, 6):
                y = level[segment // 3][1]
                a, b = half + gap, wide - half - gap
                points = [
                    (a, y),
                    (a + half, y - half),
                    (b - half, y - half),
                    (b, y),
                    (b - half, y + half),
                    (a + half, y + half),
                ]
            else:
                column = half if segment in (1, 4) else wide - half
                a, b = (
                    (half + gap, middle - gap) if segment < 3 else (middle + gap, high - half - gap)
                )
                points = [
                    (column, a),
                    (column + half, a + half),
                    (column + half, b - half),
                    (column, b),
                    (column - half, b - half),
                    (column - half, a + half),
                ]
            moved = np.array(points) + np.array([x, 30.0])
            cv2.fillPoly(canvas, [np.round(moved).astype(np.int32)], 255)
        x += step
    shear = rng.uniform(0, 0.15)
    turn = np.array([[1, -shear, shear * canvas.shape[0]], [0, 1, 0]], np.float32)
    canvas = cv2.warpAffine(canvas, turn, (canvas.shape[1] + 20, canvas.shape[0]))
    lit = canvas.astype(np.float32) / 255
    ground, ink = (30, 220) if rng.random() < 0.5 else (200, 40)
    return np.round(ground + lit * (ink - ground)).astype(np.uint8)


def boxed(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a field with a frame around its text."""
    ys, xs = np.nonzero(image < 128)
    pad = int(rng.integers(5, 12))
    thick = int(rng.integers(1, 4))
    framed = image.copy()
    start = int(xs.min()) - pad, int(ys.min()) - pad
    cv2.rectangle(framed, start, (int(xs.max()) + pad, int(ys.max()) + pad), 35, thick)
    return framed


def damaged(image: np.ndarray, damage: str, rng: np.random.Generator) -> np.ndarray:
    """Return a picture as a bad scanner or a camera gives it."""
    values: np.ndarray = image.astype(np.float32)
    border = float(np.median(image[0]))
    if damage == "noise":
        values += rng.normal(0, 25, image.shape)
    elif damage == "blur":
        values = cv2.GaussianBlur(values, (0, 0), 2.0)
    elif damage == "skew":
        rows, cols = image.shape
        turn = cv2.getRotationMatrix2D((cols / 2, rows / 2), float(rng.choice([-3, 3])), 1.0)
        values = cv2.warpAffine(values, turn, (cols, rows), borderValue=border)
    elif damage == "light":
        slope = np.linspace(1.0, 0.35, image.shape[1])[:: int(rng.choice([-1, 1]))]
        values = values * slope
    found = np.clip(np.round(values), 0, 255).astype(np.uint8)
    if damage == "jpeg":
        coded = cv2.imencode(".jpg", found, [cv2.IMWRITE_JPEG_QUALITY, 15])[1]
        found = np.asarray(cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE))
    return found


def made_fields(folder: str, per_cell: int, seed: int = 0) -> Iterator[Field]:
    """Yield fields of all kinds and damages in the families that test the reader."""
    patterns = load_recipe("reader").data.fonts.tests
    usable = usable_fonts(find_fonts(folder), Fonts().characters)
    # The first font of a family in the order of paths is a plain one, mostly.
    fonts = {f.family: f for f in reversed(usable) if matches(f.family, patterns)}
    for kind in KINDS:
        for damage in DAMAGES:
            for number, (family, font) in enumerate(sorted(fonts.items())):
                for i in range(per_cell):
                    place = [seed, KINDS.index(kind), DAMAGES.index(damage), number, i]
                    rng = np.random.default_rng(place)
                    text = made_text(kind, rng)
                    if kind == "segments":
                        image = drawn_segments(text, rng)
                    else:
                        image = drawn_text(text, str(font.path), rng)
                    if kind == "boxed":
                        image = boxed(image, rng)
                    yield Field(kind, damage, family, text, damaged(image, damage, rng))


#: From a field to its text and, from a reader that states one, the confidence.
Reader = Callable[[Field], tuple[str, float]]


def our_reader(classifier: str) -> Reader:
    """Return visionshare with a list of characters."""
    model = load(classifier)
    readers = {kind: PageReader(model, allowed) for kind, allowed in _ALLOWED.items()}

    def read(field: Field) -> tuple[str, float]:
        page = readers[field.kind].read(field.image)
        return page.text, math.prod(line.confidence for line in page.lines) if page.lines else 0.0

    return read


def tesseract_reader() -> Reader:
    """Return Tesseract with a list of characters, as one line."""
    import tesserocr

    api = tesserocr.PyTessBaseAPI(path=os.environ.get("TESSDATA_PREFIX", ""), psm=7)

    def read(field: Field) -> tuple[str, float]:
        api.SetVariable("tessedit_char_whitelist", _ALLOWED[field.kind])
        api.SetImage(Image.fromarray(field.image))
        return str(api.GetUTF8Text()), math.nan

    return read


def rapid_reader(detects: bool) -> Reader:
    """Return RapidOCR; it knows no list of characters, so that others are left out afterwards."""
    from rapidocr_onnxruntime import RapidOCR

    engine: Any = RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)

    def read(field: Field) -> tuple[str, float]:
        image = cv2.cvtColor(field.image, cv2.COLOR_GRAY2BGR)
        found, _ = engine(image, use_det=detects, use_cls=False)
        # With detection: box, text, score; without: text, score.
        text = "".join(part[-2] for part in found or [])
        return "".join(c for c in text if c in _ALLOWED[field.kind]), math.nan

    return read


def program_reader(*command: str) -> Reader:
    """Return a program that reads a PNM file; ``{}`` stands for the allowed characters."""
    subprocess.run([command[0], "-h"], capture_output=True, check=False)

    def read(field: Field) -> tuple[str, float]:
        image = field.image
        # These programs take dark text for granted: they get what they can read.
        if np.median(image) < image.mean():
            image = 255 - image
        # gocr takes "a-z" for a range, and "--" for a dash.
        allowed = _ALLOWED[field.kind].replace("-", "--")
        with tempfile.NamedTemporaryFile(suffix=".pgm") as file:
            Image.fromarray(image).save(file.name)
            words = [word.replace("{}", allowed) for word in command]
            done = subprocess.run([*words, file.name], capture_output=True, text=True, check=False)
        return done.stdout, math.nan

    return read


def edits(one: str, other: str) -> int:
    """Return the least number of changed, added and removed characters."""
    before = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]


def measured(make: Callable[[], Reader], fields: list[Field], show: bool) -> dict[str, Any]:
    """Return whole fields right by kind and damage, edits per 100 characters, time and memory."""
    memory = peak_memory()
    read = make()
    right: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    stated: list[tuple[float, bool]] = []
    wrong = 0
    times = []
    for field in fields:
        start = _cpu_seconds()
        given, confidence = read(field)
        times.append(1000 * (_cpu_seconds() - start))
        text = "".join(given.split())
        stated.append((confidence, text == field.text))
        wrong += edits(text, field.text)
        for key in ("all", field.kind, field.damage):
            right[key][0] += text == field.text
            right[key][1] += 1
        if show and text != field.text:
            print(f"{field.kind} {field.damage} {field.family}: {field.text} read as {text}")
    n = sum(len(field.text) for field in fields)
    figures: dict[str, Any] = {key: f"{good}/{of}" for key, (good, of) in right.items()}
    figures["wrong %"] = round(100 * wrong / n, 2)
    figures["CPU ms, mean"] = round(float(np.mean(times)), 2)
    figures["CPU ms, median"] = round(float(np.median(times)), 2)
    figures["MiB more"] = peak_memory() - memory
    if not math.isnan(stated[0][0]):
        figures["reliability"] = reliability(stated)
    return figures


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of the programs that it ran."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_memory() -> int:
    """Return the most memory that this process has held, in MiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def reliability(stated: list[tuple[float, bool]]) -> list[tuple[str, int, float, float]]:
    """Return, for each range of stated confidences: how many, their mean, and how many right."""
    rows = []
    for low, high in pairwise(_RANGES):
        part = [(sure, good) for sure, good in stated if low <= sure < high]
        if part:
            mean, good = np.mean(part, axis=0).round(3).tolist()
            rows.append((f"{low:g} to {high:g}", len(part), mean, good))
    return rows


def page_of_capitals(font: str, seed: int = 0) -> np.ndarray:
    """Return a page of twelve lines, 430 capitals and digits at 16 points and 200 dpi."""
    rng = np.random.default_rng(seed)
    letters = list(_SERIAL[:-1])
    words = [["".join(rng.choice(letters, 6)) for _ in range(6)] for _ in range(12)]
    text = "\n".join(" ".join(line) for line in words)
    face = ImageFont.truetype(font, 44)
    picture = Image.new("L", (1400, 1100), 245)
    ImageDraw.Draw(picture).multiline_text((60, 60), text, fill=30, font=face, spacing=40)
    return np.asarray(picture)


def measured_pages(classifier: str, font: str, n: int) -> dict[str, Any]:
    """Return the CPU time of a page of capitals, and memory after the first and the last of n."""
    page = page_of_capitals(font)
    reader = PageReader(load(classifier))
    before = peak_memory()
    n_characters = len(reader.read(page).characters)
    first = peak_memory()
    times = []
    for _ in range(n - 1):
        start = _cpu_seconds()
        reader.read(page)
        times.append(_cpu_seconds() - start)
    return {
        "characters": n_characters, "CPU s, median": round(float(np.median(times)), 4),
        "MiB before": before, "MiB after 1": first, f"MiB after {n}": peak_memory(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fonts", required=True, help="folder with the fonts that test")
    parser.add_argument("--classifier", default="reader")
    parser.add_argument("--per-cell", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="readers to measure")
    parser.add_argument("--pages", type=int, default=0, help="read a page so many times instead")
    parser.add_argument("--show", action="store_true", help="print the fields that are misread")
    given = parser.parse_args()
    if given.pages:
        font = usable_fonts(find_fonts(given.fonts), Fonts().characters)[0]
        print(measured_pages(given.classifier, str(font.path), given.pages))
        return
    fields = list(made_fields(given.fonts, given.per_cell, given.seed))
    print(f"{len(fields)} fields, {len({f.family for f in fields})} families")
    readers: dict[str, Callable[[], Reader]] = {
        "visionshare": lambda: our_reader(given.classifier),
        "tesseract": tesseract_reader,
        "rapidocr": lambda: rapid_reader(detects=True),
        "rapidocr, one line": lambda: rapid_reader(detects=False),
        "gocr": lambda: program_reader("gocr", "-C", "{}"),
        "ssocr": lambda: program_reader("ssocr", "-d", "-1", "-T", "-c", "decimal"),
    }
    for name in given.only or readers:
        # ssocr reads nothing but displays.
        given_to = [f for f in fields if name != "ssocr" or f.kind == "segments"]
        try:
            print(name, measured(readers[name], given_to, given.show), flush=True)
        except (ImportError, OSError) as error:
            print(f"{name}: left out ({error})", file=sys.stderr)


if __name__ == "__main__":
    main()
