"""What training costs from a thousand pictures to a hundred million: measured, then modeled.

``python -m scripts.clusters.growth`` writes the table of docs/howto/many-images.md and draws its
picture. Measured are the records in docs/results; rounds on clusters are those of the simulation,
see docs/scaling.md; images become columns as fast as in the record of one core.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from scripts.clusters.scaling import NETWORKS, Constants, Work, replayed_round
from scripts.reproduce.results import RESULTS, pyplot, table

PAGE = RESULTS.parent / "howto" / "many-images.md"
PICTURE = RESULTS.parent / "images" / "growth.svg"
# Of the model: rounds, the network, and dollars for an hour of a core, which is an assumption.
ROUNDS = 50
NETWORK = "10 Gbit/s, 50 us"
DOLLARS = 0.05
# Bytes of a number of a column.
FLOAT16 = 2
MODELED = {10**6: 16, 10**7: 100, 10**8: 1000}


class Step(NamedTuple):
    """A training: pictures, cores, seconds, and where it runs."""

    pictures: int
    cores: int
    seconds: float
    where: str

    @property
    def row(self) -> list[str]:
        """The cells of the table."""
        hours = self.seconds * self.cores / 3600
        cells = [f"{self.pictures:,}", self.where, _duration(self.seconds)]
        return [*cells, f"{hours:,.2g}" if hours < 100 else f"{hours:,.0f}", _money(hours)]


def _money(hours: float) -> str:
    if hours * DOLLARS < 0.01:
        return "below 0.01"
    return f"{hours * DOLLARS:,.2f}" if hours * DOLLARS < 10 else f"{hours * DOLLARS:,.0f}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _runs(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return record.get("runs", record)


def searches() -> list[Step]:
    """Return the measured searches of ImageClassifier, a step for each data set."""
    seconds: dict[int, list[float]] = {}
    for name, run in _runs("own-pictures").items():
        data, program, _ = name.split(" | ")
        if program == "ImageClassifier":
            pictures = int(re.findall(r"(\d+) training", data)[0])
            seconds.setdefault(pictures, []).append(run["seconds"])
    return [Step(n, 1, mean(times), "a laptop, in memory") for n, times in sorted(seconds.items())]


def recipes() -> list[Step]:
    """Return the measured trainings by a recipe of 16,000 candidates."""
    return [
        Step(run["train_images"], 1, _training(run), "a laptop, columns on its disk")
        for run in _runs("scaling").values()
    ]


def _training(run: dict[str, Any]) -> float:
    return sum(run["seconds"][stage] for stage in ("data", "features", "columns", "learning"))


def column_seconds() -> float:
    """Return the seconds of a core for the 16,000 numbers of an image."""
    runs = _runs("scaling").values()
    seconds = sum(run["seconds"]["columns"] for run in runs)
    return float(seconds / sum(run["train_images"] for run in runs))


def modeled(pictures: int, workers: int) -> Step:
    """Return a training on a cluster: columns once, then rounds."""
    work = Work(pictures)
    each = replayed_round(work, workers, Constants(), NETWORKS[NETWORK])
    seconds = ROUNDS * each + column_seconds() * pictures / workers
    gigabytes = FLOAT16 * work.candidates * pictures / workers / 1e9
    return Step(
        pictures, workers, seconds, f"{workers:,} workers, {gigabytes:.1f} GB of columns each"
    )


def predicted_per_second() -> float:
    """Return the pictures per second and worker from storage, as docs/scaling.md has them."""
    text = (RESULTS.parent / "scaling.md").read_text("utf-8")
    rates = re.findall(r"Two workers classify (\d+) and (\d+) pictures", text)[0]
    return mean(map(int, rates)) / 2


def steps() -> Iterator[tuple[str, Step]]:
    """Yield the rows of the table, each with what it is."""
    found = {step.pictures: step for step in searches()}
    for pictures in (1000, max(found)):
        yield "measured: search", found[pictures]
    yield "measured: recipe", recipes()[-1]
    for pictures, workers in MODELED.items():
        yield "model: recipe", modeled(pictures, workers)


def block() -> str:
    """Return the part of the page that is made of figures."""
    header = ["pictures", "where", "training", "core hours", "dollars", "figure"]
    rows = [[*step.row, kind] for kind, step in steps()]
    rate = predicted_per_second()
    most = max(MODELED)
    workers = MODELED[most]
    said = (
        f"Labels of {most:,} pictures take {most / rate / workers:.0f} seconds on {workers:,} "
        f"workers or {_duration(most / rate / 2)} on two, at the {rate:,.0f} pictures per second "
        f"of a worker that were measured. A core hour counts {DOLLARS} dollars."
    )
    return f"{table(header, rows)}\n\n{said}"


def draw(path: Path = PICTURE) -> None:
    """Draw measured trainings as points and modeled ones as lines."""
    plt = pyplot()
    style = {"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 11}
    with plt.rc_context(style):
        figure, axis = plt.subplots(figsize=(8, 4.6), layout="constrained")
        for label, points, marker in (
            ("measured: search", searches(), "o"), ("measured: recipe", recipes(), "s")
        ):  # fmt: skip
            x = [step.pictures for step in points]
            axis.loglog(x, [step.seconds / 3600 for step in points], marker, ms=7, label=label)
        sizes = [10 ** (exponent / 2) for exponent in range(10, 17)]
        for workers in (1, 10, 100, 1000):
            hours = [modeled(round(n), workers).seconds / 3600 for n in sizes]
            axis.loglog(sizes, hours, lw=1.8, label=f"model: {workers} worker{'s' * (workers > 1)}")
        axis.set(xlabel="pictures", ylabel="hours of training")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})


def with_block(page: str) -> str:
    """Return the page with the figures of today between its two marks."""
    before, _, rest = page.partition("<!-- figures -->")
    _, _, after = rest.partition("<!-- end -->")
    return f"{before}<!-- figures -->\n{block()}\n<!-- end -->{after}"


if __name__ == "__main__":
    PAGE.write_text(with_block(PAGE.read_text("utf-8")), encoding="utf-8")
    draw()
