"""Batch feature extraction beside other libraries: ``python -m benchmarks.extraction [FOLDER]``.

Every contender computes the same features of the same pictures, each in a process of its own and on
as many cores as the line says; reading and decoding the files count. Without a folder, pictures of
noise under waves are made. Printed are pictures per second, the largest resident memory, and the
largest difference from ours relative to the largest value.
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
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CONTENDERS", "main"]

_CAPTURED: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
Extract = Callable[[list[str], int], np.ndarray]
_RADIUS, _POINTS, _GRID = 1, 8, 2
_FILTERS = 100


def _pixels(path: str) -> np.ndarray:
    import cv2

    return np.asarray(cv2.imread(path, cv2.IMREAD_GRAYSCALE))


def _in_threads(one: Callable[[str], np.ndarray], paths: list[str], cores: int) -> np.ndarray:
    with ThreadPoolExecutor(cores) as threads:
        return np.stack(list(threads.map(one, paths)))


def _images(paths: list[str], cores: int) -> np.ndarray:
    from visionshare.datasets.folders import read_images

    first = _pixels(paths[0]).shape
    return read_images(paths, (first[0], first[1]), "gray", n_jobs=cores)


def our_patterns(paths: list[str], cores: int) -> np.ndarray:
    """Local binary patterns of visionshare."""
    from visionshare import LocalBinaryPatterns

    images = _images(paths, cores)
    family = LocalBinaryPatterns("rotation-invariant", _RADIUS, _POINTS, _GRID).fit(images)
    return family.transform(images, n_jobs=cores)


def _cells(codes: np.ndarray) -> np.ndarray:
    """Return the histograms of codes in the cells of a grid, one after the other."""
    inner = codes[_RADIUS:-_RADIUS, _RADIUS:-_RADIUS].astype(np.int64)
    histograms = []
    for rows in np.array_split(inner, _GRID):
        for cell in np.array_split(rows, _GRID, axis=1):
            histograms.append(np.bincount(cell.ravel(), minlength=_POINTS + 2) / cell.size)
    return np.concatenate(histograms)


def patterns_of_scikit_image(paths: list[str], cores: int) -> np.ndarray:
    """The same by scikit-image and NumPy."""
    from skimage.feature import local_binary_pattern

    def one(path: str) -> np.ndarray:
        return _cells(local_binary_pattern(_pixels(path), _POINTS, _RADIUS, "uniform"))

    return _in_threads(one, paths, cores)


def patterns_of_mahotas(paths: list[str], cores: int) -> np.ndarray:
    """Local binary patterns of mahotas: of the whole picture, with codes of its own."""
    from mahotas.features import lbp

    return _in_threads(lambda path: lbp(_pixels(path), _RADIUS, _POINTS), paths, cores)


def _bank(paths: list[str]) -> object:
    from visionshare import GaborBank

    return GaborBank(_FILTERS, step=2).fit(_pixels(paths[0])[None])


def our_filters(paths: list[str], cores: int) -> np.ndarray:
    """Gabor features of visionshare: absolute responses at every second pixel, summed."""
    images = _images(paths, cores)
    features: np.ndarray = _bank(paths).transform(images, n_jobs=cores)  # type: ignore[attr-defined]
    return features


def _kernels(paths: list[str]) -> list[np.ndarray]:
    bank = _bank(paths)
    values = []
    for number in range(_FILTERS):
        whole = bank.describe(number)["filter"]  # type: ignore[attr-defined]
        rows, columns = np.nonzero(whole)
        middle = np.array(whole.shape) // 2
        reach = max(np.abs(rows - middle[0]).max(), np.abs(columns - middle[1]).max())
        around = tuple(slice(m - reach, m + reach + 1) for m in middle)
        values.append(np.ascontiguousarray(whole[around]))
    return values


def _pooled(
    respond: Callable[[np.ndarray, np.ndarray], np.ndarray], kernels: list[np.ndarray], path: str
) -> np.ndarray:
    gray = _pixels(path).astype(np.float32) / np.float32(255)
    first = tuple((side - 1) % 2 // 2 for side in gray.shape)
    sums = [np.abs(respond(gray, k)[first[0] :: 2, first[1] :: 2]).sum() for k in kernels]
    return np.array(sums)


def filters_of_opencv(paths: list[str], cores: int) -> np.ndarray:
    """The same by OpenCV's filter2D."""
    import cv2

    cv2.setNumThreads(1)

    def respond(gray: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        response: np.ndarray = cv2.filter2D(gray, -1, kernel, borderType=cv2.BORDER_CONSTANT)
        return response

    return _in_threads(partial(_pooled, respond, _kernels(paths)), paths, cores)


def filters_of_scipy(paths: list[str], cores: int) -> np.ndarray:
    """The same by SciPy's convolution in the frequency domain."""
    from scipy.signal import fftconvolve

    def respond(gray: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        response: np.ndarray = fftconvolve(gray, kernel[::-1, ::-1], mode="same")
        return response

    return _in_threads(partial(_pooled, respond, _kernels(paths)), paths, cores)


def scattering_of_kymatio(paths: list[str], cores: int) -> np.ndarray:
    """Scattering of kymatio: other features of as many wavelets, for scale."""
    from kymatio.numpy import Scattering2D

    scattering = Scattering2D(J=3, shape=_pixels(paths[0]).shape, L=8, max_order=1)

    def one(path: str) -> np.ndarray:
        features: np.ndarray = scattering(_pixels(path).astype(np.float32)).mean(axis=(1, 2))
        return features

    return _in_threads(one, paths, cores)


#: Features, contender, function, module that it needs, whether its values are to equal ours.
CONTENDERS: list[tuple[str, str, Extract, str, bool]] = [
    ("local binary patterns", "visionshare", our_patterns, "numpy", True),
    ("local binary patterns", "scikit-image", patterns_of_scikit_image, "skimage", True),
    ("local binary patterns", "mahotas", patterns_of_mahotas, "mahotas", False),
    ("Gabor filters", "visionshare", our_filters, "numpy", True),
    ("Gabor filters", "OpenCV filter2D", filters_of_opencv, "cv2", True),
    ("Gabor filters", "SciPy fftconvolve", filters_of_scipy, "scipy", True),
    ("Gabor filters", "kymatio", scattering_of_kymatio, "kymatio", False),
]


def _make_pictures(folder: Path, n: int, side: int) -> None:
    import cv2

    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:side, :side]
    for number in range(n):
        wave = np.sin(rows * rng.uniform(0, 1.5) + columns * rng.uniform(0, 1.5))
        picture = 128 + 60 * wave + rng.normal(0, 25, (side, side))
        cv2.imwrite(str(folder / f"{number:05d}.jpg"), np.clip(picture, 0, 255).astype(np.uint8))


def _run_one(number: int, cores: int, paths: list[str], out: Path) -> None:
    """Extract by one contender in this process; print what it took as JSON."""
    from visionshare.machine.system import peak_memory

    extract = CONTENDERS[number][2]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    # What is compiled or planned once does not count.
    extract(paths[:2], cores)
    begun = time.perf_counter()
    np.save(out, extract(paths, cores))
    seconds = time.perf_counter() - begun
    print(json.dumps({"rate": len(paths) / seconds, "megabytes": peak_memory() / 1e6}))


def _measured(paths: list[str], core_counts: list[int], repeats: int) -> Iterator[list[str]]:
    """Yield the lines of the table: the best of some repetitions for each contender."""
    values: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "paths.json"
        listed.write_text(json.dumps(paths))
        for number, (features, contender, _, module, is_equal) in enumerate(CONTENDERS):
            if find_spec(module) is None:
                yield [features, contender, "not installed", "", "", ""]
                continue
            for cores in core_counts:
                out = Path(folder) / f"{number}.npy"
                command = [sys.executable, "-m", "benchmarks.extraction", "--one"]
                command += [str(number), str(cores), str(listed), str(out)]
                environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
                runs = [
                    subprocess.run(command, env=environment, **_CAPTURED) for _ in range(repeats)
                ]
                if any(run.returncode for run in runs):
                    problem = runs[0].stderr.strip().splitlines()[-1]
                    yield [features, contender, str(cores), f"fails: {problem}", "", ""]
                    continue
                results = [json.loads(run.stdout) for run in runs]
                best = max(results, key=lambda run: float(run["rate"]))
                found = np.load(out)
                ours = values.setdefault(features, found)
                apart = np.abs(found - ours).max() / np.abs(ours).max() if is_equal else np.nan
                difference = "other features" if np.isnan(apart) else f"{apart:.0e}"
                rate = f"{best['rate']:.1f}"
                yield [
                    features,
                    contender,
                    str(cores),
                    rate,
                    f"{best['megabytes']:.0f}",
                    difference,
                ]


def main(arguments: list[str] | None = None) -> None:
    """Measure all contenders and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="benchmarks.extraction", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="pictures of one size")
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--side", type=int, default=112)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        number, cores, listed, out = options.one
        _run_one(int(number), int(cores), json.loads(Path(listed).read_text()), Path(out))
        return
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        if options.folder is None:
            _make_pictures(folder, options.pictures, options.side)
        paths = sorted(str(path) for path in folder.iterdir())[: options.pictures]
        print("| features | library | cores | pictures per second | MB | difference |")
        print("|---|---|---|---|---|---|")
        for line in _measured(paths, options.cores, options.repeats):
            print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
