"""The reading of a meter from a camera's frame: aligned by marks, digits of wheels, pointers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from PIL import ImageFont

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier
from visionshare.datasets.fonts import draw_character, matplotlib_fonts
from visionshare.datasets.ink import find_ink
from visionshare.errors import InputError
from visionshare.reading.alphabet import Alphabet
from visionshare.reading.components import Piece
from visionshare.reading.line_reader import LineReader
from visionshare.reading.lines import characters_of
from visionshare.reading.meter_file import Meter, Pointer, Region, read_meter
from visionshare.reading.page import Box
from visionshare.reading.page_reader import check_reader

# Of a window's height: what is lower is a speck or the edge of a wheel.
_MIN_HEIGHT = 0.2
# Of a pointer's radius: nearer is its axis.
_INNER = 0.55
# Of a needle, and how much it differs from the dial.
_MIN_PIXELS = 8
_MIN_CONTRAST = 12.0
# A digit that a window cuts is lower than this, in heights of a digit, and begins or ends there.
_CUT = 0.9
_AT_EDGE = 0.15
# Fonts that matplotlib brings along: how digits look that a window cuts.
_FONTS = ("DejaVuSans.ttf", "cmss10.ttf")
_SHARPNESS = 10.0
# No digit is less probable than this: a wheel may be dirty.
_FLOOR = 0.01
_LEAST = 1e-4
# Marks keep their distances to this fraction, and have edges: gray values that differ by this.
_STRETCH = 0.06
_MIN_DEVIATION = 2.0
# A wheel that stands further from where the next place says is not understood, in digits.
_MAX_ERROR = 0.4


@dataclass(frozen=True)
class MeterReading:
    """The reading of a meter: a number, or unknown with a reason.

    Attributes
    ----------
    value : Decimal or None
        None where the reading is unknown.
    confidence : float
        Of the least certain digit or pointer.
    reason : str
        Why the reading is unknown.
    places : tuple of float
        The position of each wheel and pointer, from 0 to 10, as seen.

    Examples
    --------
    >>> MeterReading(Decimal("530.07"), 0.9).text, MeterReading(None, reason="no mark").text
    ('530.07', 'unknown')
    """

    value: Decimal | None
    confidence: float = 0.0
    reason: str = ""
    places: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """The number, or "unknown"."""
        return "unknown" if self.value is None else str(self.value)


class MeterReader:
    """Reads the frames of one meter.

    Parameters
    ----------
    meter : path or Meter
        The meter's TOML file, or its description; with marks, a file.
    classifier : CompactClassifier, optional
        Of characters; the bundled reader by default.

    Examples
    --------
    >>> from visionshare.reading import Meter
    >>> reader = MeterReader(Meter(size=(60, 40), digits=((10, 5, 20, 30),)))
    >>> reader.read(np.zeros((40, 60), np.uint8)).reason
    'digit 1: nothing to be seen'
    """

    def __init__(
        self, meter: Meter | str | os.PathLike[str], classifier: CompactClassifier | None = None
    ) -> None:
        self.meter = meter if isinstance(meter, Meter) else read_meter(meter)
        model = CompactClassifier.load("reader") if classifier is None else classifier
        check_reader(model)
        alphabet = Alphabet(class_names(model.classes_), "digits")
        self._reader = LineReader(model, alphabet, None, False, 1)
        self._columns = [alphabet.texts.index(digit) for digit in "0123456789"]
        if self.meter.marks and isinstance(meter, Meter):
            raise InputError("meter", meter, "the path of its TOML file: it has marks")
        folder = Path() if isinstance(meter, Meter) else Path(meter).parent
        self._marks = mark_images(self.meter, folder)

    def read(
        self,
        frame: np.ndarray | str | os.PathLike[str],
        previous: Decimal | float | str | None = None,
        hours: float | None = None,
    ) -> MeterReading:
        """Read a frame.

        Parameters
        ----------
        frame : path, or ndarray of uint8
            A picture file, or its pixels (H, W, 3) in RGB, or (H, W) where no pointer is red.
        previous : number, optional
            The reading before: a smaller one is unknown, unless the meter may decrease.
        hours : float, optional
            Since then; with the meter's ``max_rate`` a larger change is unknown.

        Raises
        ------
        DataError
            If a file cannot be read as a picture.
        InputError
            If the frame is no picture of the meter's size.
        """
        pixels = frame if isinstance(frame, np.ndarray) else _frame_of(frame)
        try:
            # 1) turn the frame, and move it to where its marks are on the reference
            picture = self._aligned(_checked_frame(self.meter, pixels))
            # 2) the position of each wheel and pointer
            seen = self._wheels(picture) + [_pointer_at(picture, p) for p in self.meter.pointers]
            for number, (_, confidence) in enumerate(seen, 1):
                if confidence < self.meter.least_confidence:
                    name = "digit" if number <= len(self.meter.digits) else "pointer"
                    place = number if name == "digit" else number - len(self.meter.digits)
                    raise _UnknownError(f"{name} {place}: not certain ({confidence:.2f})")
            # 3) from the last to the first place: what stands behind says what is carried
            positions = tuple(position for position, _ in seen)
            value = self._number(positions)
            _check_change(self.meter, value, previous, hours)
        except _UnknownError as error:
            return MeterReading(None, reason=str(error))
        confidence = min(confidence for _, confidence in seen)
        return MeterReading(value, confidence, "", tuple(round(p, 2) for p in positions))

    def _aligned(self, frame: np.ndarray) -> np.ndarray:
        """Return a frame turned and moved so that its marks lie where the reference has them."""
        turn = turn_of(self.meter)
        wanted = np.array([complex(x + w / 2, y + h / 2) for x, y, w, h in self.meter.marks])
        # Turned marks are found less exactly: a second round starts near the truth.
        for _ in range(2 if self._marks else 0):
            gray = cv2.cvtColor(_warped(frame, turn), cv2.COLOR_RGB2GRAY)
            found = np.empty(len(wanted), complex)
            for number, (mark, image) in enumerate(zip(self.meter.marks, self._marks, strict=True)):
                place, match = _found_mark(gray, image, mark, self.meter.search)
                if match < self.meter.least_match:
                    raise _UnknownError(f"mark {number + 1} is lost (match {match:.2f})")
                found[number] = wanted[number] + complex(*place) - complex(*mark[:2])
            # The best turn, stretch and move is a linear function of complex numbers.
            apart, before = wanted - wanted.mean(), found - found.mean()
            square = np.vdot(before, before).real
            factor = np.vdot(before, apart) / square if square > 0 else 0j
            errors = np.abs(factor * before - apart)
            if abs(abs(factor) - 1) > _STRETCH or errors.max() > _STRETCH * np.abs(apart).max():
                raise _UnknownError("the marks are not where they are on the reference")
            shift = wanted.mean() - factor * found.mean()
            a, b = factor.real, factor.imag
            turn = np.array([[a, -b], [b, a]]) @ turn
            turn[:, 2] += shift.real, shift.imag
        return _warped(frame, turn)

    def _wheels(self, picture: np.ndarray) -> list[tuple[float, float]]:
        """Return the position of each wheel, and how certain it is."""
        gray = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
        windows = [_pieces_of(gray, region) for region in self.meter.digits]
        # Digits that are whole say how high a digit is.
        whole = [
            piece.box.height
            for pieces, (_, _, _, rows) in zip(windows, self.meter.digits, strict=True)
            for piece in pieces
            if piece.box.top > 0 and piece.box.bottom < rows and piece.box.height > 0.4 * rows
        ]
        found = []
        for number, (pieces, region) in enumerate(zip(windows, self.meter.digits, strict=True), 1):
            height = float(np.median(whole)) if whole else 0.7 * region[3]
            if not pieces:
                raise _UnknownError(f"digit {number}: nothing to be seen")
            found.append(self._wheel(pieces, region[3], height))
        return found

    def _wheel(self, pieces: list[Piece], rows: int, height: float) -> tuple[float, float]:
        """Return the position of a wheel, from 0 to 10, and how certain it is."""
        # Of a digit that the window cuts, the edge inside of the window says where it stands.
        complete = [p for p in pieces if _CUT * height <= p.box.height <= height / _CUT]
        # Beside a whole digit, others are the edges of wheels and dirt, or say the same.
        pieces = complete[:1] or pieces
        pitch = self.meter.pitch * height
        # There is a digit in each window, even if a reflection makes it unlike all.
        digits = self._reader.probabilities(pieces)[:, self._columns] + _LEAST
        digits /= digits.sum(axis=1, keepdims=True)
        offsets = []
        for i, piece in enumerate(pieces):
            top, bottom = piece.box.top, piece.box.bottom
            is_low = piece.box.height < _CUT * height
            cut_above = is_low and top <= _AT_EDGE * rows
            middle = bottom - height / 2 if cut_above else top + height / 2
            offsets.append((middle - rows / 2) / pitch)
            if cut_above or (is_low and bottom >= (1 - _AT_EDGE) * rows):
                digits[i] = _cut_digits(piece, cut_above, round(height))
        # Each digit is a hypothesis of the uppermost piece: the next one shows the next digit.
        sizes = np.array([min(piece.box.height / height, 1.0) for piece in pieces])
        scores = np.zeros(10)
        for i, (row, size) in enumerate(zip(digits, sizes, strict=True)):
            scores += size * np.log(np.roll(row, -i) + _FLOOR)
        weights = np.exp(scores - scores.max())
        first = int(np.argmax(scores))
        # The piece that is nearest to the middle says where the wheel stands.
        nearest = int(np.argmin(np.abs(offsets)))
        position = (first + nearest - offsets[nearest]) % 10
        return position, float(weights[first] / weights.sum())

    def _number(self, positions: tuple[float, ...]) -> Decimal:
        """Return the number of places whose positions may be between two digits."""
        n_wheels = len(self.meter.digits)
        places: list[int] = []
        # How far the place behind has come, from 0 to 10.
        behind: float | None = None
        for i in reversed(range(len(positions))):
            position = positions[i]
            if behind is None:
                digit = int(position + (0.0 if i >= n_wheels else 0.2)) % 10
            else:
                # A wheel before wheels moves only while the one behind goes from 9 to 0.
                is_pointer_behind = i + 1 >= n_wheels
                carried = behind / 10 if is_pointer_behind else max(0.0, behind - 9)
                error = (position - carried + 0.5) % 1 - 0.5
                digit = round(position - carried - error) % 10
                if i < n_wheels and abs(error) > _MAX_ERROR:
                    raise _UnknownError(f"digit {i + 1}: between two digits")
            places.append(digit)
            fraction = position % 1 if behind is None else carried
            behind = digit + fraction
        text = "".join(map(str, reversed(places)))
        return Decimal(text).scaleb(-self.meter.decimals)


class _UnknownError(Exception):
    """The reading is unknown, for this reason."""


def _frame_of(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the pixels of a frame's file, (H, W, 3) RGB."""
    from visionshare.datasets.decoding import decode_image

    return np.asarray(decode_image(path, "color"))


