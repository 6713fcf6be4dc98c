"""Commands that use a classifier: evaluate, inspect, bench."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from visionshare.cli.images import labeled_images
from visionshare.cli.options import Classifier, DataFolder, Jobs, Json, SkipPreprocessing

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (evaluate, inspect, bench):
        app.command()(command)


def evaluate(
    classifier: Classifier,
    dataset: Annotated[str, typer.Argument(help="Name of the catalog, a folder or a file.")],
    data: DataFolder = None,
    split: Annotated[str, typer.Option(help="Split of the data set: test or train.")] = "test",
    jobs: Jobs = -1,
    skip_preprocessing: SkipPreprocessing = False,
    as_json: Json = False,
) -> None:
    """Measure a classifier on labeled images.

    Example: visionshare evaluate out/digits/classifier.safetensors digits
    """
    from dataclasses import replace

    import numpy as np

    from visionshare import load
    from visionshare.classifier import EarlyExit
    from visionshare.datasets import Preprocessing
    from visionshare.resources import resolve_jobs

    threads = resolve_jobs(jobs, "--jobs")
    model = load(classifier)
    if skip_preprocessing:
        model = replace(model, preprocessing=Preprocessing())
    images, indexes = labeled_images(model, dataset, data, split)
    truth = model.classes_.astype(str)[indexes]
    predicted = model.predict(images, threads).astype(str)
    n, errors = len(images), int(np.sum(predicted != truth))
    early = None
    if model.exit_rule is not None:
        early = EarlyExit(model).measure(images, model.classes_[indexes], threads)
    by_class = {str(c): float(np.mean(predicted[truth == c] != c)) for c in np.unique(truth)}
    if as_json:
        figures = {"images": n, "errors": errors, "error_rate": errors / n}
        stopped = {} if early is None else {"early_exit": asdict(early)}
        typer.echo(json.dumps({**figures, "error_rate_by_class": by_class, **stopped}))
        return
    typer.echo(f"{100 * errors / n:.2f} % error ({errors} of {n})")
    if early is not None:
        typer.echo(
            f"{100 * early.errors / n:.2f} % error with early exit: on average "
            f"{early.average_macs:,.0f} of {model.macs:,} macs, {early.max_macs:,} at most"
        )
    for name, rate in by_class.items():
        typer.echo(f"  {name:>12}  {100 * rate:6.2f} %")


def inspect(classifier: Classifier, as_json: Json = False) -> None:
    """Show what a classifier is made of and what it costs.

    Example: visionshare inspect out/digits/classifier.safetensors
    """
    from visionshare import load

    model = load(classifier)
    summary, layers = model.summary(), model.layers
    if as_json:
        typer.echo(json.dumps({**summary, "layers": [asdict(layer) for layer in layers]}))
        return
    summary["metadata"] = ", ".join(summary["metadata"]) or "none"
    for name, value in summary.items():
        typer.echo(f"{name:12} {value}")
    typer.echo(f"\n{'layer':12} {'output':>12} {'parameters':>12} {'macs':>12}")
    for layer in layers:
        shape = "×".join(map(str, layer.shape))
        typer.echo(f"{layer.name:12} {shape:>12} {layer.parameters:12,} {layer.macs:12,}")


def bench(classifier: Classifier, jobs: Jobs = 1, as_json: Json = False) -> None:
    """Time a classifier on random images: one at a time, and in batches of all workers.

    Example: visionshare bench out/digits/classifier.safetensors
    """
    import time

    import numpy as np

    from visionshare import load
    from visionshare.resources import resolve_jobs

    model, rng = load(classifier), np.random.default_rng(0)
    images = rng.integers(0, 256, (4096, *model.image_shape), dtype=np.uint8)
    threads = resolve_jobs(jobs, "--jobs")
    model.decision_function(images[0])
    model.decision_function(images[:64], threads)
    single, batched = [], []
    for i in range(500):
        start = time.perf_counter()
        model.decision_function(images[i])
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
        typer.echo(json.dumps(figures))
        return
    typer.echo(f"one image          {figures['microseconds_one_image']:.0f} µs")
    rate = figures["images_per_second_in_batches"]
    typer.echo(f"in batches         {rate:,.0f} images per second")
    typer.echo(f"threads            {threads}")
    typer.echo(f"macs per image     {model.macs:,}")
