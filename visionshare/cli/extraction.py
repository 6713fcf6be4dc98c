"""The command that extracts features of image files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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
from visionshare.cli.outputs import check_file
from visionshare.cli.text import portable, say
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.errors.names import nothing_named
from visionshare.files.bundled import bundled

if TYPE_CHECKING:
    from visionshare.datasets.folders import Fit


# Images from which on the time is estimated first.
_PLANNED = 100


@dataclass(frozen=True)
class PoolOptions:
    """Pools, which are fitted to the images."""

    size: ImageSize = None
    color: Annotated[
        bool, typer.Option("--color", help="Keep colors. Pretrained networks always do.")
    ] = False
    draft: Annotated[
        bool,
        typer.Option(
            "--draft",
            help="Decode large JPEGs at 1/2 to 1/8 of their size, but at least twice the image "
            "size. 2 to 5 times as fast; gray values change by 1 on average and about 30 at "
            "most.",
        ),
    ] = False
    sample: Annotated[int, typer.Option(help="Number of images to fit the pool to.")] = 10_000
    seed: Seed = 0


@dataclass(frozen=True)
class RegionOptions:
    """Regions of images."""

    tiles: Annotated[
        int | None,
        typer.Option(min=1, help="Cut images into tiles of N × N pixels, one row per tile."),
    ] = None
    masks: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of label images with the same names: one row per object, cut out of its "
            "image.",
        ),
    ] = None
    keypoints: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Table of points (path, y, x): one row per patch of --tiles pixels around each.",
        ),
    ] = None
    level: Annotated[int, typer.Option(min=0, help="Level of a TIFF pyramid. 0 is full size.")] = 0

    def of(self, paths: list[str], n_jobs: int) -> list[str] | None:
        """Return the regions of images as texts; None where images are taken whole."""
        from visionshare.batch.regions import objects_of, patches_around, tiles_of

        masks = self.masks
        side = self.tiles
        level = self.level
        if masks is not None and (side or self.keypoints):
            raise InputError("--masks", str(masks), "masks without --tiles and --keypoints")
        if masks is not None and not masks.is_dir():
            raise InputError("--masks", str(masks), "a folder of label images")
        if masks is not None:
            return list(map(str, objects_of(paths, masks, level, n_jobs)))
        if self.keypoints is not None:
            return list(map(str, patches_around(self.keypoints, paths, side or 64, level)))
        if side is not None:
            return [str(region) for path in paths for region in tiles_of(path, side, level)]
        if level:
            raise InputError("--level", level, "a level with --tiles, --masks or --keypoints")
        return None


def extract(
    features: Annotated[
        str,
        typer.Argument(
            help="Pools (names or .toml files, separated by commas), a classifier, or a "
            "features.safetensors file.",
            autocompletion=completes("pools"),
        ),
    ],
    images: Images,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE|FOLDER|URL",
            help="A table (.parquet, .csv, .npz, .h5, .h5ad) or the folder of a store. Columns of a"
            " table are kept in FILE.store. With a URL (s3://bucket/NAME), results stay in "
            "out/s3/bucket/NAME until they are uploaded.",
        ),
    ],
    dtype: Annotated[
        str, typer.Option(metavar="TYPE", help="Type of the features: float32 or float16.")
    ] = "float32",
    memory: Memory = "1GiB",
    threads: Jobs = -1,
    skip_broken: SkipBroken = False,
    *,
    pool: PoolOptions,
    region: RegionOptions,
    cluster: Cluster,
) -> None:
    """Extract features of images as a table or a column store.

    Run the same command again to resume a stopped run.

    Example: visionshare extract out/digits/classifier.safetensors scans/ --out scans.csv

    A pool first learns its templates from a sample of the images and saves them in
    OUT.store/features.safetensors. Pass that file as FEATURES to extract the same features from
    other images.
    """
    from visionshare.batch import extract_features, write_table
    from visionshare.batch.evaluated_files import Source
    from visionshare.batch.extraction import estimated_seconds
    from visionshare.batch.regions import files_of
    from visionshare.files.uploads import Destination
    from visionshare.machine.memory import memory_limit
    from visionshare.store import open_store

    is_table = _is_table(out)
    store = f"{out}.store" if is_table else out
    folder = Destination.of(store, replaces=False).folder
    paths = list(image_paths(images))
    labels = _labels(images, paths)
    with_regions = region.of(paths, threads)
    if pool.draft and with_regions is not None:
        raise InputError("--draft", True, "images taken whole: regions are cut out at full size")
    if with_regions is not None:
        if labels is not None:
            label_of = dict(zip(paths, labels, strict=True))
            labels = [label_of[files_of(text)[0]] for text in with_regions]
        paths = with_regions
    with memory_limit(memory, "--memory"):
        family, fit = _family(features, paths, folder, pool, threads, skip_broken)
    kind = "images" if with_regions is None else "regions"
    if len(paths) >= _PLANNED and cluster.workers is None and cluster.scheduler is None:
        regions = with_regions is not None
        source = Source(family, fit, dtype, True, threads, regions, pool.draft)
        seconds = estimated_seconds(source, paths)
        time = f", about {seconds:.0f} s" if seconds else ""
        say(f"plan         {len(paths)} {kind}, {family.n_features_} features{time}", err=True)
    with cluster.mapper(threads) as mapper:
        extraction = extract_features(
            family,
            paths,
            store,
            fit=fit,
            dtype=dtype,
            memory=memory,
            n_jobs=threads,
            skip_broken=skip_broken,
            mapper=mapper,
            labels=labels,
            regions=with_regions is not None,
            draft=pool.draft,
        )
    for path in extraction.broken:
        say(f"skipped      {portable(path)}", err=True)
    say(f"{kind:12} {extraction.images}")
    say(f"features     {extraction.features}")
    say(f"store        {extraction.folder}")
    if is_table:
        say(f"table        {write_table(open_store(folder, memory=memory), out)}")


def _is_table(out: str) -> bool:
    """Return whether the output is a table, by its ending; refuse endings of other files."""
    from visionshare.batch.tables import TABLES, check_table
    from visionshare.files.storage import is_url

    path = Path(out)
    if path.suffix in TABLES and not path.is_dir():
        if is_url(out):
            raise InputError("--out", out, "a table on this machine, or a URL without an ending")
        check_table(out, "--out")
        check_file("--out", path)
        return True
    if path.suffix[1:].isalpha() and path.suffix != ".store" and not path.exists():
        endings = ", ".join(TABLES)
        accepted = f"a table ({endings}), or a folder: a name without ending, or with .store"
        raise InputError("--out", out, accepted)
    return False


def _labels(entries: list[str], paths: list[str]) -> list[str] | None:
    """Return the folder that each image lies in, for folders of folders; None for other images."""
    folders = [Path(entry) for entry in entries if Path(entry).is_dir()]
    labels = []
    for path in map(Path, paths):
        folder = next((folder for folder in folders if path.is_relative_to(folder)), None)
        if folder is None or len(path.relative_to(folder).parts) < 2:
            return None
        labels.append(path.relative_to(folder).parts[0])
    return labels


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

    names = features.split(",")
    path = Path(features)
    if len(names) > 1:
        for name in names:
            if not Path(name).is_file() and name not in bundled("features"):
                kind = "pool of features"
                raise RecipeError(nothing_named(name, kind, bundled("features"), LISTED_POOLS))
    elif path.is_dir():
        path = classifier_file(path)
    elif not path.is_file() and features not in bundled("features"):
        kind = "pool of features, classifier or file of features"
        raise RecipeError(nothing_named(features, kind, bundled("features"), LISTED_POOLS))
    if len(names) == 1 and path.is_file() and path.suffix != ".toml":
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
    names: str, paths: list[str], pool: PoolOptions, threads: int, skip_broken: bool
) -> Any:
    """Return the family of one or several pools, fitted on a sample of the images."""
    import numpy as np

    from visionshare import PretrainedNetwork, UnionOfFamilies
    from visionshare.batch.evaluated_files import scan_limits
    from visionshare.batch.regions import files_of, read_regions, region_of
    from visionshare.datasets.folders import as_preprocessing, read_images
    from visionshare.datasets.pictures.value_ranges import limits_of, widest, with_range
    from visionshare.machine.memory import check_fits
    from visionshare.recipes.pools import read_pool
    from visionshare.recipes.schema import FeaturePart

    if pool.sample < 1:
        raise InputError("--sample", pool.sample, "a number of images of at least 1")
    families = [read_pool(FeaturePart(pool=one), pool.seed) for one in names.split(",")]
    family = families[0] if len(families) == 1 else UnionOfFamilies(families)
    # Pretrained networks learned from colors; they learn nothing here, and have their own size.
    sides = [one.size for one in families if isinstance(one, PretrainedNetwork)]
    learns = len(sides) < len(families)
    in_color = pool.color or len(sides) > 0
    mode = "color" if in_color else "gray"
    order = np.random.default_rng(pool.seed).permutation(len(paths))
    chosen = [paths[i] for i in np.sort(order[: pool.sample if learns else 1])]
    shape = image_size(pool.size)
    if shape is None:
        shape = _first_size(paths, mode, skip_broken) if learns else (max(sides), max(sides))
    # The error of a sample that does not fit names what images can do; here there is one way more.
    needed = len(chosen) * float(np.prod(shape)) * (3 if in_color else 1)
    check_fits(f"a sample of {len(chosen)} images", needed, "a smaller --sample or --size")
    # Images that are not in the sample have values, too.
    files = dict.fromkeys(files_of(path)[0] for path in paths)
    are_regions = region_of(paths[0]) is not None
    limits = widest(map(scan_limits if are_regions else limits_of, files))
    steps = with_range(as_preprocessing("resize"), limits)
    read = read_regions if are_regions else partial(read_images, draft=pool.draft)
    return family.fit(read(chosen, shape, mode, steps, threads, broken=[]))


def _first_size(paths: list[str], mode: str, skip_broken: bool) -> tuple[int, int]:
    """Return the height and width of the first picture, or of the first that can be read."""
    from visionshare.batch.regions import region_of
    from visionshare.datasets.folders import read_image

    region = region_of(paths[0])
    if region is not None:
        y0, x0, y1, x1 = region.box
        # Objects have sizes of their own.
        return (64, 64) if region.mask else (y1 - y0, x1 - x0)
    for path in paths[:-1] if skip_broken else []:
        with suppress(DataError):
            height, width = read_image(path, None, mode).shape[:2]
            return height, width
    # What is wrong with the last one is told.
    path = paths[-1] if skip_broken else paths[0]
    height, width = read_image(path, None, mode).shape[:2]
    return height, width
