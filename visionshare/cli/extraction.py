"""The command that extracts features of image files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.images import Images, image_paths
from visionshare.cli.listing import completes
from visionshare.cli.options import Jobs, Scheduler, Workers, classifier_file
from visionshare.cli.text import portable, say
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.errors.names import nothing_named
from visionshare.files.bundled import bundled

if TYPE_CHECKING:
    from visionshare.cli.commands import Commands
    from visionshare.datasets import Preprocessing
    from visionshare.datasets.folders import Fit

__all__ = ["register"]


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(extract)


def extract(
    features: Annotated[
        str,
        typer.Argument(
            help="A pool (name or .toml), a classifier, or a features.safetensors.",
            autocompletion=completes("pools"),
        ),
    ],
    images: Images,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="FOLDER|URL",
            help="Folder of the store; of a URL (s3://bucket/NAME) it is out/s3/bucket/NAME until "
            "it is uploaded.",
        ),
    ],
    size: Annotated[
        str | None, typer.Option(help="HEIGHTxWIDTH of a pool's images; default the first's.")
    ] = None,
    color: Annotated[bool, typer.Option("--color", help="Keep colors, for a pool.")] = False,
    fit: Annotated[
        str | None,
        typer.Option(help="resize, or center on a canvas; default as the classifier, or resize."),
    ] = None,
    sample: Annotated[
        int, typer.Option(help="Number of images that a pool is fitted to.")
    ] = 10_000,
    dtype: Annotated[str, typer.Option(help="float32 or float16.")] = "float32",
    memory: Annotated[str, typer.Option(help="Memory for images and columns.")] = "1GiB",
    jobs: Jobs = -1,
    seed: Annotated[int, typer.Option(help="Seed of the pool and of the sample.")] = 0,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Skip images that cannot be read.")
    ] = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
) -> None:
    """Extract features of images into a column store; the same command resumes a stopped run."""
    # Example: visionshare extract out/digits/classifier.safetensors scans/ --out scans.store A
    # pool first learns its templates from a sample of the images and keeps them in
    # OUT/features.safetensors: give that file as FEATURES to extract the same from other images.
    from visionshare.batch import extract_features
    from visionshare.distributed import cluster_client
    from visionshare.distributed.mapping import ClusterMap
    from visionshare.files.uploads import Destination
    from visionshare.machine.memory import memory_limit
    from visionshare.machine.resources import resolve_jobs

    threads = resolve_jobs(jobs, "--jobs")
    folder = Destination.of(out, replaces=False).folder
    paths = list(image_paths(images))
    options = _PoolOptions(size, color, fit or "resize", sample, seed, threads, skip_broken)
    with memory_limit(memory, "--memory"):
        family, steps = _family(features, paths, folder, options)
    with cluster_client(workers, scheduler, threads) as client:
        extraction = extract_features(
            family,
            paths,
            out,
            fit=fit or steps,
            dtype=dtype,
            memory=memory,
            n_jobs=threads,
            skip_broken=skip_broken,
            mapper=None if client is None else ClusterMap(client),
        )
    for path in extraction.broken:
        say(f"skipped      {portable(path)}", err=True)
    say(f"images       {extraction.images}")
    say(f"features     {extraction.features}")
    say(f"store        {extraction.folder}")


@dataclass(frozen=True)
class _PoolOptions:
    size: str | None
    color: bool
    fit: str
    sample: int
    seed: int
    threads: int
    skip_broken: bool


def _family(
    features: str, paths: list[str], folder: Path, options: _PoolOptions
) -> tuple[Any, Fit]:
    """Return the family, and the preprocessing of its images by default."""
    from visionshare import load
    from visionshare.batch import FEATURES_FILE
    from visionshare.batch.extraction import check_extraction_folder
    from visionshare.files.tensors import tensor_file_format
    from visionshare.generators.family_file import FORMAT, read_family, write_family
    from visionshare.recipes.pools import LISTED_POOLS

    path = Path(features)
    if path.is_dir():
        path = classifier_file(path)
    elif not path.is_file() and features not in bundled("features"):
        kind = "pool of features, classifier or file of features"
        raise RecipeError(nothing_named(features, kind, bundled("features"), LISTED_POOLS))
    if path.is_file() and path.suffix != ".toml":
        if tensor_file_format(path) == FORMAT:
            return read_family(path), "resize"
        model = load(path)
        return model.family, _plain(model.preprocessing)
    learned = folder / FEATURES_FILE
    if learned.is_file():
        # A stopped extraction resumes with the templates it has.
        return read_family(learned), "resize"
    check_extraction_folder(folder)
    family = _learned(features, paths, options)
    write_family(learned, family)
    return family, "resize"


def _plain(steps: Preprocessing) -> Fit:
    """Return the name of steps that have one: older extractions can be resumed."""
    from visionshare.datasets import Preprocessing
    from visionshare.datasets.folders import NAMED_FITS

    return next((name for name in NAMED_FITS if Preprocessing(fit=name) == steps), steps)


def _learned(pool: str, paths: list[str], options: _PoolOptions) -> Any:
    """Return a pool's family, fitted on a sample of the images."""
    import numpy as np

    from visionshare.datasets.folders import as_preprocessing, read_images
    from visionshare.datasets.pictures.value_ranges import limits_of, widest, with_range
    from visionshare.machine.memory import check_fits
    from visionshare.recipes.pools import read_pool
    from visionshare.recipes.schema import FeaturePart

    if options.sample < 1:
        raise InputError("--sample", options.sample, "a number of images of at least 1")
    family = read_pool(FeaturePart(pool=pool), options.seed)
    mode = "color" if options.color else "gray"
    rng = np.random.default_rng(options.seed)
    chosen = [paths[i] for i in np.sort(rng.permutation(len(paths))[: options.sample])]
    shape = _size(options.size) if options.size else _shape(paths, mode, options.skip_broken)
    # Of a sample that does not fit the error names the ways out that images have; here one more.
    needed = len(chosen) * float(np.prod(shape)) * (3 if options.color else 1)
    check_fits(f"a sample of {len(chosen)} images", needed, "a smaller --sample or --size")
    # Images that are not in the sample have values, too.
    steps = with_range(as_preprocessing(options.fit), widest(map(limits_of, paths)))
    sample = read_images(chosen, shape, mode, steps, options.threads, broken=[])
    return family.fit(sample)


def _shape(paths: list[str], mode: str, skip_broken: bool) -> tuple[int, int]:
    """Return the height and width of the first picture, of those that can be read where asked."""
    from visionshare.datasets.folders import read_image

    chosen = paths[0]
    for path in paths[:-1] if skip_broken else []:
        with suppress(DataError):
            height, width = read_image(path, None, mode).shape[:2]
            return height, width
        chosen = paths[-1]
    height, width = read_image(chosen, None, mode).shape[:2]
    return height, width


def _size(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if not all(p.isdecimal() and 1 <= int(p) <= 4096 for p in parts) or len(parts) > 2:
        raise InputError("--size", text, "HEIGHTxWIDTH, such as 28x28, each at most 4096")
    return int(parts[0]), int(parts[-1])
