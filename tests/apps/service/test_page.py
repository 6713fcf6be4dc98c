"""The page, in a real browser, against the real command."""

import math
import signal
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def address(digits):
    command = [sys.executable, "-m", "visionshare.cli", "serve", str(digits), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = process.stdout.readline()
    assert said.startswith("serving http://127.0.0.1:"), said
    yield said.split()[1]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    # Ctrl-C is how it is meant to end.
    assert (process.returncode, out, err) == (0, "", "")


def _arc(cx, cy, rx, ry, start, stop):
    angles = [math.radians(start + (stop - start) * i / 24) for i in range(25)]
    return [(cx + rx * math.cos(a), cy + ry * math.sin(a)) for a in angles]


# On a canvas of the unit square, not where or as large as the classifier's own digits are.
STROKES = {
    "0": [_arc(0.4, 0.55, 0.16, 0.28, 0, 360)],
    "1": [[(0.55, 0.2), (0.62, 0.12), (0.62, 0.8)]],
    "3": [_arc(0.5, 0.32, 0.17, 0.16, -150, 90) + _arc(0.5, 0.65, 0.2, 0.17, -90, 150)],
    "7": [[(0.25, 0.2), (0.65, 0.2), (0.42, 0.85)], [(0.36, 0.52), (0.62, 0.52)]],
}


@pytest.mark.parametrize("digit", STROKES)
def test_the_right_bar_wins(browser, address, digit):
    browser.open(address)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    box = browser.value("(({x, y, width, height}) => [x, y, width, height])"
                        "(document.getElementById('pad').getBoundingClientRect())")  # fmt: skip
    for stroke in STROKES[digit]:
        browser.draw([(box[0] + x * box[2], box[1] + y * box[3]) for x, y in stroke])
    browser.wait("document.body.dataset.state === 'answered'")
    rows = browser.value("Array.from(document.querySelectorAll('.row'), (row) => [row.dataset.name,"
                         " row.querySelector('i').getBoundingClientRect().width])")  # fmt: skip
    assert [name for name, _ in rows] == list("0123456789")
    assert max(rows, key=lambda row: row[1])[0] == digit, rows
    assert browser.value("document.querySelector('.best').dataset.name") == digit
    assert browser.value("document.getElementById('seen').width") == 8
    assert browser.value("document.getElementById('problem').textContent") == ""


def test_clearing_and_its_own_rules(browser, address):
    browser.events.clear()
    browser.open(address)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    browser.value("document.getElementById('clear').click()")
    assert browser.value("document.body.dataset.state") == "empty"
    # A script that the page did not bring does not run.
    browser.value("document.body.append(Object.assign(document.createElement('script'),"
                  " {textContent: 'window.foreign = 1'}))")  # fmt: skip
    assert browser.value("window.foreign") is None
    loaded = browser.value("performance.getEntriesByType('resource').map((e) => e.name)")
    assert loaded == [address + "health"]
    said = [e["params"]["entry"]["text"] for e in browser.events if e["method"] == "Log.entryAdded"]
    assert [text for text in said if "Content Security Policy" not in text] == []
