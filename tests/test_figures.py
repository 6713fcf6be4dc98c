"""Figures of README and of the pages are those of the records in docs/results; none is a target."""

import ast
import json
import re
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import pytest

from scripts.clusters import growth
from scripts.reproduce import first_page

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "decisions" not in page.parts
]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _record(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def test_the_page_of_many_images_has_the_figures_of_records_and_model():
    page = growth.PAGE.read_text(encoding="utf-8")
    assert growth.with_block(page) == page
    assert growth.with_block("a\n<!-- figures --><!-- end -->\nb").endswith("<!-- end -->\nb")
    assert growth.block().count("model: recipe") == len(growth.MODELED)
    # More pictures on as many workers take longer.
    assert growth.modeled(10**7, 100).seconds > growth.modeled(10**6, 100).seconds


class Figures(NamedTuple):
    """Of a pipeline: the mean error in percent of its seeds, and the most that one of them has."""

    error: float
    macs: int
    features: int | None = None
    flash: tuple[int, ...] = ()


def _of_pipelines():
    found = {}
    for name in ("mnist", "layers"):
        runs = _record(name)["runs"]
        for pipeline in {run["pipeline"] for run in runs.values()}:
            # Other names are steps and trials.
            seeds = [runs[key] for key in runs if re.fullmatch(rf"{pipeline}-[0-9]", key)]
            found[pipeline] = Figures(
                mean(100 * run["test_error_rate"] for run in seeds),
                max(run["macs"] for run in seeds),
                max(run["features"] for run in seeds),
            )
    for data in ("mnist", "fashion-mnist", "cifar10"):
        for row in _record(f"edge/{data}")["rows"]:
            if row["name"].endswith(", few bits") and row["optimize"] == "-Os":
                flash = tuple(core["flash"] for core in row["cores"].values())
                figures = Figures(mean(row["errors"]), row["macs"], None, flash)
                found[row["name"].removesuffix(", few bits")] = figures
    return found


PIPELINES = _of_pipelines()


def _rows(page):
    """Yield the rows of tables about pipelines as dictionaries, with the names of the columns."""
    header: list[str] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if not cells or not header:
            header = cells
        elif re.fullmatch(r"`[\w-]+`", cells[0]) and cells[0].strip("`") in PIPELINES:
            yield cells[0].strip("`"), dict(zip(header, cells, strict=True))


def _number(cell):
    """Return the number that a cell begins with, and how far its last digit may round."""
    digits, unit = re.match(r"([\d.,]+)( million| KB)?", cell).groups()
    factor = {" million": 10**6, " KB": 10**3, None: 1}[unit]
    decimals = len(digits.partition(".")[2])
    return float(digits.replace(",", "")) * factor, 0.5 * factor * 10.0**-decimals


ROWS = [
    pytest.param(name, row, id=f"{page.relative_to(ROOT)}-{name}")
    for page in PAGES
    # Fashion-MNIST's page has MNIST's recipes on other images.
    if page.stem != "fashion-mnist"
    for name, row in _rows(page)
    if "test error, %" in row
]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_table_has_the_figures_of_the_record(name, row):
    figures = PIPELINES[name]
    expected = {
        "test error, %": [figures.error],
        "multiply-accumulates": [figures.macs],
        "multiply-accumulates per image": [figures.macs],
        "features": [figures.features],
        "what it is": [figures.features],
        "flash on a small core": figures.flash,
        "flash, bytes": figures.flash,
    }
    compared = 0
    for column, cell in row.items():
        values = [value for value in expected.get(column, ()) if value is not None]
        if values and cell[:1].isdigit():
            number, rounding = _number(cell)
            near = [abs(number - value) <= rounding * 1.001 for value in values]
            assert any(near), f"{column}: {cell}; the record has {values}"
            compared += 1
    assert compared >= 1


def test_the_tables_of_the_first_pages_are_compared():
    compared = [row.id for row in ROWS]
    for page, rows in (("index", 8), ("mnist", 4), ("layers", 7)):
        assert sum(name.startswith(f"docs/results/{page}.md") for name in compared) == rows


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_sentence_has_the_figures_of_the_record(page):
    """`NAME` has X % error, or in Y KB, is said with the mean of the record, on every page."""
    text = " ".join(page.read_text(encoding="utf-8").split())
    for name, error in re.findall(r"`([\w-]+)` (?:has )?([\d.]+) % (?:error|in)\b", text):
        if name in PIPELINES:
            rounding = 0.5001 * 10.0 ** -len(error.partition(".")[2])
            assert abs(float(error) - PIPELINES[name].error) <= rounding, name


def _peer(data, name):
    record = _record(f"peers-{data}")
    images = record["conditions"]["test images"]
    runs = record["results"][name]["runs"].values()
    return mean(100 * run["errors"] / images for run in runs), mean(run["n_bytes"] for run in runs)


def _of_image_classifier(data):
    runs = _record("own-pictures")
    found = [runs[key]["error"] for key in runs if re.match(rf"{data}, .* ImageClassifier ", key)]
    assert len(found) == 3
    return 100 * mean(found)


FLASH = {name: size for name, (size, _) in first_page.figures(_record("edge/mnist")).items()}
LENET = _peer("deformed", "LeNet-5, 1 M, deformed")
MICROSECONDS = _record("peers-deformed")["results"]["visionshare, mnist-quick, C"]["times"]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (r"from ([\d.]+) KB of flash on a microcontroller", FLASH["mnist-2k, few bits"]),
        (r"(\d+) µs per image on a PC", MICROSECONDS[0]),
        (r"error in ([\d.]+) KB of flash", FLASH["mnist-6k, few bits"]),
        (r"`mnist-4k` has ([\d.]+) %", PIPELINES["mnist-4k"].error),
        (r"% in ([\d.]+) KB\.", FLASH["mnist-4k, few bits"]),
        (r"`ImageClassifier` has ([\d.]+) % error", _of_image_classifier("cifar10")),
        (r"`LeNet-5, 1 M` has ([\d.]+) % error", LENET[0]),
        (r"with (\d+) KB of weights", LENET[1] / 1e3),
    ],
)
def test_a_sentence_of_the_readme_has_the_figure_of_the_record(said, value):
    (number,) = re.findall(said, " ".join(README.split()))
    assert abs(float(number) - value) <= 0.5001 * 10.0 ** -len(number.partition(".")[2])


