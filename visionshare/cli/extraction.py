"""The command that extracts features of image files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.images import Images, image_paths
from visionshare.cli.listing import completes
from visionshare.cli.options import (
    Cluster,
    ImageSize,
    Jobs,
    Memory,
    Seed,
    SkipBroken,
    classifier_file,
    image_size,
)
from visionshare.cli.text import portable, say
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.errors.names import nothing_named
from visionshare.files.bundled import bundled

if TYPE_CHECKING:
    from visionshare.datasets.folders import Fit

__all__ = ["extract"]


@dataclass(frozen=True)
class PoolOptions:
    """Pools, which are fitted to the images."""

    size: ImageSize = None
    color: Annotated[bool, typer.Option("--color", help="Keep colors.")] = False
    sample: Annotated[int, typer.Option(help="Images that the pool is fitted to.")] = 10_000
    seed: Seed = 0


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
            metavar="FOLDER|URL",
            help="Folder of the store; of a URL (s3://bucket/NAME) it is out/s3/bucket/NAME until "
            "it is uploaded.",
        ),
    ],
    dtype: Annotated[
        str, typer.Option(metavar="TYPE", help="Of the features: float32 or float16.")
    ] = "float32",
    memory: Memory = "1GiB",
    jobs: Jobs = -1,
    skip_broken: SkipBroken = False,
    *,
    pool: PoolOptions,
    cluster: Cluster,
) -> None:
    """Extract features of images into a column store.

    The same command resumes a stopped run.

    Example: visionshare extract out/digits/classifier.safetensors scans/ --out scans.store

    A pool first learns its templates from a sample of the images and keeps them in
    OUT/features.safetensors: give that file as FEATURES to extract the same from other images.
    """
    from visionshare.batch import extract_features
    from visionshare.files.uploads import Destination
    from visionshare.machine.memory import memory_limit
    from visionshare.machine.resources import resolve_jobs

    threads = resolve_jobs(jobs, "--jobs")
    folder = Destination.of(out, replaces=False).folder
    paths = list(image_paths(images))
    with memory_limit(memory, "--memory"):
        family, fit = _family(features, paths, folder, pool, threads, skip_broken)
    with cluster.mapper(threads) as mapper:
        extraction = extract_features(
            family,
            paths,
            out,
            fit=fit,
            dtype=dtype,
            memory=memory,
            n_jobs=threads,
            skip_broken=skip_broken,
            mapper=mapper,
        )
    for path in extraction.broken:
        say(f"skipped      {portable(path)}", err=True)
    say(f"images       {extraction.images}")
    say(f"features     {extraction.features}")
    say(f"store        {extraction.folder}")


def _family(
    features: str,
    paths: list[str],
    folder: Path,
    pool: PoolOptions,
    threads: int,
    skip_broken: bool,
) -> tuple[Any, Fit]:
    """Return the family, and how its images are prepared."""
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
        return model.family, model.preprocessing
    learned = folder / FEATURES_FILE
    if learned.is_file():
        # A stopped extraction resumes with the templates it has.
        return read_family(learned), "resize"
    check_extraction_folder(folder)
    family = _learned(features, paths, pool, threads, skip_broken)
    write_family(learned, family)
    return family, "resize"


def _learned(
    name: str, paths: list[str], pool: PoolOptions, threads: int, skip_broken: bool
) -> Any:
    """Return a pool's family, fitted on a sample of the images."""
    import numpy as np

    from visionshare.datasets.folders import as_preprocessing, read_images
    from visionshare.datasets.pictures.value_ranges import limits_of, widest, with_range
    from visionshare.machine.memory import check_fits
    from visionshare.recipes.pools import read_pool
    from visionshare.recipes.schema import FeaturePart

    if pool.sample < 1:
        raise InputError("--sample", pool.sample, "a number of images of at least 1")
    family = read_pool(FeaturePart(pool=name), pool.seed)
    mode = "color" if pool.color else "gray"
    order = np.random.default_rng(pool.seed).permutation(len(paths))
    chosen = [paths[i] for i in np.sort(order[: pool.sample])]
    shape = image_size(pool.size) or _first_size(paths, mode, skip_broken)
    # The error of a sample that does not fit names what images can do; here there is one way more.
    needed = len(chosen) * float(np.prod(shape)) * (3 if pool.color else 1)
    check_fits(f"a sample of {len(chosen)} images", needed, "a smaller --sample or --size")
    # Images that are not in the sample have values, too.
    steps = with_range(as_preprocessing("resize"), widest(map(limits_of, paths)))
    return family.fit(read_images(chosen, shape, mode, steps, threads, broken=[]))


def _first_size(paths: list[str], mode: str, skip_broken: bool) -> tuple[int, int]:
    """Return the height and width of the first picture, or of the first that can be read."""
    from visionshare.datasets.folders import read_image

    for path in paths[:-1] if skip_broken else []:
        with suppress(DataError):
            height, width = read_image(path, None, mode).shape[:2]
            return height, width
    # What is wrong with the last one is told.
    path = paths[-1] if skip_broken else paths[0]
    height, width = read_image(path, None, mode).shape[:2]
    return height, width
