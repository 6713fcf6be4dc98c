"""The report opens offline, says the figures, and shows what it should in a real browser."""

import base64
import io
import json
import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare import CompactClassifier, Deslant, Features, Network, PatchTemplates, Pixels
from visionshare.datasets import load_images
from visionshare.generators.pictures import Panel, Pictures, Row, Stack, Tile
from visionshare.recipes import load_recipe, train
from visionshare.reports import Results, write_report
from visionshare.reports.figures import confusion_matrix
from visionshare.reports.results import error_interval

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    settings = ["learner.rounds=12", "features.parameters.n_templates=20", "data.limit=400"]
    result = train(load_recipe("digits", settings), tmp_path_factory.mktemp("report"))
    return result, result.out / "report.html"


def _results(images, labels, predictions, classes, **more):
    probabilities = np.eye(len(classes))[predictions] * 0.8 + 0.2 / len(classes)
    return Results(images, labels, predictions, probabilities, tuple(classes), **more)


def test_it_stands_alone(report):
    page = report[1].read_text("utf-8")
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    # Its own lines of script sort tables, and fetch nothing.
    assert page.count("<script") == 1
    assert not re.search("fetch|import|XMLHttp|https?://(?!www.w3.org)", page)
    assert f"{report[0].classifier.macs:,}" in page
    headings = ("first features", "Weights by class", "Confusion", "Misclassified", "Cost")
    for heading in (*headings, "Calibration", "By class", "Explanations", "most confused pairs"):
        assert heading in page
    assert "own test split." in page
    results = _evaluated(report[0].classifier)
    low, high = error_interval(results.errors, len(results))
    assert f"<b>{100 * results.error_rate:.2f} %</b>test error ({results.errors} of 599)" in page
    assert f"95 % interval {100 * low:.2f} to {100 * high:.2f} %" in page
    assert f"<b>{100 * results.majority_error:.2f} %</b>error of always answering" in page
    assert f"<b>{100 - 100 * results.error_rate:.2f} %</b>accuracy" in page
    # All mistakes are few: each is in its cell, where the matrix leads.
    assert len(results.mistakes) <= 100
    for i in results.mistakes:
        cell = f"cell-{results.labels[i]}-{results.predictions[i]}"
        assert f'xlink:href="#{cell}"' in page
        own = page.split(f'<h3 id="{cell}">')[1].split("</section>")[0]
        assert f"{100 * results.confidences[i]:.0f}&nbsp;%<small>image {i}</small>" in own
    assert len(page) < 400_000


def test_it_says_what_was_changed_and_when_it_was_written(report):
    page = report[1].read_text("utf-8")
    changed, others = page.split("All other settings")
    changed = changed.split("What differs from the defaults")[1]
    assert "<td>features.<wbr>parameters.<wbr>n_templates</td><td>20</td>" in changed
    assert "<td>seed</td>" in others
    assert "<td>seed</td>" not in changed
    assert f"by visionshare {visionshare.__version__}" in page


def test_it_shows_pictures_and_counts_of_each_class(report):
    page = report[1].read_text("utf-8")
    found = re.findall(r'<h3>(\d) \((\d+)\)</h3>\n<div class="tiles">(.*?)</div></div>', page)
    assert [name for name, _, _ in found] == list("0123456789")
    assert sum(int(count) for _, count, _ in found) == 400
    assert {shown.count("<img ") for _, _, shown in found} == {5}


def test_every_chart_has_a_name_and_every_heading_is_in_the_contents(report):
    page = report[1].read_text("utf-8")
    assert page.count("<svg ") == len(
        re.findall('<svg role="(?:img|group)" aria-label="[^"]+"', page)
    )
    headings = re.findall('<h2 id="(s[0-9]+)">(.*?)</h2>', page)
    assert re.findall('<li><a href="#(s[0-9]+)">(.*?)</a>', page) == headings
    assert len(headings) > 8
    identities = re.findall(' id="([^"]+)"', page)
    assert len(set(identities)) == len(identities)