def _checked_frame(meter: Meter, pixels: np.ndarray) -> np.ndarray:
    """Return a frame of the meter's size, (H, W, 3)."""
    width, height = meter.size
    good = isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8
    if not good or pixels.shape not in ((height, width), (height, width, 3)):
        given = getattr(pixels, "shape", type(pixels).__name__)
        raise InputError("frame", given, f"a frame of {width} x {height} pixels, uint8")
    return pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)


def turn_of(meter: Meter) -> np.ndarray:
    """Return the map (2, 3) from a frame to the turned frame that the regions describe."""
    width, height = meter.size
    return np.asarray(cv2.getRotationMatrix2D((width / 2, height / 2), meter.rotation, 1.0))


def _warped(frame: np.ndarray, turn: np.ndarray) -> np.ndarray:
    return np.asarray(cv2.warpAffine(frame, turn, (frame.shape[1], frame.shape[0])))


def mark_images(meter: Meter, folder: Path) -> list[np.ndarray]:
    """Return the gray picture of each mark, from the turned reference."""
    if not meter.marks:
        return []
    frame = _checked_frame(meter, _frame_of(folder / meter.reference))
    gray = cv2.cvtColor(_warped(frame, turn_of(meter)), cv2.COLOR_RGB2GRAY)
    images = [
        gray[top : top + height, left : left + width] for left, top, width, height in meter.marks
    ]
    for mark, image in zip(meter.marks, images, strict=True):
        if image.std() < _MIN_DEVIATION:
            raise InputError("marks", list(mark), "something with edges on the reference")
    return images


