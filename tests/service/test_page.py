"""The page, in a real browser, against the real command."""

import base64
import io
import math
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tests.service.clients import Server
from visionshare import CompactClassifier, PatchTemplates
from visionshare.batch import explain_picture
from visionshare.datasets import load_dataset
from visionshare.reading.meter_file import read_meter


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """Return a folder of pictures that the page offers."""
    folder = tmp_path_factory.mktemp("examples")
    images = load_dataset("digits", "test")
    for i in range(14):
        picture = np.kron(images.images[i], np.ones((6, 6))).astype(np.uint8)
        Image.fromarray(picture).save(folder / f"{i:02}.png")
    return folder


@pytest.fixture(scope="module")
def address(digits, examples):
    command = [sys.executable, "-m", "visionshare.cli", "serve", str(digits), "--port", "0"]
    command += ["--examples", str(examples)]
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


def _drop(browser, picture):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    encoded = base64.b64encode(file.getvalue()).decode()
    # The page may fetch from its own service alone: the bytes are made in it.
    browser.value(
        f"(() => {{ const bytes = Uint8Array.from(atob('{encoded}'), (c) => c.charCodeAt(0));"
        " const data = new DataTransfer();"
        " data.items.add(new File([bytes], 'picture.png', {type: 'image/png'}));"
        " document.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true,"
        " cancelable: true})); })()"
    )
    browser.wait("document.body.dataset.state === 'answered'")


def test_a_dropped_picture_is_classified_and_explained(browser, address, model):
    image = load_dataset("digits", "test").images[3]
    picture = np.full((90, 120), 230, np.uint8)
    picture[20:84, 30:94] = 230 - 0.7 * np.kron(image, np.ones((8, 8)))
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    said = explain_picture(model, file).explanation
    browser.open(address)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    assert browser.value("document.getElementById('shown').hidden") is True
    _drop(browser, picture)
    assert browser.value("document.querySelector('.best').dataset.name") == said.label
    rows = browser.value(
        "Array.from(document.querySelectorAll('.feature'), (row) =>"
        " Array.from(row.children, (cell) => cell.textContent))"
    )
    strongest = said.top_features(said.class_index(), 10)
    assert [row[0] for row in rows] == [
        f"{rank}: patches {said.numbers[j]}" for rank, j in enumerate(strongest, 1)
    ]
    amounts = [float(row[2].replace("−", "-")) for row in rows]
    evidence = said.evidence[said.class_index(), strongest]
    np.testing.assert_allclose(amounts, evidence, atol=0.006)
    size = browser.value("[document.getElementById('shown').width, "
                         "document.getElementById('shown').height]")  # fmt: skip
    assert size == [336, 252]
    # The first box is where the explanation says.
    top, _, left, _ = said.boxes[strongest[0]] * 336 / 120
    browser.value("document.querySelector('.feature').dispatchEvent(new Event('pointerenter'))")
    pixel = browser.value(
        "Array.from(document.getElementById('shown').getContext('2d')"
        f".getImageData({int(left) + 2}, {int(top) + 2}, 1, 1).data)"
    )
    red_or_blue = (178, 24, 43) if evidence[0] > 0 else (33, 102, 172)
    np.testing.assert_allclose(pixel[:3], red_or_blue, atol=40)
    browser.value(
        "document.getElementById('explain').value = '1';"
        "document.getElementById('explain').dispatchEvent(new Event('change'))"
    )
    browser.wait("document.querySelectorAll('#why th')[2].textContent === '1'")
    assert browser.value("document.getElementById('problem').textContent") == ""


