"""The command that learns new classes from few images and from classifiers that exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.images import files_of
from visionshare.cli.listing import completes
from visionshare.cli.options import DataFolder, Jobs, Json
from visionshare.cli.outputs import check_file, check_not_inputs
from visionshare.cli.text import say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.cli.commands import Commands
    from visionshare.datasets import ImageSet
    from visionshare.generators.sources.scores import LinearSource
    from visionshare.recipes.transfer import Task

__all__ = ["register"]


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(transfer)


def transfer(
    dataset: Annotated[
        str,
        typer.Argument(
            help="The new images: a folder with one folder per class, a data set or a file.",
            autocompletion=completes("datasets"),
        ),
    ],
    sources: Annotated[
        list[Path], typer.Argument(help="Classifier files to learn from, or folders of them.")
    ],
    out: Annotated[Path | None, typer.Option("--out", help="The new classifier file.")] = None,
    matrix: Annotated[
        Path | None,
        typer.Option(
            "--matrix", help="Picture (.png) of the weights of each source for each class."
        ),
    ] = None,
    positive_class: Annotated[
        str | None, typer.Option(help="Learn this class against the rest; default every class.")
    ] = None,
    positives: Annotated[
        int | None, typer.Option(help="Images per class to learn from; default all.")
    ] = None,
    negatives: Annotated[
        int | None, typer.Option(help="Images of all other classes; default all.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Sources and features per class at most.")] = 100,
    alpha: Annotated[
        float, typer.Option(help="Ridge penalty: larger means smaller weights.")
    ] = 1.0,
    tol: Annotated[float, typer.Option(help="Stop when a round gains less.")] = 1e-4,
    random_candidates: Annotated[
        int | None,
        typer.Option(help="Try this number of random candidates per round (59), not all."),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            help="Features of the images: a pool, or none for sources alone.",
            autocompletion=completes("pools"),
        ),
    ] = "pixels",
    draws: Annotated[int, typer.Option(help="Repetitions that the matrix is the mean of.")] = 10,
    split: Annotated[str, typer.Option(help="Split of a data set: train or test.")] = "train",
    data: DataFolder = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Learn new classes from a few images and the classifiers you have; see which ones help."""
    from visionshare.learners import GreedyTL
    from visionshare.machine.resources import resolve_jobs
    from visionshare.recipes.sources import read_sources, source_files, source_shape
    from visionshare.recipes.transfer import Task

    threads = resolve_jobs(jobs, "--jobs")
    if out is None and matrix is None:
        raise InputError("--out", None, "a file for the classifier, or --matrix, or both")
    if matrix is not None and matrix.suffix.lower() != ".png":
        raise InputError("--matrix", str(matrix), "a .png file")
    if random_candidates is not None and random_candidates < 1:
        expected = "a number of candidates of at least 1, such as 59"
        raise InputError("--random-candidates", random_candidates, expected)
    if draws < 1:
        raise InputError("--draws", draws, "a whole number of at least 1")
    learner = GreedyTL(
        rounds,
        alpha=alpha,
        tol=tol,
        search="exhaustive" if random_candidates is None else "random",
        search_options=None if random_candidates is None else {"n": random_candidates},
        # How many images of each class were at hand says nothing of how often it occurs.
        fit_intercept=False,
        n_jobs=threads,
        random_state=seed,
    )
    learner.check_parameters()
    task = Task(features, positive_class, positives, negatives, seed)
    if out is not None:
        task.check()
    read: list[str | Path] = [*files_of(dataset), *source_files(sources)]
    if out is not None:
        check_file("--out", out)
        check_not_inputs("--out", [out], read)
    if matrix is not None:
        from visionshare.reports.transferability import TABLE_BEGINS

        table = matrix.with_suffix(".csv")
        check_file("--matrix", matrix)
        check_file("--matrix", table, TABLE_BEGINS)
        check_not_inputs("--matrix", [matrix, table], read)
    known = read_sources(sources)
    images = _images(dataset, split, data, source_shape(known))
    figures: dict[str, Any] = {}
    if out is not None:
        figures |= _learned(images, known, learner, task, threads, out)
    if matrix is not None:
        figures |= _drawn(images, known, learner, task, draws, threads, matrix)
    _say(figures, as_json)


