"""Batch feature extraction beside other libraries: ``python -m benchmarks.extraction [FOLDER]``.

Every contender computes the same features of the same pictures, each in a process of its own and on
as many cores as the line says; reading and decoding the files count, what is compiled or planned
once does not. Contenders take turns, so that a busy machine is unfair to none; the best of some
turns counts. Without a folder, pictures of noise under waves are made. Printed are pictures and
processor time, the largest resident memory, and the largest difference from ours relative to the
largest value.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CONTENDERS", "Contender", "Line", "Work", "main", "make_masks", "measured", "table"]

_RADIUS, _POINTS, _GRID = 1, 8, 2
_POOL, _FEW = 500, 100
# Objects per side of a mask, and the side that each is brought to.
_OBJECTS, _OBJECT_SIDE = 3, 32
_LARGE_SIDE = 256


@dataclass(frozen=True)
class Work:
    """Pictures, a folder of a mask for each, and the number of cores."""

    paths: list[str]
    masks: str
    cores: int


@dataclass(frozen=True)
class Contender:
    """A library's way to some features.

    Attributes
    ----------
    features, library : str
    extract : callable
        From the work to the features, a row per picture.
    module : str
        That has to be installed.
    share : float
        Of the pictures: fewer where they take long, some times as many where they do not.
    is_equal : bool
        Whether the values are to equal ours.
    """

    features: str
    library: str
    extract: Callable[[Work], np.ndarray]
    module: str
    share: float = 1.0
    is_equal: bool = True


@dataclass(frozen=True)
class Line:
    """What one contender took; nothing where it is not installed or fails, as the remark says."""

    features: str
    library: str
    side: int
    cores: int
    rate: float = 0.0
    milliseconds: float = 0.0
    megabytes: float = 0.0
    difference: float | None = None
    remark: str = ""


def _pixels(path: str) -> np.ndarray:
    import cv2

    return np.asarray(cv2.imread(path, cv2.IMREAD_GRAYSCALE))


def _in_threads(one: Callable[[str], np.ndarray], work: Work) -> np.ndarray:
    with ThreadPoolExecutor(work.cores) as threads:
        return np.stack(list(threads.map(one, work.paths)))


def _images(work: Work) -> np.ndarray:
    from visionshare.datasets.folders import read_images

    first = _pixels(work.paths[0]).shape
    return read_images(work.paths, (first[0], first[1]), "gray", n_jobs=work.cores)


def our_patterns(work: Work) -> np.ndarray:
    """Local binary patterns of visionshare."""
    from visionshare import LocalBinaryPatterns

    images = _images(work)
    family = LocalBinaryPatterns("rotation-invariant", _RADIUS, _POINTS, _GRID).fit(images)
    return family.transform(images, n_jobs=work.cores)


def _cells(gray: np.ndarray, grid: int = _GRID) -> np.ndarray:
    """Return scikit-image's histograms of codes in the cells of a grid, one after the other."""
    from skimage.feature import local_binary_pattern

    codes = local_binary_pattern(gray, _POINTS, _RADIUS, "uniform")
    inner = codes[_RADIUS:-_RADIUS, _RADIUS:-_RADIUS].astype(np.int64)
    histograms = []
    for rows in np.array_split(inner, grid):
        for cell in np.array_split(rows, grid, axis=1):
            histograms.append(np.bincount(cell.ravel(), minlength=_POINTS + 2) / cell.size)
    return np.concatenate(histograms)


def patterns_of_scikit_image(work: Work) -> np.ndarray:
    """The same by scikit-image and NumPy."""
    return _in_threads(lambda path: _cells(_pixels(path)), work)


def patterns_of_mahotas(work: Work) -> np.ndarray:
    """Local binary patterns of mahotas: of the whole picture, with codes of its own."""
    from mahotas.features import lbp

    return _in_threads(lambda path: lbp(_pixels(path), _RADIUS, _POINTS), work)


def gradients_of_scikit_image(work: Work) -> np.ndarray:
    """Histograms of gradients of scikit-image: other features, as many per cell."""
    from skimage.feature import hog

    return _in_threads(lambda path: np.asarray(hog(_pixels(path))), work)


