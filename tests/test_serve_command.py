"""visionshare serve, short of a browser."""

import socket
from pathlib import Path

import pytest

from visionshare.cli.main import main

SAMPLE = str(Path(__file__).parent / "archives" / "digits-v1.safetensors")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "70000"], "--port"), (["--body", "much"], "--body"),
        (["--pixels", "0"], "pixels"), (["--threads", "0"], "--threads"),
        (["--host", "no host"], "no host"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_line(options, said, capsys):
    assert main(["serve", SAMPLE, *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert said in error


def test_a_port_that_is_taken_is_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", SAMPLE, "--port", port]) == 2
    assert f"127.0.0.1:{port}: cannot be listened on" in capsys.readouterr().err


def test_a_missing_package_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["serve", "nothing"]) == 2
    assert "pip install 'visionshare[serve]'" in capsys.readouterr().err
