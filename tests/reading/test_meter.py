"""Meters that are drawn: wheels between digits, pointers, marks, readings before, broken files."""

import json
from decimal import Decimal

import cv2
import numpy as np
import pytest
from PIL import Image

from visionshare.cli.main import main
from visionshare.datasets.samples import METER as TOML
from visionshare.datasets.samples import meter_frame as frame_of
from visionshare.errors import DataError, InputError
from visionshare.reading import Meter, MeterReader, Pointer
from visionshare.reading import meter as meters
from visionshare.reading.meter_file import read_meter

WINDOWS = tuple((60 + 50 * i, 40, 40, 60) for i in range(3))


@pytest.fixture
def meter(tmp_path):
    (tmp_path / "meter.toml").write_text(TOML)
    Image.fromarray(frame_of(0.0)).save(tmp_path / "reference.png")
    return tmp_path / "meter.toml"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (123.04, "123.04"),
        (507.5, "507.50"),
        (248.93, "248.93"),
        (360.0, "360.00"),
        (916.37, "916.37"),
    ],
)
def test_wheels_and_pointers_are_one_number(meter, value, shown):
    reading = MeterReader(meter).read(frame_of(value + 0.003))
    assert reading.text == shown, reading
    assert reading.confidence > 0.5
    assert len(reading.places) == 5


@pytest.mark.parametrize(("angle", "move"), [(-3, (10, -10)), (3, (-10, 10))])
def test_a_frame_that_moved_reads_the_same(meter, angle, move):
    turn = cv2.getRotationMatrix2D((160, 130), angle, 1.0)
    turn[:, 2] += move
    frame = cv2.warpAffine(frame_of(123.043), turn, (320, 260), borderValue=(205, 205, 205))
    assert MeterReader(meter).read(frame).text == "123.04"


def test_a_lost_mark_and_an_empty_window_are_unknown(meter):
    reader = MeterReader(meter)
    frame = frame_of(123.043)
    covered = frame.copy()
    covered[150:, 235:] = 205
    assert reader.read(covered).reason.startswith("mark 2 is lost")
    covered = frame.copy()
    covered[40:100, 110:150] = 205
    reading = reader.read(covered)
    assert (reading.value, reading.reason) == (None, "digit 2: nothing to be seen")
    covered = frame.copy()
    covered[130:230, 140:250] = 205
    assert reader.read(covered).reason.startswith("pointer 2: not certain")


def test_marks_that_are_found_at_one_place_are_unknown(meter, monkeypatch):
    def found(gray, image, mark, search):
        return (100 - mark[2] / 2, 100 - mark[3] / 2), 1.0

    monkeypatch.setattr(meters, "_found_mark", found)
    reading = MeterReader(meter).read(frame_of(123.043))
    assert reading.value is None
    assert reading.reason == "the marks are not where they are on the reference"


def test_a_reading_follows_the_one_before(tmp_path):
    meter = Meter(size=(320, 260), digits=WINDOWS, max_rate=2.0)
    reader = MeterReader(meter)
    frame = frame_of(123.0)
    assert reader.read(frame, previous=122).value == Decimal(123)
    assert reader.read(frame, previous="120", hours=2).value == Decimal(123)
    assert "less than 124" in reader.read(frame, previous=124).reason
    assert "more than 2.0 away" in reader.read(frame, previous=120, hours=1).reason
    with pytest.raises(InputError, match="previous"):
        reader.read(frame, previous="many")


def test_another_frame_is_refused(meter):
    with pytest.raises(InputError, match="320 x 260"):
        MeterReader(meter).read(np.zeros((26, 32, 3), np.uint8))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("decimals = 2", "decimal = 2", "Did you mean 'decimals'"),
        ("decimals = 2", "decimals = 9", "decimals"),
        ("decimals = 2", "decimals =", "no TOML"),
        ("[60, 40, 40, 60]", "[60, 40, 400, 60]", "digits"),
        ("[60, 40, 40, 60]", '"left"', "digits"),
        ("radius = 40}", "radius = 40, color = 'blue'}", "color"),
        ("reference.png", "none.png", "no reference frame"),
        (", [250, 190, 40, 40]", "", "marks"),
        ("size = [320, 260]", "", "size: got 'nothing'"),
    ],
)
def test_a_broken_file_is_an_error(meter, before, after, message):
    meter.write_text(TOML.replace(before, after))
    with pytest.raises(DataError, match=message):
        read_meter(meter)


def test_pointers_may_be_dark_and_turn_the_other_way():
    frame = np.full((100, 100, 3), 200, np.uint8)
    cv2.line(frame, (50, 50), (85, 50), (20, 20, 20), 5)
    for clockwise, shown in ((True, "2"), (False, "7")):
        pointer = Pointer((50, 50), 35, "dark", 0.0, clockwise)
        assert MeterReader(Meter(size=(100, 100), pointers=(pointer,))).read(frame).text == shown


def test_the_command_reads_frames(meter, tmp_path, capsys):
    for name, value in (("a.png", 123.043), ("b.png", 124.013), ("c.png", 122.003)):
        Image.fromarray(frame_of(value)).save(tmp_path / name)
    frames = [str(tmp_path / name) for name in ("a.png", "b.png")]
    assert main(["meter", str(meter), frames[0]]) == 0
    assert capsys.readouterr().out == "123.04\n"
    assert main(["meter", str(meter), *frames, str(tmp_path / "c.png"), "--json"]) == 1
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["value"] for one in said] == ["123.04", "124.01", None]
    assert "less than 124.01" in said[2]["reason"]
