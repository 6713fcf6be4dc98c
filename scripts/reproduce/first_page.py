"""The pictures of the first page: error against flash, and a folder that ends on a small core.

``python -m scripts.reproduce.first_page`` draws the chart from the figures of ``edge/mnist.json``,
and the picture that others show beside a link to the site. With ``--run FOLDER`` it also trains on
the sample signs, takes the figures of a small core and draws the demonstration. Chromium takes the
pictures.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from PIL import Image

from scripts.reproduce.results import RESULTS, commit, machine, templates
from visionshare.files.durable import write_text

IMAGES = RESULTS.parent / "images"
STATIC = RESULTS.parent / "_static"
CORE = "cortex-m0plus"
TICKS = {"x": (5, 10, 20, 50, 100, 200), "y": (0.3, 1, 3, 10, 30)}


class Label(NamedTuple):
    """A program of the chart: its name there, and where the name is written beside the point."""

    text: str
    right: int = 12
    down: int = 5
    anchor: str = "start"
    ours: bool = False


LABELS = {
    "mnist-2k, few bits": Label("mnist-2k", -6, -14, ours=True),
    "mnist-4k, few bits": Label("mnist-4k", 10, -6, ours=True),
    "mnist-6k, few bits": Label("mnist-6k", -6, 22, "end", True),
    "mnist-compact, int4": Label("mnist-compact, int4", -6, 22, "end", True),
    "BitNetMCU, CNN 64": Label("BitNetMCU", 4, -14),
    "TinyMaix, mnist_valid": Label("TinyMaix"),
    "LeNet-5, int8, emx-onnx-cgen": Label("LeNet-5, int8"),
    "separable CNN, int8, emx-onnx-cgen": Label("separable CNN, int8"),
    "emlearn, 5 trees of 60 leaves": Label("5 trees (emlearn)"),
    "emlearn, 10 trees of 200 leaves": Label("10 trees"),
    "emlearn, 30 trees of 400 leaves": Label("30 trees", -12, 5, "end"),
}
JOINED = (
    "mnist-2k, few bits", "mnist-4k, few bits", "mnist-6k, few bits", "mnist-compact, int4"
)  # fmt: skip


def _across(kilobytes: float) -> float:
    """Return where a size stands on the logarithmic axis from 2 to 250 KB."""
    return round(70 + 555 * math.log(kilobytes / 2) / math.log(250 / 2), 1)


def _up(error: float) -> float:
    """Return where an error stands on the logarithmic axis from 0.22 to 40 %."""
    return round(300 - 280 * math.log(error / 0.22) / math.log(40 / 0.22), 1)


def figures(record: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return flash in KB and mean error in percent of each program of the chart."""
    found: dict[str, tuple[float, float]] = {}
    for row in record["rows"]:
        # Of a program that was compiled twice, the smaller one.
        if row["name"] in LABELS and (row["optimize"] == "-Os" or row["name"] not in found):
            found[row["name"]] = row["cores"][CORE]["flash"] / 1e3, mean(row["errors"])
    return found


def chart(record: dict[str, Any]) -> str:
    """Return the chart of error against flash as SVG."""
    at = {name: (_across(size), _up(error)) for name, (size, error) in figures(record).items()}
    points = [dict(zip("xy", at[name], strict=True), **label._asdict())
              for name, label in LABELS.items()]  # fmt: skip
    return (
        templates()
        .get_template("first_page/chart.svg.j2")
        .render(
            points=points,
            line="M" + "L".join("{} {}".format(*at[name]) for name in JOINED),
            x_ticks=[{"at": _across(tick), "text": tick} for tick in TICKS["x"]],
            y_ticks=[{"at": _up(tick), "text": tick} for tick in TICKS["y"]],
        )
    )


def demonstration(run: dict[str, Any], folders: list[tuple[str, str]], report: str) -> str:
    """Return the demonstration as SVG: pictures of each class, the report, figures of the core."""
    core = run["core"]
    return (
        templates()
        .get_template("first_page/demonstration.svg.j2")
        .render(
            folders=folders,
            report=report,
            seconds=run["seconds"],
            errors=run["errors"],
            test_images=run["test_images"],
            flash=f"{core['flash']:,}",
            memory=f"{core['ram'] + core['stack']:,}",
            instructions=f"{core['instructions'] / 1e6:.1f}",
            different=core["different_labels"],
            images=core["images"],
        )
    )


def _as_url(image: Image.Image, colors: int) -> str:
    """Return a picture of few colors as a URL that holds it."""
    data = io.BytesIO()
    image.convert("RGB").quantize(colors).save(data, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def _strip(folder: Path) -> str:
    """Return the first four pictures of a folder beside each other."""
    strip = Image.new("RGB", (128, 32), "white")
    for number, file in enumerate(sorted(folder.iterdir())[:4]):
        with Image.open(file) as picture:
            strip.paste(picture.resize((30, 30)), (32 * number, 1))
    return _as_url(strip, 64)


def _photograph(page: Path, size: tuple[int, int], picture: Path) -> None:
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    words = [
        f"--window-size={size[0]},{size[1]}",
        f"--screenshot={picture}",
        page.resolve().as_uri(),
    ]
    subprocess.run([*chromium, *words], check=True, capture_output=True)


def _preview() -> None:
    """Write the picture beside links: name, sentence and chart, as a page of Chromium's."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "preview.html")
        text = templates().get_template("first_page/preview.html.j2")
        write_text(page, text.render(images=IMAGES.resolve().as_uri()))
        _photograph(page, (1200, 630), Path(folder, "preview.png"))
        with Image.open(Path(folder, "preview.png")) as picture:
            picture.quantize(64).save(STATIC / "preview.png", optimize=True)


def _call(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "visionshare", "--quiet", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def run(folder: Path) -> dict[str, Any]:
    """Train on the sample signs, measure the C on a small core; return the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    _call(folder, "samples")
    begun = time.perf_counter()
    _call(folder, "train", "samples/signs", "--budget", "flash=16KiB")
    seconds = round(time.perf_counter() - begun)
    metrics = json.loads((folder / "out" / "signs" / "metrics.json").read_text(encoding="utf-8"))
    core = json.loads(
        _call(
            folder,
            "measure",
            "out/signs",
            "samples/signs",
            "--target",
            CORE,
            "--max-flash",
            "16KiB",
            "--json",
        )
    )
    return {
        "machine": f"{machine()} Commit {commit()}.",
        "seconds": seconds,
        "errors": metrics["test_errors"],
        "test_images": metrics["test_images"],
        "core": core,
    }


def main() -> None:
    """Draw the pictures of the first page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="train in a new folder")
    options = parser.parse_args()
    record = json.loads((RESULTS / "edge" / "mnist.json").read_text(encoding="utf-8"))
    write_text(IMAGES / "error-and-flash.svg", chart(record))
    _preview()
    if options.run is None:
        return
    figures_of_run = run(options.run)
    write_text(IMAGES / "demonstration.json", json.dumps(figures_of_run, indent=1) + "\n")
    shot = options.run / "report.png"
    _photograph(options.run / "out" / "signs" / "report.html", (640, 540), shot)
    with Image.open(shot) as picture:
        report = _as_url(picture, 32)
    folders = sorted((options.run / "samples" / "signs").iterdir())
    strips = [(one.name, _strip(one)) for one in folders]
    write_text(IMAGES / "demonstration.svg", demonstration(figures_of_run, strips, report))


if __name__ == "__main__":
    main()
