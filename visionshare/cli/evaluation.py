"""Commands that say how good a classifier is, and what it is made of."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.answers import answer_lines, errors_of_answers, write_answers
from visionshare.cli.cautions import warn_near_majority
from visionshare.cli.images import labeled_images
from visionshare.cli.listing import completes
from visionshare.cli.options import (
    Classifier,
    Cluster,
    DataFolder,
    Jobs,
    Json,
    SkipPreprocessing,
    Split,
)
from visionshare.cli.outputs import check_not_inputs
from visionshare.cli.text import cell, portable, say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.classifier import ExitFigures
    from visionshare.reports import Results

_ALL_OF_IT = (
    "note: no test split found, so all pictures are evaluated; errors on pictures that the "
    "classifier was trained on are too low"
)


def evaluate(
    classifier: Classifier,
    dataset: Annotated[
        str,
        typer.Argument(
            help="Labeled images: a name of the catalog, a folder or a file.",
            autocompletion=completes("datasets"),
        ),
    ],
    data: DataFolder = None,
    split: Split = "test",
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with the values. Default: as in training."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with the labels. Default: as in training."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="Report to write (.html file or URL)."),
    ] = None,
    errors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL", help="Table of misclassified images to write (.csv file or URL)."
        ),
    ] = None,
    threads: Jobs = -1,
    skip_preprocessing: SkipPreprocessing = False,
    as_json: Json = False,
    *,
    cluster: Cluster,
) -> None:
    """Measure the errors of a classifier on labeled images.

    Example: visionshare evaluate out/digits/classifier.safetensors digits --report digits.html

    Misclassified images are listed by name, or by number if they have none, the most confident
    first.

    For values and several labels (train --target, --labels), give a table like the one used in
    training.
    """
    from visionshare import load
    from visionshare.batch.scoring import score_images
    from visionshare.classifier import EarlyExit
    from visionshare.datasets import Preprocessing
    from visionshare.recipes.stages.evaluation import answer_figures
    from visionshare.recipes.stages.evaluation import evaluate as evaluated
    from visionshare.reports import Results, write_report

    # 1) Check what is written and read.
    for option, out, suffix in (("--report", report, ".html"), ("--errors", errors, ".csv")):
        if out is not None:
            _check_output(option, out, suffix)
            check_not_inputs(option, [Path(out)], [classifier, dataset])
    model = load(classifier)
    if skip_preprocessing:
        model = replace(model, preprocessing=Preprocessing())
    given = {"--target": target, "--labels": labels}
    columns = {option: name for option, name in given.items() if name is not None}
    images = labeled_images(model, dataset, data, split, columns)
    if images.split is None:
        say(_ALL_OF_IT, err=True)
    # 2) Classify.
    with cluster.mapper(threads) as mapper:
        scores = None if mapper is None else score_images(model, images.images, mapper)
    metrics = {"pipeline": portable(classifier.parent.name or classifier.stem)}
    if model.answer is not None:
        found = evaluated(model, images, threads, scores)
        _write_table(errors, errors_of_answers(images, found))
        _write(report, "--report", lambda path: write_answers(path, model, images, found, metrics))
        answers = answer_figures(found)
        shown = json.dumps({"images": len(images), **answers})
        say(shown if as_json else "\n".join(answer_lines(answers)))
        return
    truth = model.classes_[images.labels]
    source = f"{images.name} ({images.split or 'all of it'})"
    results = Results.of(
        model, images.images, truth, threads, images.names, source=source, scores=scores
    )
    early = None
    if model.exit_rule is not None:
        early = EarlyExit(model).measure(images.images, truth, threads)
    # 3) Write tables, the page and the figures.
    _write_table(errors, _mistakes(results))
    _write(
        report,
        "--report",
        lambda path: write_report(path, model, results, metrics=metrics, settings={}),
    )
    majority = results.classes[results.majority]
    warn_near_majority(
        images.split or "measured", results.errors, len(results), majority, results.majority_error
    )
    figures = _figures(results, early)
    say(json.dumps(figures) if as_json else "\n".join(_lines(figures, model.macs)))


def _check_output(option: str, out: str, suffix: str) -> None:
    from visionshare.files.storage import check_takes_results, is_url

    if Path(out).suffix.lower() != suffix:
        raise InputError(option, out, f"a file {suffix}")
    if is_url(out):
        check_takes_results(out, option)


def _write(out: str | None, option: str, write: Callable[[Path], None]) -> None:
    """Write a file of results, on this machine or in storage, if it is asked for."""
    from visionshare.files.uploads import uploaded_file

    if out is None:
        return
    with uploaded_file(out) as path:
        try:
            write(path)
        except OSError as error:
            raise InputError(option, out, f"a file to write ({error.strerror})") from None


def _write_table(out: str | None, rows: Iterable[list[str]]) -> None:
    """Write rows as comma-separated values."""
    from visionshare.files.durable import write_text

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    _write(out, "--errors", lambda path: write_text(path, text.getvalue()))


def _mistakes(results: Results) -> Iterator[list[str]]:
    """Yield the rows of the misclassified images, the most confident first."""
    yield ["image", "true", "predicted", "confidence", "probability_of_true"]
    for i in results.mistakes.tolist():
        true = results.labels[i]
        yield [
            cell(str(i) if results.names is None else results.names[i]),
            cell(results.classes[true]),
            cell(results.classes[results.predictions[i]]),
            f"{results.confidences[i]:.6f}",
            f"{results.probabilities[i, true]:.6f}",
        ]


def _figures(results: Results, early: ExitFigures | None) -> dict[str, Any]:
    from visionshare.reports.results import calibration, error_interval, figures_by_class

    rows = [row for row in figures_by_class(results) if row.images]
    figures = {
        "images": len(results),
        "errors": results.errors,
        "error_rate": results.error_rate,
        "error_interval": error_interval(results.errors, len(results)),
        "majority_class": results.classes[results.majority],
        "majority_error": results.majority_error,
        "calibration_error": calibration(results).ece,
        "error_rate_by_class": {row.name: 1 - (row.recall or 0.0) for row in rows},
        "by_class": {row.name: row._asdict() for row in rows},
    }
    return figures if early is None else {**figures, "early_exit": asdict(early)}


def _lines(figures: dict[str, Any], macs: int) -> list[str]:
    n = figures["images"]
    low, high = figures["error_interval"]
    majority = portable(figures["majority_class"])
    lines = [
        f"{100 * figures['error_rate']:.2f} % error ({figures['errors']} of {n}); "
        f"95 % interval {100 * low:.2f} to {100 * high:.2f} %",
        f"{100 * figures['majority_error']:.2f} % error of always answering {majority}",
        f"{100 * figures['calibration_error']:.2f} % expected calibration error",
    ]
    early = figures.get("early_exit")
    if early is not None:
        lines.append(
            f"{100 * early['errors'] / n:.2f} % error with early exit: on average "
            f"{early['average_macs']:,.0f} of {macs:,} macs, {early['max_macs']:,} at most"
        )
    rows = {portable(name): row for name, row in figures["by_class"].items()}
    width = max(12, *map(len, rows))
    lines.append(f"  {'class':>{width}}  images  precision   recall       F1")
    for name, row in rows.items():
        shares = [_percent(row[key]) for key in ("precision", "recall", "f1")]
        lines.append(f"  {name:>{width}}  {row['images']:6}   {' '.join(shares)}")
    return lines


def _percent(share: float | None) -> str:
    text = "–" if share is None else f"{100 * share:.2f} %"
    return f"{text:>8}"


def inspect(classifier: Classifier, as_json: Json = False) -> None:
    """Show the features and the cost of a classifier.

    Example: visionshare inspect out/digits/classifier.safetensors
    """
    from visionshare import load

    model = load(classifier)
    summary = model.summary()
    layers = model.layers
    if as_json:
        say(json.dumps({**summary, "layers": [asdict(layer) for layer in layers]}))
        return
    summary["metadata"] = ", ".join(summary["metadata"]) or "none"
    for name, value in summary.items():
        say(f"{name:12} {value}")
    width = max(12, *(len(layer.name) for layer in layers))
    say(f"\n{'layer':{width}} {'output':>12} {'parameters':>12} {'macs':>12}")
    for layer in layers:
        shape = "×".join(map(str, layer.shape))
        say(f"{layer.name:{width}} {shape:>12} {layer.parameters:12,} {layer.macs:12,}")
