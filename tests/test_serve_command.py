"""visionshare serve, short of a browser."""

import io
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from visionshare.cli.main import main

SAMPLE = str(Path(__file__).parent / "archives" / "digits-v1.safetensors")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "70000"], "--port"), (["--max-body-size", "much"], "--max-body-size"),
        (["--max-pixels", "0"], "max_pixels"), (["--jobs", "0"], "--jobs"),
        (["--body-timeout", "-1"], "body_timeout"), (["--max-queue", "0"], "max_queue"),
        (["--host", "no host"], "no host"), (["--workers", "0"], "--workers"),
        (["--host-name", "a b"], "--host-name"), (["--token-file", SAMPLE], "--token-file"),
        (["--token-file", "nothing"], "nothing"), (["--header-timeout", "0"], "header_timeout"),
        (["--max-connections", "0"], "max_connections"),
        (["--max-body-memory", "much"], "--max-body-memory"),
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
    assert f"127.0.0.1:{port}: cannot listen there" in capsys.readouterr().err


def test_a_missing_package_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["serve", SAMPLE]) == 2
    assert "pip install 'visionshare[serve]'" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(ending):
    command = [sys.executable, "-m", "visionshare.cli", "serve", SAMPLE, "--port", "0"]
    command += ["--max-body-size", "100KiB"]
    picture = io.BytesIO()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(picture, "png")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            address = process.stdout.readline().split()[1]
            with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
                kind = {"Content-Type": "image/png"}
                answer = client.post("/predict", content=picture.getvalue(), headers=kind)
                assert answer.status_code == 200
                assert answer.json()["label"] in "0123456789"
                # Without a length: sent in chunks.
                endless = (bytes(10_000) for _ in range(20))
                assert client.post("/predict", content=endless, headers=kind).status_code == 413
                assert client.get("/health").json()["status"] == "ok"
            process.send_signal(ending)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    # Ctrl-C is how it is meant to end; other programs want to see their own signal.
    expected = 0 if ending == signal.SIGINT else -signal.SIGTERM
    assert (process.returncode, out, err) == (expected, "", "")
