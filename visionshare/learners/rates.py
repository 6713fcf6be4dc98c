"""The rates of a machine, for searches that divide scores by microseconds: known, or measured."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.files.durable import write_text
from visionshare.generators.rates import checked_rates, measured_rates
from visionshare.search import PerCostSearch, Search
from visionshare.search.per_cost import check_known

__all__ = ["rated"]

_FILE = "rates.json"


def rated(
    search: Search, columns: Columns, n_scores: int, checkpoint: str | os.PathLike[str] | None
) -> Search:
    """Return a search with the rates that it goes by, the same in every round."""
    # Measured rates are kept beside the rounds of a checkpoint, so that a run that is resumed
    # goes by those of its beginning. They are part of its identity: where the file is lost, other
    # rates make it another run.
    if not isinstance(search, PerCostSearch):
        return search
    check_known(columns, search.per)
    if search.per != "microseconds":
        return search
    family = columns.costs
    if search.rates is not None:
        return replace(search, rates=checked_rates(search.rates, family))
    folder = None if checkpoint is None else Path(checkpoint)
    rates = None if folder is None else _kept(folder / _FILE, family)
    if rates is None:
        rates = measured_rates(family, n_scores)
        # A folder with a run in it is that run's.
        if folder is not None and not (folder / "run.json").exists():
            write_text(folder / _FILE, json.dumps(rates))
    return replace(search, rates=rates)


def _kept(file: Path, family: Any) -> dict[str, dict[str, float]] | None:
    """Return the rates of a file, None where it is missing or damaged."""
    try:
        return checked_rates(json.loads(file.read_text(encoding="utf-8")), family)
    except (OSError, ValueError, RecursionError, InputError):
        return None
