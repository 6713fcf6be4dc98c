"""The report opens offline, says the figures, and shows what it should in a real browser."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from visionshare import CompactClassifier, Pixels
from visionshare.errors import InputError
from visionshare.generators.pictures import Pictures, Plate, Row, Stack, Tile
from visionshare.recipes import load_recipe, train
from visionshare.reports import write_report

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    settings = ["learner.rounds=12", "features.parameters.n_templates=20", "data.limit=400"]
    result = train(load_recipe("digits", settings), tmp_path_factory.mktemp("report"))
    return result, result.out / "report.html"


def test_it_stands_alone(report):
    page = report[1].read_text("utf-8")
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert "<script" not in page
    assert f"{report[0].classifier.macs:,}" in page
    for heading in ("first features", "Weights by class", "Confusion", "Misclassified", "Cost"):
        assert heading in page


def test_it_says_that_images_are_deslanted(report, tmp_path):
    small = ["learner.rounds=3", "data.limit=300", "features.pool=deslanted-patches"]
    result = train(load_recipe("digits", small), tmp_path)
    said = "Images are deslanted first"
    assert said in (result.out / "report.html").read_text("utf-8")
    assert said not in report[1].read_text("utf-8")


def test_it_shows_each_layer(tmp_path):
    features = ["features.pool=layered", "features.parameters.size=3", "features.parameters.pool=1"]
    small = ["features.parameters.patches.n_templates=20", "learner.rounds=3", "data.limit=300"]
    result = train(load_recipe("digits", [*features, *small]), tmp_path)
    page = (result.out / "report.html").read_text("utf-8")
    for heading in ("Layers", "Templates of layer 1: maps", "Templates of layer 2"):
        assert f"<h2>{heading}" in page
    for layer in result.classifier.layers:
        assert f"<td>{layer.name}</td>" in page
        assert f"<td>{layer.parameters:,}</td><td>{layer.macs:,}</td>" in page
    metrics = json.loads((result.out / "metrics.json").read_text())
    assert metrics["parameters"] == result.classifier.n_parameters
    assert f"<b>{metrics['parameters']:,}</b>parameters" in page
    # Four templates of maps; a mean and two patches for each template of the three rounds.
    assert len(re.findall(r'<img alt="" src="data:', page)) == 4 + 3 * 3
    assert "test images" in page


class Odd(Pixels):
    """Pixels with markup in all that a report shows of them."""

    name = "<b>odd</b>"

    def pictures(self, seen):
        tile = Tile(np.full((2, 2, 3), np.nan))
        rows = (Row((tile,), "<i>label</i>"),)
        plate = Plate("<h1>", "<p>caption", (Stack("<u>title</u>", rows),))
        pictures = Pictures()
        pictures.plates = lambda numbers: [plate]
        return pictures


@pytest.mark.parametrize("family", [Odd, Pixels])
def test_what_families_say_is_escaped(family, tmp_path):
    images = np.zeros((3, 8, 8), np.uint8)
    labels = np.arange(3)
    fitted = family().fit(images)
    classifier = CompactClassifier(fitted, np.ones((3, 64)), np.zeros(3), labels)
    write_report(
        tmp_path / "r.html", classifier, images=images, labels=labels, predictions=labels,
        classes=["0", "1", "2"], metrics={}, settings={},
    )  # fmt: skip
    page = (tmp_path / "r.html").read_text("utf-8")
    for markup in ("<b>odd", "<i>label", "<h1>\n", "<p>caption", "<u>title"):
        assert markup not in page
    assert ("&lt;u&gt;title" in page) == (family is Odd)


def test_names_from_strangers_are_escaped(report, tmp_path):
    result = report[0]
    images = np.zeros((3, 8, 8), np.uint8)
    labels = np.array([0, 1, 2])
    write_report(
        tmp_path / "r.html", result.classifier, images=images, labels=labels,
        predictions=labels[::-1], classes=["<script>x</script>", *"123456789"],
        metrics={"pipeline": "<b>bold</b>"}, settings={"a": {"b": "<i>"}},
    )  # fmt: skip
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "<script>" not in page
    assert "<b>bold</b>" not in page
    with pytest.raises(InputError, match=r"^predictions"):
        write_report(
            tmp_path / "r.html", result.classifier, images=images, labels=labels,
            predictions=labels[:2], classes=list("0123456789"), metrics={}, settings={},
        )  # fmt: skip


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_a_browser_shows_it(report, tmp_path):
    picture = tmp_path / "page.png"
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1100,2400",
        f"--screenshot={picture}", report[1].as_uri(),
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    from PIL import Image

    page = np.asarray(Image.open(picture).convert("RGB")).astype(int)
    assert page.shape[:2] == (2400, 1100)
    saturated = (page.max(axis=2) - page.min(axis=2)) > 60
    # Templates and weights are drawn in red and blue over a good part of the page.
    assert saturated[600:2200].mean() > 0.03