VISIBLE = "document.getElementById('{}').checkVisibility({{visibilityProperty: true}})"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_visit_at_the_width_of_a_screen_and_of_a_phone(browser, address, model, width, scheme):
    browser.open(address)
    browser.show(width, scheme)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    # 1) Nothing is said of a picture before there is one.
    shown = {name: browser.value(VISIBLE.format(name)) for name in ("none", "scores", "busy")}
    assert shown == {"none": True, "scores": False, "busy": False}
    assert browser.value("document.getElementById('title').textContent") == "classifier"
    ground = browser.value("getComputedStyle(document.documentElement).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    # 2) An example takes the place of what was drawn.
    browser.draw([(60, 400), (120, 420)])
    browser.wait("document.querySelectorAll('#examples img[src]').length === 7")
    browser.value("document.querySelector('#examples button').click()")
    browser.wait("document.body.dataset.state === 'answered'")
    image = np.kron(load_dataset("digits", "test").images[0], np.ones((6, 6))).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    said = explain_picture(model, file).explanation
    assert browser.value("document.querySelector('.best').dataset.name") == said.label
    assert browser.value("new Set(pen.getImageData(0, 0, pad.width, pad.height).data).size") == 2
    # 3) The camera.
    browser.value("document.getElementById('camera').click()")
    browser.wait("!document.getElementById('video').hidden"
                 " && document.body.dataset.state === 'answered'"
                 " && document.querySelector('.best').dataset.name === '0'")  # fmt: skip
    browser.value("document.getElementById('camera').click()")
    # 4) What programs need.
    command = browser.value("document.getElementById('curl').textContent")
    assert command == f"curl -F file=@photo.jpg {address}predict"
    browser.value("document.getElementById('card').open = true")
    browser.wait("document.querySelector('#card pre').textContent.startsWith('# ')")
    assert browser.value("document.documentElement.scrollWidth") <= width
    browser.open(address + "docs")
    browser.show(width, scheme)
    browser.wait("document.querySelectorAll('h2').length > 10")
    assert browser.value("document.documentElement.scrollWidth") <= width


def test_what_is_busy_says_so(browser, address):
    browser.open(address)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    browser.value("window.fetch = () => new Promise(() => {}); take(new File(['x'], 'x.png'))")
    browser.wait(VISIBLE.format("busy"))
    assert not browser.value(VISIBLE.format("none"))


def test_what_is_no_picture_is_said_where_it_was_dropped(browser, address):
    browser.open(address)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    browser.value(
        "(() => { const data = new DataTransfer();"
        " data.items.add(new File(['hello'], 'notes.txt', {type: 'text/plain'}));"
        " document.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true,"
        " cancelable: true})); })()"
    )
    browser.wait("document.body.dataset.state === 'failed'")
    problem = browser.value(
        "[document.getElementById('problem').textContent,"
        " document.getElementById('problem').getBoundingClientRect().top"
        " - document.getElementById('drop').getBoundingClientRect().bottom]"
    )
    assert "cannot be read as an image" in problem[0]
    assert 0 <= problem[1] < 40
    _drop(browser, np.full((20, 20), 100, np.uint8))
    assert browser.value("document.getElementById('problem').textContent") == ""


def test_the_picture_shows_through_boxes_that_lie_on_each_other(browser, address):
    browser.open(address)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    picture = np.zeros((40, 40), np.uint8)
    picture[8:32, 4:12] = 255
    _drop(browser, picture)
    assert browser.value("answer.features.length") == 10
    # Black in the middle of ten boxes that are all alike.
    pixel = browser.value(
        "(() => { const box = [0, 40, 0, 40];"
        " answer.features.forEach((f, i) => { f.box = box; f.everywhere = false;"
        " f.evidence[answer.explained] = 1; }); showOverlay(-1);"
        " return Array.from(document.getElementById('shown').getContext('2d')"
        ".getImageData(168, 168, 1, 1).data); })()"
    )
    assert 0.3 * 178 < pixel[0] < 0.65 * 178


def test_bars_begin_and_end_together(browser, address):
    browser.open(address)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    browser.value("document.querySelectorAll('.row > :first-child')[4].textContent = 'long name'")
    _drop(browser, np.full((20, 20), 100, np.uint8))
    edges = browser.value(
        "Array.from(document.querySelectorAll('.bar'), (bar) =>"
        " [bar.getBoundingClientRect().left, bar.getBoundingClientRect().right])"
    )
    assert len(edges) == 10
    assert len({tuple(edge) for edge in edges}) == 1


def test_what_is_not_drawn_has_no_pad(browser, tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (200, 8, 8, 3), np.uint8)
    family = PatchTemplates(3, 4, 2, (2.0,), n_patches=500).fit(images)
    classes = np.array([f"kind {c}" for c in range(30)])
    weights = rng.normal(size=(30, family.n_features_))
    file = tmp_path / "photos.safetensors"
    CompactClassifier(family, weights, np.zeros(30), classes).save(file)
    server = Server(path=file)
    try:
        browser.open(server.url)
        browser.wait("document.body && document.body.dataset.ready === 'yes'")
        assert browser.value("document.getElementById('drawing').hidden") is True
        assert browser.value("document.getElementById('camera').hidden") is False
        _drop(browser, rng.integers(0, 256, (30, 40, 3), np.uint8))
        rows = browser.value(
            "Array.from(document.querySelectorAll('.row'))"
            ".filter((row) => !row.hidden).sort((a, b) => a.style.order - b.style.order)"
            ".map((row) => parseFloat(row.querySelector('.probability').textContent))"
        )
        assert len(rows) == 10
        assert rows == sorted(rows, reverse=True)
    finally:
        server.process.send_signal(signal.SIGINT)
        server.process.communicate(timeout=60)


def test_clearing_and_its_own_rules(browser, address):
    browser.events.clear()
    browser.open(address)
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    browser.wait("document.querySelectorAll('#examples img[src]').length === 7")
    browser.value("document.getElementById('clear').click()")
    assert browser.value("document.body.dataset.state") == "empty"
    # A script that the page did not bring does not run.
    browser.value("document.body.append(Object.assign(document.createElement('script'),"
                  " {textContent: 'window.foreign = 1'}))")  # fmt: skip
    assert browser.value("window.foreign") is None
    loaded = browser.value("performance.getEntriesByType('resource').map((e) => e.name)")
    examples = [f"{address}examples/{number}" for number in range(7)]
    assert {name for name in loaded if not name.startswith("blob:")} == {
        address + "health", *examples
    }  # fmt: skip
    said = [e["params"]["entry"]["text"] for e in browser.events if e["method"] == "Log.entryAdded"]
    assert [text for text in said if "Content Security Policy" not in text] == []


def test_the_regions_of_a_meter_are_drawn_to_a_file_that_the_reader_takes(
    browser, address, tmp_path
):
    browser.open(address + "regions")
    browser.wait("document.body && document.body.dataset.ready === 'yes'")
    left, top = browser.value("(({x, y}) => [x, y])(picture.getBoundingClientRect())")
    scale = browser.value("picture.getBoundingClientRect().width / picture.width")

    def draw(kind, *points):
        browser.value(f"kind.value = '{kind}'")
        browser.draw([(left + x * scale, top + y * scale) for x, y in points])

    browser.value("color.value = 'dark'; rotation.value = 34.5; decimals.value = 1")
    draw("digit", (100, 60), (150, 130))
    draw("digit", (210, 130), (160, 60))
    draw("pointer", (300, 200), (340, 230))
    # Neither a click, nor a mark alone, is a region.
    draw("digit", (20, 20), (21, 21))
    draw("mark", (400, 300), (450, 340))
    file = tmp_path / "meter.toml"
    file.write_text(browser.value("document.getElementById('toml').textContent"))
    meter = read_meter(file)
    assert (meter.size, meter.rotation, meter.decimals) == ((640, 480), 34.5, 1)
    # The mouse stands between pixels.
    drawn = np.array([(100, 60, 50, 70), (160, 60, 50, 70)])
    assert np.abs(np.array(meter.digits) - drawn).max() <= 2
    (pointer,) = meter.pointers
    assert np.hypot(*np.subtract(pointer.center, (300, 200))) <= 2
    assert abs(pointer.radius - 50) <= 2
    assert pointer.color == "dark"
    assert not meter.marks