def _images(dataset: str, split: str, data: Path | None, shape: tuple[int, ...]) -> ImageSet:
    from visionshare.datasets import ImageSet, load_images

    size = None if len(shape) == 1 else (shape[0], shape[1])
    mode = "color" if shape[2:] == (3,) else "gray"
    images = load_images(dataset, split, data, size, mode)
    if shape[2:] == (1,) and images.images.shape[1:] == shape[:2]:
        return ImageSet(images.images[..., None], images.labels, images.classes, images.name)
    return images


def _learned(
    images: ImageSet, sources: list[LinearSource], learner: Any, task: Task, jobs: int, out: Path
) -> dict[str, Any]:
    from dataclasses import asdict

    from visionshare.recipes.transfer import transfer as run

    result = run(images, sources, learner, task, jobs)
    result.classifier.save(out)
    return {
        "classifier": str(out),
        "features": result.classifier.n_features,
        "trained_on": result.trained_on,
        "validated_on": result.validated_on,
        "balanced_accuracy": result.balanced_accuracy,
        "sources": [asdict(entry) for entry in result.chosen],
    }


def _drawn(
    images: ImageSet,
    sources: list[LinearSource],
    learner: Any,
    task: Task,
    draws: int,
    jobs: int,
    path: Path,
) -> dict[str, Any]:
    import numpy as np

    from visionshare.recipes.transfer import transferability
    from visionshare.reports.transferability import write_transferability

    result = transferability(images, sources, learner, task, draws, jobs)
    write_transferability(path, result.weights, result.targets, result.sources)
    entries = [
        {"target": name, "source": source, "weight": float(result.weights[t, s])}
        for t, name in enumerate(result.targets)
        for s, source in enumerate(result.sources)
        if np.isfinite(result.weights[t, s])
    ]
    means = result.accuracy.mean(axis=1).tolist()
    accuracies = {
        name: None if np.isnan(mean) else mean
        for name, mean in zip(result.targets, means, strict=True)
    }
    return {"matrix": str(path), "weights": entries, "accuracies": accuracies}


def _say(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say(json.dumps(figures))
        return
    if "classifier" in figures:
        _say_classifier(figures)
    if "matrix" in figures:
        _say_matrix(figures)


def _say_classifier(figures: dict[str, Any]) -> None:
    used = figures["sources"]
    if used:
        width = max(6, *(len(entry["source"]) for entry in used))
        wide = max(5, *(len(entry["source_class"]) for entry in used))
        say(f"{'weight':>8}  {'source':{width}}  {'score':{wide}}  for")
        for entry in used:
            say(
                f"{entry['weight']:+8.3f}  {entry['source']:{width}}  "
                f"{entry['source_class']:{wide}}  {entry['target']}"
            )
    else:
        say("no source was chosen: features of the images did better")
    say(f"features     {figures['features']}")
    say(f"trained on   {figures['trained_on']} images")
    if figures["balanced_accuracy"] is not None:
        percent = 100 * figures["balanced_accuracy"]
        say(f"accuracy     {percent:.1f} % balanced, on the other {figures['validated_on']}")
    say(f"classifier   {figures['classifier']}")


def _say_matrix(figures: dict[str, Any]) -> None:
    say("class         accuracy  sources of the largest weights")
    for name, mean in figures["accuracies"].items():
        used = [e for e in figures["weights"] if e["target"] == name and e["weight"]]
        used.sort(key=lambda e: -abs(e["weight"]))
        best = ", ".join(f"{e['source']} {e['weight']:+.2f}" for e in used[:4])
        accuracy = "       –" if mean is None else f"{100 * mean:6.1f} %"
        say(f"{name:12}  {accuracy}  {best}")
    say(f"matrix       {figures['matrix']}")