def _found_mark(
    gray: np.ndarray, image: np.ndarray, mark: Region, search: int
) -> tuple[tuple[float, float], float]:
    """Return where a mark is on a picture, and how well it matches."""
    left, top, width, height = mark
    x = max(0, left - search)
    y = max(0, top - search)
    around = gray[y : top + height + search, x : left + width + search]
    scores = cv2.matchTemplate(around, image, cv2.TM_CCOEFF_NORMED)
    _, best, _, (found_x, found_y) = cv2.minMaxLoc(scores)
    return (float(x + found_x), float(y + found_y)), float(best)


def _pieces_of(gray: np.ndarray, region: Region) -> list[Piece]:
    """Return the pieces of ink in a window that may be digits, from above."""
    left, top, width, height = region
    ink = find_ink(np.ascontiguousarray(gray[top : top + height, left : left + width]))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink.mask.astype(np.uint8))
    pieces = []
    for i, (x, y, w, h, _) in enumerate(stats[1:].tolist(), 1):
        window = slice(y, y + h), slice(x, x + w)
        # The edge of a wheel is broad and low.
        if h >= _MIN_HEIGHT * height and w < 0.95 * width:
            pieces.append(Piece(Box(x, y, x + w, y + h), labels[window] == i, ink.darkness[window]))
    pieces = characters_of(sorted(pieces, key=lambda p: p.box.left)) if pieces else []
    # Beside each other are a digit and what is none of it: the larger counts.
    pieces.sort(key=lambda p: -p.box.height * p.box.width)
    kept: list[Piece] = []
    for piece in pieces:
        beside = [
            k for k in kept
            if min(k.box.bottom, piece.box.bottom) - max(k.box.top, piece.box.top)
            > 0.3 * piece.box.height
        ]  # fmt: skip
        if not beside:
            kept.append(piece)
    return sorted(kept, key=lambda p: p.box.top)[:2]


