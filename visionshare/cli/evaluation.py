"""Commands that use a classifier: evaluate, inspect, bench."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.cautions import warn_near_majority
from visionshare.cli.images import labeled_images
from visionshare.cli.listing import completes
from visionshare.cli.options import (
    Classifier,
    DataFolder,
    Jobs,
    Json,
    Scheduler,
    SkipPreprocessing,
    Workers,
)  # fmt: skip
from visionshare.cli.outputs import check_not_inputs
from visionshare.cli.text import cell, portable, say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier, ExitFigures
    from visionshare.cli.commands import Commands
    from visionshare.reports import Results

__all__ = ["register"]

# Of a batch that is timed: images, or fewer where they take more bytes than these.
_IMAGES, _BYTES = 4096, 1 << 28

_ALL_OF_IT = (
    "note: there is no test part, so all pictures are evaluated; those that the classifier was "
    "trained on do not tell how it does on others"
)


def register(app: Commands) -> None:
    """Add the commands to the application."""
    for command in (evaluate, inspect, bench):
        app.command()(command)


def evaluate(
    classifier: Classifier,
    dataset: Annotated[
        str,
        typer.Argument(
            help="Name of the catalog, a folder or a file.", autocompletion=completes("datasets")
        ),
    ],
    data: DataFolder = None,
    split: Annotated[str, typer.Option(help="Split of the data set: test or train.")] = "test",
    report: Annotated[
        str | None,
        typer.Option(
            "--report", metavar="FILE|URL", help="Page of results to write (.html); may be a URL."
        ),
    ] = None,
    errors: Annotated[
        str | None,
        typer.Option(
            "--errors",
            metavar="FILE|URL",
            help="Table of misclassified images to write (.csv); may be a URL.",
        ),
    ] = None,
    jobs: Jobs = -1,
    skip_preprocessing: SkipPreprocessing = False,
    as_json: Json = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
) -> None:
    """Measure a classifier on labeled images."""
    # Example: visionshare evaluate out/digits/classifier.safetensors digits --report digits.html
    # Misclassified images are listed by name, or by number where they have none, the most
    # confident first.
    from dataclasses import replace

    from visionshare import load
    from visionshare.batch.scoring import score_images
    from visionshare.classifier import EarlyExit
    from visionshare.datasets import Preprocessing
    from visionshare.distributed import cluster_client
    from visionshare.distributed.mapping import ClusterMap
    from visionshare.files.durable import write_text
    from visionshare.machine.resources import resolve_jobs
    from visionshare.reports import Results

    _check_outputs(report, errors)
    for option, file in (("--report", report), ("--errors", errors)):
        check_not_inputs(option, [] if file is None else [Path(file)], [classifier, dataset])
    threads = resolve_jobs(jobs, "--jobs")
    model = load(classifier)
    if skip_preprocessing:
        model = replace(model, preprocessing=Preprocessing())
    images = labeled_images(model, dataset, data, split)
    if images.split is None:
        say(_ALL_OF_IT, err=True)
    truth = model.classes_[images.labels]
    scores = None
    with cluster_client(workers, scheduler, threads) as client:
        if client is not None:
            scores = score_images(model, images.images, ClusterMap(client))
    source = f"{images.name} ({images.split or 'all of it'})"
    results = Results.of(
        model, images.images, truth, threads, images.names, source=source, scores=scores
    )
    early = None
    if model.exit_rule is not None:
        early = EarlyExit(model).measure(images.images, model.classes_[images.labels], threads)
    if errors is not None:
        table = _errors_table(results)
        _write(errors, "--errors", lambda path: write_text(path, table))
    if report is not None:
        _write(report, "--report", _report(model, results, classifier))
    majority = results.classes[results.majority]
    warn_near_majority(
        images.split or "measured", results.errors, len(results), majority, results.majority_error
    )
    if as_json:
        say(json.dumps(_figures(results, early)))
    else:
        say("\n".join(_lines(results, early, model.macs)))


def _check_outputs(report: str | None, errors: str | None) -> None:
    from visionshare.files.storage import check_takes_results, is_url

    for option, out, suffix in (("--report", report, ".html"), ("--errors", errors, ".csv")):
        if out is None:
            continue
        if Path(out).suffix.lower() != suffix:
            raise InputError(option, out, f"a file {suffix}")
        if is_url(out):
            check_takes_results(out, option)


def _write(out: str, option: str, write: Callable[[Path], None]) -> None:
    """Write a file of results, of this machine or in storage."""
    from visionshare.files.uploads import uploaded_file

    with uploaded_file(out) as path:
        try:
            write(path)
        except OSError as error:
            raise InputError(option, out, f"a file to write ({error.strerror})") from None


def _report(model: CompactClassifier, results: Results, file: Path) -> Callable[[Path], None]:
    from visionshare.reports import write_report

    name = portable(file.parent.name or file.stem)
    metrics = {"pipeline": name}
    return lambda path: write_report(path, model, results, metrics=metrics, settings={})


def _errors_table(results: Results) -> str:
    """Return the misclassified images as comma-separated values, the most confident first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["image", "true", "predicted", "confidence", "probability_of_true"])
    for i in results.mistakes.tolist():
        true, predicted = int(results.labels[i]), int(results.predictions[i])
        name = str(i) if results.names is None else results.names[i]
        cells = (name, results.classes[true], results.classes[predicted])
        probabilities = (results.confidences[i], results.probabilities[i, true])
        writer.writerow([*map(cell, cells), *(f"{p:.6f}" for p in probabilities)])
    return text.getvalue()


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


