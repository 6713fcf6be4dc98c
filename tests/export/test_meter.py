"""The C of a meter beside Python."""

import subprocess

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

# Without marks: the camera of exported C does not move.
TOML = "\n".join(
    line for line in drawn.TOML.splitlines() if not line.startswith(("reference", "marks"))
)


@pytest.fixture(scope="module")
def meter(tmp_path_factory):
    path = tmp_path_factory.mktemp("meter") / "meter.toml"
    path.write_text(TOML + "\nrotation = 2.5\nmax_rate = 2.0\n")
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


@pytest.mark.parametrize("value", [123.043, 507.503, 248.933, 360.003, 916.37, 59.994, 777.777])
def test_c_reads_what_python_reads(program, meter, value):
    import cv2

    turn = cv2.getRotationMatrix2D((160, 130), -2.5, 1.0)
    frame = cv2.warpAffine(drawn.frame_of(value), turn, (320, 260), borderValue=(205, 205, 205))
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
    frame = drawn.frame_of(123.043)
    text = _read(program, frame)[1].split()[0]
    assert _read(program, frame, "123.00", "1") == _read(program, frame)
    assert _read(program, frame, str(float(text) + 0.1))[1] == "unknown (less than before)"
    assert _read(program, frame, str(float(text) - 3), "1")[1] == "unknown (too fast)"
    assert _read(program, np.full_like(frame, 200))[0] == 1


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
    command = ["export", "reader", "--to", "onnx", "--meter", str(meter), "--out", "m.onnx"]
    assert main(command) == 2
    assert "--to c" in capsys.readouterr().err