def test_the_chart_of_the_first_page_is_drawn_from_the_record():
    drawn = (ROOT / "docs" / "images" / "error-and-flash.svg").read_text(encoding="utf-8")
    assert first_page.chart(_record("edge/mnist")) == drawn
    assert set(first_page.figures(_record("edge/mnist"))) == set(first_page.LABELS)


def test_the_demonstration_has_the_figures_of_its_run():
    images = ROOT / "docs" / "images"
    run = json.loads((images / "demonstration.json").read_text(encoding="utf-8"))
    drawn = (images / "demonstration.svg").read_text(encoding="utf-8")
    pictures = re.findall(r'href="(.*?)"', drawn)
    folders = re.findall(r"<text[^>]*>([\w-]+)/</text>", drawn)
    strips = list(zip(folders, pictures[:-1], strict=True))
    assert first_page.demonstration(run, strips, pictures[-1]) == drawn
    assert run["core"]["flash"] <= 16 * 1024


@pytest.mark.parametrize(
    "page",
    [*PAGES, *sorted((ROOT / "scripts" / "reproduce" / "pages").rglob("*.j2"))],
    ids=lambda page: page.name,
)
def test_no_page_shows_what_was_asked_of_a_figure(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    targets = r"\| asked|\*\*Asked|Asked:|asked (at most|of )|was asked (of|for\*)|not reached;"
    assert not re.search(targets, text)


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "gallery").glob("*.py")), ids=lambda p: p.stem
)
def test_a_page_of_the_gallery_asserts_what_it_claims(page):
    """The assertions run when the site is built, where a failed page is an error."""
    tree = ast.parse(page.read_text(encoding="utf-8"))
    claims = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert claims
    # Of what the page computed, not of constants.
    assert all(any(isinstance(n, ast.Name) for n in ast.walk(claim)) for claim in claims)
