"""Frames of a meter over HTTP."""

import io

import numpy as np
import pytest
from PIL import Image

from tests.reading import test_meter as drawn
from tests.service.clients import ask
from visionshare.cli.main import main
from visionshare.reading import MeterReader
from visionshare.service import service


@pytest.fixture
def meter(tmp_path):
    (tmp_path / "meter.toml").write_text(drawn.TOML)
    Image.fromarray(drawn.frame_of(0.0)).save(tmp_path / "reference.png")
    return tmp_path / "meter.toml"


def asked(frame, query="", kind="image/png"):
    file = io.BytesIO()
    Image.fromarray(frame).save(file, "png")
    headers = {"Content-Type": kind}
    return {
        "method": "POST", "url": f"/meter{query}", "content": file.getvalue(), "headers": headers
    }  # fmt: skip


def test_a_frame_gets_the_reading_that_python_gives(model, meter):
    frame = drawn.frame_of(123.043)
    read, lower, wrong, other, pixels = ask(
        service(model, meter=meter),
        asked(frame),
        asked(frame, "?previous=200"),
        asked(frame, "?previous=x"),
        asked(frame[:100]),
        asked(frame, kind="application/json"),
    )
    expected = MeterReader(meter).read(frame)
    assert read.json()["value"] == expected.text == "123.04"
    assert read.json()["places"] == list(expected.places)
    assert lower.json()["value"] is None
    assert "200" in lower.json()["reason"]
    assert [wrong.status_code, other.status_code, pixels.status_code] == [422, 422, 422]


def test_without_a_meter_there_is_no_such_path(model):
    (answer,) = ask(service(model), asked(np.zeros((9, 9), np.uint8)))
    assert answer.status_code == 404


def test_a_broken_file_ends_the_command(tmp_path, capsys, model):
    (tmp_path / "meter.toml").write_text("size = 3")
    model.save(tmp_path / "m.safetensors")
    command = ["serve", str(tmp_path / "m.safetensors"), "--meter", str(tmp_path / "meter.toml")]
    for workers in ([], ["--workers", "2"]):
        assert main([*command, "--port", "0", *workers]) == 2
        assert "meter.toml" in capsys.readouterr().err
