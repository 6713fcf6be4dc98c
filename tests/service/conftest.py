"""A digit classifier, its service in this process, and a browser."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time

import pytest
from PIL import Image, ImageDraw

from visionshare.classifier import load
from visionshare.cli.main import main

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# The browser looks for its pipes at 3 and 4.
ARRANGE = """
import os, sys
pipes = [os.dup(os.dup(os.dup(int(n)))) for n in sys.argv[1:3]]
for target, pipe in enumerate(pipes, 3):
    os.dup2(pipe, target)
os.execv(sys.argv[3], sys.argv[3:])
"""


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """Return the file of the classifier of digits that the bundled recipe makes."""
    out = tmp_path_factory.mktemp("digits")
    assert main(["train", "digits", "--out", str(out), "--jobs", "1"]) == 0
    return out / "classifier.safetensors"


@pytest.fixture(scope="session")
def model(digits):
    return load(digits)


def _video(path):
    """Write what the browser's camera sees: a dark zero on a light ground."""
    frame = Image.new("L", (640, 480), 230)
    ImageDraw.Draw(frame).ellipse((240, 100, 400, 380), outline=30, width=45)
    frame.save(path, "jpeg")
    path.write_bytes(path.read_bytes() * 10)
    return path


class Browser:
    """A browser without a window that is told what to do through a pair of pipes."""

    def __init__(self, program, folder):
        its_input, self.writing = os.pipe()
        self.reading, its_output = os.pipe()

        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={folder}", "--remote-debugging-pipe",
            "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-video-capture={_video(folder / 'camera.mjpeg')}",
            "--window-size=1000,900", "about:blank",
        ]  # fmt: skip
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(
            [sys.executable, "-c", ARRANGE, str(its_input), str(its_output), *command],
            pass_fds=(its_input, its_output),
            stdout=quiet,
            stderr=quiet,
        )
        os.close(its_input)
        os.close(its_output)
        self.number, self.received, self.session, self.events = 0, b"", None, []

    def call(self, method, **parameters):
        """Return the result of a command of the DevTools protocol."""
        self.number += 1
        said = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            said["sessionId"] = self.session
        os.write(self.writing, json.dumps(said).encode() + b"\0")
        while True:
            answer = self._next(60)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds):
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.reading], [], [], seconds)
            part = os.read(self.reading, 1 << 20) if ready else b""
            assert part, "the browser does not answer"
            self.received += part
        line, _, self.received = self.received.partition(b"\0")
        return json.loads(line)

    def open(self, address):
        """Open a page, with its log turned on."""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=address)

    def show(self, width, scheme):
        """Give pages a width in pixels, and a color scheme."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def value(self, expression):
        """Return what a JavaScript expression evaluates to, as plain values."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression, seconds=60):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.02)

    def draw(self, points):
        """Draw with the mouse through these points of the page."""
        for i, (x, y) in enumerate(points):
            kind = "mousePressed" if i == 0 else "mouseMoved"
            self._mouse(kind, x, y)
        self._mouse("mouseReleased", *points[-1])

    def _mouse(self, kind, x, y):
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1
        )

    def close(self):
        with contextlib.suppress(OSError, AssertionError):
            self.session = None
            self.call("Browser.close")
        for end in (self.reading, self.writing):
            os.close(end)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Return a browser; there may be none here."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium is installed")
    instance = Browser(program, tmp_path_factory.mktemp("profile"))
    yield instance
    instance.close()