def _lines(results: Results, early: ExitFigures | None, macs: int) -> list[str]:
    from visionshare.reports.results import calibration, error_interval, figures_by_class

    n, majority = len(results), portable(results.classes[results.majority])
    low, high = (100 * end for end in error_interval(results.errors, n))
    lines = [
        f"{100 * results.error_rate:.2f} % error ({results.errors} of {n}); "
        f"95 % interval {low:.2f} to {high:.2f} %",
        f"{100 * results.majority_error:.2f} % error of always answering {majority}",
        f"{100 * calibration(results).ece:.2f} % expected calibration error",
    ]
    if early is not None:
        lines.append(
            f"{100 * early.errors / n:.2f} % error with early exit: on average "
            f"{early.average_macs:,.0f} of {macs:,} macs, {early.max_macs:,} at most"
        )
    rows = [row for row in figures_by_class(results) if row.images]
    width = max(12, *(len(portable(row.name)) for row in rows))
    lines.append(f"  {'class':>{width}}  images  precision   recall       F1")
    for row in rows:
        shares = [
            "–" if v is None else f"{100 * v:.2f} %" for v in (row.precision, row.recall, row.f1)
        ]
        name = portable(row.name)
        lines.append(
            f"  {name:>{width}}  {row.images:6}   {shares[0]:>8} {shares[1]:>8} {shares[2]:>8}"
        )
    return lines


def inspect(classifier: Classifier, as_json: Json = False) -> None:
    """Show what a classifier is made of and what it costs."""
    # Example: visionshare inspect out/digits/classifier.safetensors
    from visionshare import load

    model = load(classifier)
    summary, layers = model.summary(), model.layers
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


def bench(classifier: Classifier, jobs: Jobs = 1, as_json: Json = False) -> None:
    """Time a classifier on random images: one at a time, and in batches of all workers."""
    # Example: visionshare bench out/digits/classifier.safetensors
    import time

    import numpy as np

    from visionshare import load
    from visionshare.machine.resources import resolve_jobs

    model, rng = load(classifier), np.random.default_rng(0)
    n = min(_IMAGES, max(1, _BYTES // math.prod(model.image_shape)))
    images = rng.integers(0, 256, (n, *model.image_shape), dtype=np.uint8)
    threads = resolve_jobs(jobs, "--jobs")
    model.decision_function(images[0])
    model.decision_function(images[:64], threads)
    single, batched = [], []
    for i in range(500):
        start = time.perf_counter()
        model.decision_function(images[i % n])
        single.append(time.perf_counter() - start)
    for _ in range(5):
        start = time.perf_counter()
        model.decision_function(images, threads)
        batched.append(time.perf_counter() - start)
    figures = {
        "microseconds_one_image": 1e6 * float(np.median(single)),
        "images_per_second_in_batches": len(images) / float(np.median(batched)),
        "threads": threads,
        "macs": model.macs,
    }
    if as_json:
        say(json.dumps(figures))
        return
    say(f"one image          {figures['microseconds_one_image']:.0f} µs")
    rate = figures["images_per_second_in_batches"]
    say(f"in batches         {rate:,.0f} images per second")
    say(f"threads            {threads}")
    say(f"macs per image     {model.macs:,}")