def our_objects(work: Work) -> np.ndarray:
    """Local binary patterns of each object of a mask, of visionshare."""
    from visionshare import LocalBinaryPatterns
    from visionshare.batch.regions import objects_of, read_regions
    from visionshare.datasets.preprocessing import Preprocessing

    masks = Path(work.masks)
    texts = list(map(str, objects_of(work.paths, masks, n_jobs=work.cores)))
    size = (_OBJECT_SIDE, _OBJECT_SIDE)
    images = read_regions(texts, size, "gray", Preprocessing(), work.cores)
    family = LocalBinaryPatterns("rotation-invariant", _RADIUS, _POINTS, 1).fit(images)
    return family.transform(images, n_jobs=work.cores).reshape(len(work.paths), -1)


def objects_of_scikit_image(work: Work) -> np.ndarray:
    """The same as an extra property of scikit-image's ``regionprops_table``."""
    import cv2
    from PIL import Image
    from skimage.measure import regionprops_table

    def patterns(mask: np.ndarray, gray: np.ndarray) -> np.ndarray:
        cut = Image.fromarray(np.where(mask, gray, 0).astype(np.uint8))
        return _cells(np.asarray(cut.resize((_OBJECT_SIDE,) * 2, Image.Resampling.BOX)), 1)

    def one(path: str) -> np.ndarray:
        numbers = cv2.imread(f"{work.masks}/{Path(path).stem}.png", cv2.IMREAD_UNCHANGED)
        options: dict[str, Any] = {"properties": (), "extra_properties": (patterns,)}
        columns = regionprops_table(numbers, _pixels(path), **options)
        return np.stack(list(columns.values()), axis=1).ravel()

    return _in_threads(one, work)


def _bank(paths: list[str], n: int) -> Any:
    from visionshare import GaborBank

    return GaborBank(n).fit(_pixels(paths[0])[None])


def our_filters(n: int, work: Work) -> np.ndarray:
    """Gabor features of visionshare: absolute responses at every second pixel, summed."""
    images = _images(work)
    features: np.ndarray = _bank(work.paths, n).transform(images, n_jobs=work.cores)
    return features


@cache
def _kernels(path: str, n: int) -> list[np.ndarray]:
    """Return the values of the filters, each as large as it reaches."""
    from visionshare.generators.gabor.values import gabor_values, reach_of

    filters = _bank([path], n).filters_
    sides = [int(reach) + 1 for reach in reach_of(filters)]
    return [gabor_values(filters[i : i + 1], side, side)[0] for i, side in enumerate(sides)]


