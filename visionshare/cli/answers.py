"""Values and several labels on test images: what is said of them, their table and their page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visionshare.cli.text import cell, portable

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier
    from visionshare.datasets import ImageSet
    from visionshare.recipes.stages.evaluation import Evaluation


def answer_lines(figures: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return lines on the figures of values or several labels; no lines for classes."""
    if f"{prefix}mean_absolute_error" in figures:
        low, high = figures[f"{prefix}interval"]
        return [
            f"{figures[f'{prefix}mean_absolute_error']:.4g} mean absolute error "
            f"(95 % interval {low:.4g} to {high:.4g}); "
            f"{figures[f'{prefix}constant_error']:.4g} when always answering the median"
        ]
    if f"{prefix}labels" not in figures:
        return []
    rows = figures[f"{prefix}labels"]
    mean = figures[f"{prefix}mean_average_precision"]
    lines = [f"{_percent(mean)} mean average precision of {len(rows)} labels"]
    for row in rows:
        precision = _percent(row["precision"])
        recall = _percent(row["recall"])
        lines.append(f"  {portable(row['label'])}: precision {precision}, recall {recall}")
    return lines


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def errors_of_answers(images: ImageSet, evaluation: Evaluation) -> Iterator[list[str]]:
    """Yield the rows of a table: values, the worst first; or pictures with a wrong label."""
    import numpy as np

    from visionshare.answers import ValueRule

    assert images.answers is not None
    rule = images.answers.rule
    truth = images.answers.truth
    names = images.names or tuple(map(str, range(len(images))))
    if isinstance(rule, ValueRule):
        off = rule.errors(evaluation.predicted, truth)
        yield ["image", "true", "predicted", "error"]
        for i in np.argsort(-np.abs(off), kind="stable").tolist():
            numbers = (truth[i], evaluation.predicted[i], off[i])
            yield [cell(names[i]), *(f"{number:.6g}" for number in numbers)]
        return
    expected = rule.said(truth)
    yield ["image", "true", "predicted"]
    for i in np.flatnonzero(expected != evaluation.predicted).tolist():
        yield [cell(names[i]), cell(str(expected[i])), cell(str(evaluation.predicted[i]))]


def write_answers(
    path: Path,
    model: CompactClassifier,
    images: ImageSet,
    evaluation: Evaluation,
    metrics: Mapping[str, Any],
) -> None:
    """Write the page of results."""
    from visionshare.answers import ValueRule
    from visionshare.recipes.stages.evaluation import answer_figures
    from visionshare.reports import ValueResults, write_report

    assert images.answers is not None
    rule = images.answers.rule
    values = None
    if isinstance(rule, ValueRule):
        truth = images.answers.truth
        values = ValueResults(images.images, truth, evaluation.predicted, rule, images.names)
    figures = {f"test_{name}": figure for name, figure in answer_figures(evaluation).items()}
    write_report(
        path, model, None, metrics={**metrics, **figures}, settings={}, examples=images.images,
        values=values,
    )  # fmt: skip