def test_a_training_by_epochs_has_a_learning_curve(tmp_path):
    curves = {"member-1": [[2.0, 0.5, None], [1.0, 0.25, None]], "refit": [[1.5, 0.4, 0.3]]}
    classifier = CompactClassifier(
        Pixels().fit(np.zeros((1, 2, 2))), np.eye(2, 4), np.zeros(2), np.array(["a", "b"])
    )
    metrics = {"epochs": curves}
    write_report(tmp_path / "r.html", classifier, None, metrics=metrics, settings={})
    page = (tmp_path / "r.html").read_text("utf-8")
    assert page.count('aria-label="Loss and error by epoch"') == 2
    assert ">member-1<" in page
    assert ">refit<" in page


def _evaluated(classifier):
    digits = load_images("digits", "test", None, (8, 8), "gray", classifier.preprocessing)
    return Results.of(classifier, digits.images, np.array(digits.classes)[digits.labels])


def test_without_honest_images_there_is_no_figure(report, tmp_path):
    examples = np.random.default_rng(0).integers(0, 256, (20, 8, 8), np.uint8)
    write_report(
        tmp_path / "r.html", report[0].classifier, None, metrics={}, settings={},
        examples=examples,
    )  # fmt: skip
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "No test figure" in page
    for missing in ("Confusion", "Calibration", "Misclassified", "% error with", "95 %"):
        assert missing not in page


@pytest.mark.parametrize("origin", ["given", "held out", "unknown"])
def test_it_says_where_the_images_come_from(report, tmp_path, origin):
    images, labels = np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 2, 2])
    results = _results(
        images, labels, labels[::-1], "0123456789", origin=origin, source="my photos",
        names=("a/1.png", "b/2.png", "<c>.png", "d.png"),
    )  # fmt: skip
    write_report(tmp_path / "r.html", report[0].classifier, results, metrics={}, settings={})
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "4 images of my photos." in page
    assert ("before training" in page, "own test split" in page, "not known here" in page) == (
        origin == "held out", origin == "given", origin == "unknown",
    )  # fmt: skip
    assert "<small>a/<wbr>1.png</small>" in page
    assert "<c>" not in page


@pytest.mark.parametrize(("k", "numbered"), [(2, True), (30, False), (100, False)])
def test_a_confusion_matrix_is_drawn_for_few_and_for_many_classes(k, numbered):
    rng = np.random.default_rng(0)
    labels, predictions = rng.integers(0, k, (2, 2000))
    classes = [f"a long name {c}" for c in range(k)]
    svg = confusion_matrix(_results(np.zeros((2000, 1)), labels, predictions, classes))
    for c in (0, k - 1):
        assert svg.count(f">{classes[c]}<") == 2
    count = np.sum((labels == 0) & (predictions == 1))
    assert (f">{count}<" in svg) == numbered
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())
    assert max(width, height) < 1100
    assert len(svg) < 150_000


def drawn_with(classes):
    labels = np.arange(40) % len(classes)
    return confusion_matrix(_results(np.zeros((40, 1)), labels, labels, classes))


def test_names_of_classes_stay_as_they_are_in_drawings():
    svg = drawn_with(["0.123456", "12.3456789"])
    assert svg.count(">0.123456<") == svg.count(">12.3456789<") == 2
    # Numbers of the drawing itself are cut.
    assert not re.search(r'[dxy]="[^"]*\d\.\d{3}', svg)


