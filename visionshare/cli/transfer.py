"""The command that learns new classes from few images and from classifiers that exist."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.images import files_of
from visionshare.cli.listing import completes
from visionshare.cli.options import DataFolder, Jobs, Json, Seed, Split
from visionshare.cli.outputs import check_file
from visionshare.cli.text import say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.datasets import ImageSet
    from visionshare.learners import GreedyTL


@dataclass(frozen=True)
class LearnerOptions:
    """Learner."""

    rounds: Annotated[
        int, typer.Option(help="Maximum number of sources and features per class.")
    ] = 100
    alpha: Annotated[
        float, typer.Option(help="Ridge penalty. A larger one makes weights smaller.")
    ] = 1.0
    tol: Annotated[float, typer.Option(help="Stop when a round improves by less.")] = 1e-4
    random_candidates: Annotated[
        int | None,
        typer.Option(help="Try N random candidates per round (such as 59) instead of all."),
    ] = None
    seed: Seed = 0

    def learner(self, threads: int) -> GreedyTL:
        """Return the learner, its parameters checked."""
        from visionshare.learners import GreedyTL

        n = self.random_candidates
        if n is not None and n < 1:
            accepted = "a number of candidates of at least 1, such as 59"
            raise InputError("--random-candidates", n, accepted)
        learner = GreedyTL(
            self.rounds,
            alpha=self.alpha,
            tol=self.tol,
            search="exhaustive" if n is None else "random",
            search_options=None if n is None else {"n": n},
            # How many images of each class were at hand says nothing of how often it occurs.
            fit_intercept=False,
            n_jobs=threads,
            random_state=self.seed,
        )
        learner.check_parameters()
        return learner


def transfer(
    dataset: Annotated[
        str,
        typer.Argument(
            help="The new images: a folder with one folder per class, a data set or a file.",
            autocompletion=completes("datasets"),
        ),
    ],
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Classifier files to learn from, or folders of them. Not needed with features of a"
            " pretrained network."
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The new classifier file.")],
    positive_class: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Learn this class against the rest. Default: every class."
        ),
    ] = None,
    positives: Annotated[
        int | None, typer.Option(help="Number of images per class to learn from. Default: all.")
    ] = None,
    negatives: Annotated[
        int | None, typer.Option(help="Number of images of all other classes. Default: all.")
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            metavar="POOL",
            help="Features of the images: a pool, or none to use sources only.",
            autocompletion=completes("pools"),
        ),
    ] = "pixels",
    split: Split = "train",
    data: DataFolder = None,
    options: LearnerOptions,
    threads: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Learn new classes from a few images and existing classifiers.

    Example: visionshare transfer photos/ out/digits/classifier.safetensors --out new.safetensors

    Example: visionshare transfer photos/ --features efficientnet-lite0-classes --out new

    Example: visionshare transfer photos/ sources/ --positive-class cat --out cat.safetensors

    Images are resized to the sources' size. Images not drawn for training are used for validation.
    """
    from visionshare.recipes.source_classifiers import read_sources, source_files
    from visionshare.recipes.transfer import Task, image_shape
    from visionshare.recipes.transfer import transfer as run

    learner = options.learner(threads)
    task = Task(features, positive_class, positives, negatives, options.seed)
    task.check()
    check_file("--out", out, inputs=[*files_of(dataset), *source_files(sources or [])])
    known = read_sources(sources or [])
    images = _images(dataset, split, data, image_shape(known, features))
    result = run(images, known, learner, task, threads)
    result.classifier.save(out)
    figures = {
        "classifier": str(out),
        "features": result.classifier.n_features,
        "trained_on": result.trained_on,
        "validated_on": result.validated_on,
        "balanced_accuracy": result.balanced_accuracy,
        "sources": [asdict(entry) for entry in result.chosen],
    }
    say(json.dumps(figures) if as_json else "\n".join(_lines(figures)))


def _images(dataset: str, split: str, data: Path | None, shape: tuple[int, ...]) -> ImageSet:
    """Return the new images, of the shape that the sources take."""
    from visionshare.datasets import load_images

    size = None if len(shape) == 1 else (shape[0], shape[1])
    mode = "color" if shape[2:] == (3,) else "gray"
    images = load_images(dataset, split, data, size, mode)
    if shape[2:] == (1,) and images.images.shape[1:] == shape[:2]:
        return replace(images, images=images.images[..., None])
    return images


def _lines(figures: dict[str, Any]) -> list[str]:
    used = figures["sources"]
    lines = ["no source was chosen: features of the images did better"]
    if used:
        width = max(6, *(len(entry["source"]) for entry in used))
        wide = max(5, *(len(entry["source_class"]) for entry in used))
        lines = [f"{'weight':>8}  {'source':{width}}  {'score':{wide}}  for"]
        for entry in used:
            source = entry["source"]
            score = entry["source_class"]
            weight = entry["weight"]
            target = entry["target"]
            lines.append(f"{weight:+8.3f}  {source:{width}}  {score:{wide}}  {target}")
    lines.append(f"features     {figures['features']}")
    lines.append(f"trained on   {figures['trained_on']} images")
    accuracy = figures["balanced_accuracy"]
    if accuracy is not None:
        others = figures["validated_on"]
        lines.append(f"accuracy     {100 * accuracy:.1f} % balanced, on the other {others}")
    lines.append(f"classifier   {figures['classifier']}")
    return lines