def _pooled(
    respond: Callable[[np.ndarray, Any], np.ndarray], filters: list[Any], path: str
) -> np.ndarray:
    gray = _pixels(path).astype(np.float32) / np.float32(255)
    first = tuple((side - 1) % 2 // 2 for side in gray.shape)
    sums = [np.abs(respond(gray, f)[first[0] :: 2, first[1] :: 2]).sum() for f in filters]
    return np.array(sums)


def filters_of_opencv(n: int, work: Work) -> np.ndarray:
    """The same by OpenCV's filter2D."""
    import cv2

    cv2.setNumThreads(1)

    def respond(gray: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        response: np.ndarray = cv2.filter2D(gray, -1, kernel, borderType=cv2.BORDER_CONSTANT)
        return response

    return _in_threads(partial(_pooled, respond, _kernels(work.paths[0], n)), work)


def filters_of_scipy(work: Work) -> np.ndarray:
    """The same by SciPy's convolution in the frequency domain."""
    from scipy.signal import fftconvolve

    def respond(gray: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        response: np.ndarray = fftconvolve(gray, kernel[::-1, ::-1], mode="same")
        return response

    return _in_threads(partial(_pooled, respond, _kernels(work.paths[0], _FEW)), work)


def filters_of_scikit_image(work: Work) -> np.ndarray:
    """The same by scikit-image's ``gabor``, which cuts filters at an ellipse's box."""
    from skimage.filters import gabor

    def respond(gray: np.ndarray, filter_: np.ndarray) -> np.ndarray:
        theta, frequency, across, along = map(float, filter_[:4])
        shape = {"theta": theta, "sigma_x": across, "sigma_y": along, "mode": "constant"}
        real, _ = gabor(gray, frequency, **shape)
        # Its filters are divided by this.
        return np.asarray(real) * (2 * np.pi * across * along)

    filters = list(_bank(work.paths, _FEW).filters_)
    return _in_threads(partial(_pooled, respond, filters), work)


def scattering_of_kymatio(work: Work) -> np.ndarray:
    """Scattering of kymatio: other features of a quarter as many wavelets, for scale."""
    import scipy.special

    # Its module of spheres, which is not used here, imports what newer versions of SciPy lack.
    scipy.special.sph_harm = getattr(scipy.special, "sph_harm", None)
    from kymatio.numpy import Scattering2D

    scattering = Scattering2D(J=3, shape=_pixels(work.paths[0]).shape, L=8, max_order=1)

    def one(path: str) -> np.ndarray:
        features: np.ndarray = scattering(_pixels(path).astype(np.float32)).mean(axis=(1, 2))
        return features

    return _in_threads(one, work)


_LBP = "local binary patterns"
_IN_OBJECTS = f"{_LBP} of {_OBJECTS**2} objects"
_GABOR = f"{_FEW} Gabor filters"
_WHOLE_POOL = f"pool `gabor`, {_POOL} filters"
#: Ours comes first of each kind of features.
CONTENDERS = [
    Contender(_LBP, "visionshare", our_patterns, "numpy", 5),
    Contender(_LBP, "scikit-image", patterns_of_scikit_image, "skimage", 5),
    Contender(_LBP, "mahotas", patterns_of_mahotas, "mahotas", is_equal=False),
    Contender(_LBP, "scikit-image `hog`", gradients_of_scikit_image, "skimage", is_equal=False),
    Contender(_IN_OBJECTS, "visionshare", our_objects, "numpy"),
    Contender(_IN_OBJECTS, "scikit-image `regionprops_table`", objects_of_scikit_image, "skimage"),
    Contender(_GABOR, "visionshare", partial(our_filters, _FEW), "numpy", 0.5),
    Contender(_GABOR, "OpenCV `filter2D`", partial(filters_of_opencv, _FEW), "cv2", 0.2),
    Contender(_GABOR, "SciPy `fftconvolve`", filters_of_scipy, "scipy", 0.1),
    Contender(_GABOR, "scikit-image `gabor`", filters_of_scikit_image, "skimage", 0.005),
    Contender(_GABOR, "kymatio", scattering_of_kymatio, "kymatio", 0.2, is_equal=False),
    Contender(_WHOLE_POOL, "visionshare", partial(our_filters, _POOL), "numpy", 0.2),
    Contender(_WHOLE_POOL, "OpenCV `filter2D`", partial(filters_of_opencv, _POOL), "cv2", 0.05),
]


def _make_pictures(folder: Path, n: int, side: int) -> None:
    import cv2

    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:side, :side]
    for number in range(n):
        wave = np.sin(rows * rng.uniform(0, 1.5) + columns * rng.uniform(0, 1.5))
        picture = 128 + 60 * wave + rng.normal(0, 25, (side, side))
        cv2.imwrite(str(folder / f"{number:05d}.jpg"), np.clip(picture, 0, 255).astype(np.uint8))


def make_masks(folder: Path, paths: list[str]) -> None:
    """Write a mask of discs for each picture."""
    import cv2

    folder.mkdir()
    for path in paths:
        height, width = _pixels(path).shape
        numbers = np.zeros((height, width), np.uint8)
        for number in range(_OBJECTS**2):
            row = number // _OBJECTS * height // _OBJECTS
            column = number % _OBJECTS * width // _OBJECTS
            middle = (column + width // 6, row + height // 6)
            cv2.circle(numbers, middle, min(height, width) // 7, number + 1, thickness=-1)
        cv2.imwrite(str(folder / f"{Path(path).stem}.png"), numbers)


def _run_one(number: int, work: Work, out: Path) -> None:
    """Extract by one contender in this process; print what it took as JSON."""
    from visionshare.machine.system import peak_memory

    extract = CONTENDERS[number].extract
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: work.cores])
    # What is compiled or planned once does not count.
    extract(Work(work.paths[:1], work.masks, work.cores))
    begun = time.perf_counter()
    busy = time.process_time()
    found = extract(work)
    busy = time.process_time() - busy
    seconds = time.perf_counter() - begun
    np.save(out, found)
    n = len(work.paths)
    took = {"rate": n / seconds, "milliseconds": 1000 * busy / n, "megabytes": peak_memory() / 1e6}
    print(json.dumps(took))


def _took(number: int, work: Work, folder: Path) -> dict[str, Any]:
    """Return what a contender took in a process of its own, or the remark that says why not."""
    if find_spec(CONTENDERS[number].module) is None:
        return {"remark": "not installed"}
    listed = folder / "work.json"
    listed.write_text(json.dumps(asdict(work)))
    out = folder / f"{number}.npy"
    command = [sys.executable, "-m", "benchmarks.extraction", "--one"]
    command += [str(number), str(listed), str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        return {"remark": f"fails: {run.stderr.strip().splitlines()[-1]}"}
    took: dict[str, Any] = json.loads(run.stdout)
    return took


def measured(
    paths: list[str], side: int, core_counts: list[int], repeats: int, kinds: str = ""
) -> Iterator[Line]:
    """Yield the best of some turns of each contender whose features contain a text."""
    chosen = [i for i, c in enumerate(CONTENDERS) if kinds in c.features]
    if side > _LARGE_SIDE:
        # Minutes per picture.
        chosen = [i for i in chosen if CONTENDERS[i].share > 0.01]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_masks(folder / "masks", paths)
        turns: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for _ in range(repeats):
            for number in chosen:
                share = CONTENDERS[number].share
                chosen_paths = (paths * max(1, round(share)))[: max(1, round(share * len(paths)))]
                for cores in core_counts:
                    work = Work(chosen_paths, str(folder / "masks"), cores)
                    turns.setdefault((number, cores), []).append(_took(number, work, folder))
        values: dict[str, np.ndarray] = {}
        for (number, cores), results in turns.items():
            contender = CONTENDERS[number]
            line = Line(contender.features, contender.library, side, cores)
            yield _best(line, results, folder / f"{number}.npy", values, contender.is_equal)


def _best(
    line: Line, results: list[dict[str, Any]], out: Path, values: dict[str, np.ndarray], equal: bool
) -> Line:
    """Return the line of the best results, compared with the first values of these features."""
    remarks = [result["remark"] for result in results if "remark" in result]
    if remarks:
        return replace(line, remark=remarks[0])
    found = np.load(out)
    ours = values.setdefault(line.features, found)
    n = min(len(ours), len(found))
    apart = float(np.abs(found[:n] - ours[:n]).max() / np.abs(ours).max()) if equal else None
    return replace(
        line,
        rate=max(result["rate"] for result in results),
        milliseconds=min(result["milliseconds"] for result in results),
        megabytes=max(result["megabytes"] for result in results),
        difference=apart,
    )


def table(lines: list[Line]) -> str:
    """Return lines as a Markdown table."""
    rows = [
        "| features | library | pixels | cores | pictures/s | CPU ms/picture | MB | difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        cells: list[object] = [line.features, line.library, line.side, line.cores]
        if line.remark:
            cells += [line.remark, "", "", ""]
        else:
            apart = "other features" if line.difference is None else f"{line.difference:.0e}"
            rate = f"{line.rate:.3g}" if line.rate < 100 else f"{line.rate:.0f}"
            cells += [rate, f"{line.milliseconds:.3g}", f"{line.megabytes:.0f}", apart]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> None:
    """Measure all contenders and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="benchmarks.extraction", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="pictures of one size")
    parser.add_argument("--pictures", type=int, default=200, help="of 112 pixels; fewer of larger")
    parser.add_argument("--sides", type=int, nargs="+", default=[112, 512])
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--features", default="", help="only those whose name contains this")
    parser.add_argument("--json", type=Path, help="file of the figures")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        number, listed, out = options.one
        _run_one(int(number), Work(**json.loads(Path(listed).read_text())), Path(out))
        return
    lines: list[Line] = []
    for side in options.sides:
        with tempfile.TemporaryDirectory() as made:
            folder = options.folder or Path(made)
            n = max(1, options.pictures * 112**2 // max(side, 112) ** 2)
            if options.folder is None:
                _make_pictures(folder, n, side)
            paths = sorted(str(path) for path in folder.iterdir())[:n]
            lines += measured(paths, side, options.cores, options.repeats, options.features)
    print(table(lines))
    if options.json:
        content = json.dumps([asdict(line) for line in lines], indent=1)
        options.json.write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