@pytest.mark.parametrize("name", ["\u6570\u5b57", "a\udc80b"])
def test_names_without_letters_in_the_font_or_in_utf_8(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = drawn_with([name, "other"])
    assert svg.count(f">{name.encode('utf-8', 'backslashreplace').decode()}<") == 2


def test_it_says_that_images_are_deslanted(report, tmp_path):
    images = load_images("digits", "train").images[:60]
    patches = PatchTemplates(3, 4, 2, (2.0,), n_patches=500)
    family = Network([Deslant(), Features(patches)]).fit(images)
    classifier = CompactClassifier(
        family, np.ones((2, family.n_features_)), np.zeros(2), np.array(["a", "b"])
    )
    write_report(tmp_path / "r.html", classifier, None, metrics={}, settings={}, examples=images)
    said = "Images are deslanted first"
    assert said in (tmp_path / "r.html").read_text("utf-8")
    assert said not in report[1].read_text("utf-8")


@pytest.mark.whole_report
def test_it_shows_each_layer(tmp_path):
    templates = "features.parameters.templates-1"
    features = ["features.pool=layered", f"{templates}.size=3", f"{templates}.pool=1"]
    features.append("features.parameters.templates-2.n_templates=20")
    small = ["learner.rounds=3", "data.limit=300"]
    result = train(load_recipe("digits", [*features, *small]), tmp_path)
    page = (result.out / "report.html").read_text("utf-8")
    for heading in ("Layers", "Templates of layer 1: maps", "Templates of layer 2"):
        assert re.search(f'<h2 id="s[0-9]+">{heading}', page)
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
        panel = Panel("<h1>", "<p>caption", (Stack("<u>title</u>", rows),))
        pictures = Pictures()
        pictures.panels = lambda numbers: [panel]
        return pictures


@pytest.mark.parametrize("family", [Odd, Pixels])
def test_what_families_say_is_escaped(family, tmp_path):
    images = np.zeros((3, 8, 8), np.uint8)
    labels = np.arange(3)
    fitted = family().fit(images)
    classifier = CompactClassifier(fitted, np.ones((3, 64)), np.zeros(3), labels)
    results = _results(images, labels, labels, "012")
    write_report(tmp_path / "r.html", classifier, results, metrics={}, settings={})
    page = (tmp_path / "r.html").read_text("utf-8")
    for markup in ("<b>odd", "<i>label", "<h1>\n", "<p>caption", "<u>title"):
        assert markup not in page
    assert ("&lt;u&gt;title" in page) == (family is Odd)


def test_names_from_strangers_are_escaped(report, tmp_path):
    result = report[0]
    images = np.zeros((3, 8, 8), np.uint8)
    labels, classes = np.array([0, 1, 2]), ["<script>x</script>", *"123456789"]
    results = _results(images, labels, labels[::-1], classes, source="<u>")
    write_report(
        tmp_path / "r.html", result.classifier, results,
        metrics={"pipeline": "<b>bold</b>"}, settings={"a": {"b": "<em>"}},
    )  # fmt: skip
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "<script>x" not in page
    assert "<b>bold</b>" not in page
    assert "<em>" not in page
    assert "<u>" not in page


def test_color_is_drawn_in_color(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 9, 9, 3), np.uint8)
    labels = np.arange(60) % 3
    images[labels == 0, :, :, 0] = 255
    family = PatchTemplates(3, 4, 2, (2.0,), n_patches=500).fit(images)
    weights = rng.normal(size=(3, family.n_features_))
    classifier = CompactClassifier(family, weights, np.zeros(3), np.array(["x", "y", "z"]))
    results = Results.of(classifier, images, classifier.classes_[labels])
    write_report(tmp_path / "r.html", classifier, results, metrics={}, settings={})
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Templates: gray is zero." in page
    template = re.search(r'<div><img alt="" src="data:image/png;base64,([^"]+)"', page).group(1)
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(template))).convert("RGB"))
    drawn = family.templates_[0] / np.abs(family.templates_[0]).max()
    np.testing.assert_allclose(shown, 127.5 * (1 + drawn), atol=1)


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
    page = np.asarray(Image.open(picture).convert("RGB")).astype(int)
    assert page.shape[:2] == (2400, 1100)
    saturated = (page.max(axis=2) - page.min(axis=2)) > 60
    # Templates and weights are drawn in red and blue over a good part of the page.
    assert saturated[600:2200].mean() > 0.03
