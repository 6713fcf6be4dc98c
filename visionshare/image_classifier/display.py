"""What an ImageClassifier shows of itself: a line of text, and tables of HTML."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from visionshare.image_classifier.estimator import ImageClassifier

__all__ = ["html_of", "summary_of", "table_of"]

# Trials that are shown.
_SHOWN = 10


def summary_of(model: ImageClassifier) -> str:
    """Return what a fitted classifier is, in a line."""
    classifier, cost = model.classifier_, model.cost_
    parts = [
        f"{len(model.classes_)} classes",
        f"{classifier.n_features} features",
        f"{cost['macs']:,} multiply-accumulates",
        f"{cost['bytes']:,} bytes",
    ]
    if not math.isnan(model.validation_error_):
        parts.append(f"{100 * model.validation_error_:.1f} % held-out error")
    return ", ".join(parts)


def table_of(results: dict[str, list[Any]]) -> str:
    """Return the best trials as a table of HTML."""
    head = "".join(
        f"<th>{name}</th>" for name in ("proposal", "error", "multiply-accumulates", "seconds")
    )
    columns = zip(*(results[n] for n in ("proposal", "error", "macs", "seconds")), strict=True)
    rows = [
        f"<tr><td>{escape(name)}</td><td>{100 * error:.2f} %</td><td>{macs:,}</td>"
        f"<td>{seconds:.1f}</td></tr>"
        for name, error, macs, seconds in columns
    ]
    return f"<table><tr>{head}</tr>{''.join(rows[:_SHOWN])}</table>"


def html_of(model: ImageClassifier, diagram: str) -> str:
    """Return scikit-learn's diagram, and for a fitted classifier what was tried and chosen."""
    if not hasattr(model, "classifier_"):
        return diagram
    chosen = f"<p>{escape(summary_of(model))}</p>"
    return f"<div>{diagram}{chosen}{table_of(model.search_results_)}</div>"