def _cut_digits(piece: Piece, cut_above: bool, height: int) -> np.ndarray:
    """Return the probabilities (10,) of the digits, parts of which look like this piece."""
    rows = min(piece.box.height, height)
    seen = np.pad(np.where(piece.mask, piece.darkness, 0)[:rows], ((2, 2), (8, 8)))
    matches = np.full(10, -1.0)
    for drawn in _drawn_digits(height):
        for digit, glyph in enumerate(drawn):
            part = glyph[-rows:] if cut_above else glyph[:rows]
            part = part[:, : seen.shape[1]]
            scores = cv2.matchTemplate(seen.astype(np.uint8), part, cv2.TM_CCOEFF_NORMED)
            matches[digit] = max(matches[digit], float(scores.max()))
    likely = np.exp(_SHARPNESS * (matches - matches.max()))
    return np.asarray(likely / likely.sum())


@lru_cache(maxsize=8)
def _drawn_digits(height: int) -> list[list[np.ndarray]]:
    """Return the ten digits of a height in some fonts, light on black."""

    def resized(glyph: np.ndarray) -> np.ndarray:
        width = max(2, round(glyph.shape[1] * height / glyph.shape[0]))
        return np.pad(cv2.resize(glyph, (width, height)), ((0, 0), (3, 3)))

    return [[resized(glyph) for glyph in font] for font in drawn_digits()]


def drawn_digits() -> list[list[np.ndarray]]:
    """Return the ten digits of 64 points in some fonts, light on black."""
    fonts = [path for path in matplotlib_fonts() if path.name in _FONTS]
    faces = [ImageFont.truetype(str(path), 64) for path in fonts]
    return [
        [255 - draw_character(face, digit, margin=0) for digit in "0123456789"] for face in faces
    ]


def _pointer_at(picture: np.ndarray, pointer: Pointer) -> tuple[float, float]:
    """Return where a pointer stands, from 0 to 10, and how certain it is."""
    x, y = pointer.center
    rows, cols = np.mgrid[: picture.shape[0], : picture.shape[1]]
    distance = np.hypot(rows - y, cols - x)
    ring = (distance >= _INNER * pointer.radius) & (distance <= 1.05 * pointer.radius)
    values = picture[ring].astype(np.float64)
    if pointer.color == "red":
        signal = values[:, 0] - np.maximum(values[:, 1], values[:, 2])
    else:
        signal = values.mean(axis=1) * (1 if pointer.color == "light" else -1)
    # The needle is what stands out from the dial by more than half of what stands out most.
    dial = float(np.median(signal))
    needle = float(np.partition(signal, -_MIN_PIXELS)[-_MIN_PIXELS])
    if needle - dial < _MIN_CONTRAST:
        return 0.0, 0.0
    weights = np.maximum(signal - (dial + needle) / 2, 0.0)
    # Clockwise from above.
    angles = np.arctan2(cols[ring] - x, y - rows[ring])
    mean = np.sum(weights * np.exp(1j * angles)) / weights.sum()
    turn = np.rad2deg(np.angle(mean)) - pointer.zero
    position = (turn if pointer.clockwise else -turn) / 36 % 10
    return float(position), float(np.abs(mean))


def _check_change(
    meter: Meter,
    value: Decimal,
    previous: Decimal | float | str | None,
    hours: float | None,
) -> None:
    """Raise if a reading cannot follow the one before."""
    if previous is None:
        return
    try:
        before = Decimal(str(previous))
    except ArithmeticError:
        raise InputError("previous", previous, "a number") from None
    if hours is not None and not hours > 0:
        raise InputError("hours", hours, "a number above 0")
    if value < before and not meter.may_decrease:
        raise _UnknownError(f"{value} is less than {before} before")
    if meter.max_rate and hours is not None:
        largest = Decimal(str(meter.max_rate * hours))
        if abs(value - before) > largest:
            raise _UnknownError(f"{value} is more than {largest} away from {before}")
