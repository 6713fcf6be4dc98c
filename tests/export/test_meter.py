"""The C of a meter beside Python."""

import subprocess

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.reading import test_meter as drawn
from visionshare import CompactClassifier, Pixels
from visionshare.cli.main import main
from visionshare.errors import InputError
from visionshare.export import c_program
from visionshare.export.c.meter import with_meter
from visionshare.export.toolchain import run_compiler
from visionshare.reading import MeterReader

TOML = drawn.TOML + "\nrotation = 2.5\nmax_rate = 2.0\n"


def _camera(frame, angle=0.0, move=(0, 0)):
    """Return what a camera shows that is turned by 2.5 degrees, and then by an angle more."""
    turn = cv2.getRotationMatrix2D((160, 130), angle - 2.5, 1.0)
    turn[:, 2] += move
    return cv2.warpAffine(frame, turn, (320, 260), borderValue=(205, 205, 205))


@pytest.fixture(scope="module")
def meter(tmp_path_factory):
    path = tmp_path_factory.mktemp("meter") / "meter.toml"
    path.write_text(TOML)
    Image.fromarray(_camera(drawn.frame_of(0.0))).save(path.parent / "reference.png")
    return path


@pytest.fixture(scope="module")
def program(meter):
    folder = meter.parent / "c"
    assert main(["export", "reader", "--meter", str(meter), "--out", str(folder), "--json"]) == 0
    names = ("classifier.c", "classifier_meter.c", "classifier_meter_example.c")
    sources = [folder / name for name in names]
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    run_compiler([*flags, "-o", folder / "meter", *sources, "-lm"])
    return folder / "meter"


def _read(program, frame, *before):
    file = program.parent / "frame.ppm"
    Image.fromarray(frame).save(file)
    done = subprocess.run(
        [program, file, *before], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout.split("\n")[0]


@pytest.mark.parametrize(
    ("value", "angle", "move"),
    [
        (123.043, 0, (0, 0)),
        (507.503, 3, (10, -10)),
        (248.933, -3, (-10, -10)),
        (360.003, 3, (-10, 10)),
        (916.37, 0, (0, 0)),
        (59.994, -3, (10, 10)),
        (777.777, 0, (0, 0)),
    ],
)
def test_c_reads_what_python_reads(program, meter, value, angle, move):
    frame = _camera(drawn.frame_of(value), angle, move)
    frame = np.clip(frame + np.random.default_rng(0).normal(0, 6, frame.shape), 0, 255)
    frame = frame.astype(np.uint8)
    expected = MeterReader(meter).read(frame)
    code, said = _read(program, frame)
    if expected.value is None:
        assert (code, said.split()[0]) == (1, "unknown")
        return
    text, confidence = said.split()
    assert (code, text) == (0, expected.text)
    assert float(confidence) == pytest.approx(expected.confidence, abs=0.05)


def test_c_knows_no_number_that_cannot_follow(program):
    frame = _camera(drawn.frame_of(123.043))
    text = _read(program, frame)[1].split()[0]
    assert _read(program, frame, "123.00", "1") == _read(program, frame)
    assert _read(program, frame, str(float(text) + 0.1))[1] == "unknown (less than before)"
    assert _read(program, frame, str(float(text) - 3), "1")[1] == "unknown (too fast)"


def test_a_lost_mark_is_unknown(program):
    frame = drawn.frame_of(123.043)
    frame[150:, 235:] = 205
    assert _read(program, _camera(frame)) == (1, "unknown (a mark is lost)")
    frame = drawn.frame_of(123.043)
    frame[185:] = np.roll(frame[185:], 20, axis=0)
    said = "unknown (the marks are not where they are on the reference)"
    assert _read(program, _camera(frame)) == (1, said)


def test_a_camera_that_does_not_move_needs_no_marks(tmp_path):
    lines = [line for line in TOML.splitlines() if not line.startswith(("reference", "marks"))]
    path = tmp_path / "meter.toml"
    path.write_text("\n".join(lines))
    program = with_meter(reader := CompactClassifier.load("reader"), c_program(reader), path)
    for name, text in program.files.items():
        (tmp_path / name).write_text(text)
    source = tmp_path / f"{program.name}_meter.c"
    run_compiler(["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", source])
    assert "align" not in source.read_text()


def test_what_cannot_be_written_is_refused(meter, capsys, tmp_path):
    family = Pixels().fit(np.zeros((1, 28, 28), np.uint8)).take([400])
    small = CompactClassifier(family, np.ones((2, 1)), np.zeros(2), np.array(["0", "1"]))
    with pytest.raises(InputError, match="ten digits"):
        with_meter(small, c_program(small), meter)
    large = tmp_path / "large.toml"
    large.write_text("size = [900, 900]\ndigits = [[10, 10, 300, 400]]\n")
    reader = CompactClassifier.load("reader")
    with pytest.raises(InputError, match="at most 255"):
        with_meter(reader, c_program(reader), large)
    flat = tmp_path / "flat.toml"
    flat.write_text(TOML.replace("[240, 40, 40, 40]", "[100, 106, 40, 24]"))
    Image.fromarray(drawn.frame_of(0.0)).save(tmp_path / "reference.png")
    with pytest.raises(InputError, match="edges"):
        with_meter(reader, c_program(reader), flat)
    command = ["export", "reader", "--to", "onnx", "--meter", str(meter), "--out", "m.onnx"]
    assert main(command) == 2
    assert "--to c" in capsys.readouterr().err
