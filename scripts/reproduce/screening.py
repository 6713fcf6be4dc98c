"""How often screening finds what the exhaustive search finds, and how much sooner, on MNIST.

Every round both look for the next feature from the same state; the exhaustive one's enters.
Writes docs/results/screening.md:

    python -m scripts.reproduce.screening --data DIR
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from scripts.reproduce.results import arguments, keep_runs, table, write_page
from visionshare import ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_images
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import FeaturePart
from visionshare.search import Exhaustive, Screened, make_criterion
from visionshare.search.pool import Candidate, Criterion, Pool, SearchState

CLOSE = 0.02
# Rounds that are not timed: as many as a sample serves.
FIRST = 6
# Fraction of the examples in a sample, and candidates that are verified.
SETTINGS = ((0.05, 128), (0.05, 256), (0.1, 64), (0.1, 128))
CRITERIA = ("gradient", "orthogonal")


class Compared:
    """The exhaustive search, with others that only say what they would have chosen."""

    def __init__(self, criterion: str) -> None:
        self.criterion, self.exhaustive = criterion, Exhaustive()
        self.others = [Screened(fraction, keep) for fraction, keep in SETTINGS]
        self.criteria = [make_criterion(self.criterion) for _ in SETTINGS]
        self.seconds: list[list[float]] = [[] for _ in range(len(SETTINGS) + 1)]
        self.ratios: list[list[float]] = [[] for _ in SETTINGS]

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return what the exhaustive search finds, and note what the others find and when."""
        begun = time.perf_counter()
        winner = self.exhaustive.best(pool, state, criterion, excluded, n)
        self.seconds[0].append(time.perf_counter() - begun)
        for number, search in enumerate(self.others):
            begun = time.perf_counter()
            other = search.best(pool, state, self.criteria[number], excluded)
            self.seconds[number + 1].append(time.perf_counter() - begun)
            same = other[0].number == winner[0].number
            self.ratios[number].append(1.0 if same else other[0].score / winner[0].score)
        return winner


def rows(compared: Compared) -> list[list[Any]]:
    """Return a row for each setting of the screened search."""
    table_rows = []
    # The first rounds compile and touch memory for the first time.
    first = FIRST if len(compared.seconds[0]) > FIRST else 0
    whole = sum(compared.seconds[0][first:])
    for (fraction, keep), seconds, ratios in zip(
        SETTINGS, compared.seconds[1:], compared.ratios, strict=True
    ):
        ratio = np.array(ratios)
        table_rows.append([
            f"{compared.criterion}, {fraction}", keep,
            f"{100 * np.mean(ratio == 1):.0f} %", f"{100 * np.mean(ratio >= 1 - CLOSE):.0f} %",
            f"{ratio.min():.3f}", f"{sum(seconds[first:]) / whole:.3f}",
        ])  # fmt: skip
    return table_rows


def main() -> None:
    """Learn with each criterion and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    training = load_images("mnist", "train", options.data)
    images, labels = training.images, training.labels
    if options.quick:
        images, labels = images[:3000], labels[:3000]
    family = read_pool(FeaturePart(pool="patches"), 0).fit(images)
    columns = ArrayColumns.from_family(family, images, "float16", options.jobs)
    measured: list[list[Any]] = []
    raw: dict[str, Any] = {}
    for criterion in CRITERIA:
        compared = Compared(criterion)
        rounds = 5 if options.quick else options.rounds
        ShareBoost(rounds, criterion=criterion, search=compared, n_jobs=options.jobs).fit(
            columns, labels
        )
        measured += rows(compared)
        raw[criterion] = {"seconds": compared.seconds, "ratios of scores": compared.ratios}
        header = ["criterion, fraction that screens", "verified", "the same feature"]
        header += [f"within {CLOSE:.0%} of its score", "worst score, ratio", "time, ratio"]
        keep_runs(options.out, "screening", {"settings": SETTINGS, **raw})
        write_page(
            options.out,
            "screening",
            n_images=f"{len(images):,}",
            n_columns=f"{columns.shape[1]:,}",
            rounds=rounds,
            jobs=options.jobs,
            agreement=table(header, measured),
        )


if __name__ == "__main__":
    main()
