"""Many pictures and large scans, killed and resumed: ``python -m benchmarks.extraction_campaign``.

Pictures of 28 × 28 and tiled, compressed scans are made (a few contents under many names), and
``visionshare extract`` runs on them twice: once undisturbed, and once killed some times at random
moments and started again. Printed are rows per second, the largest resident memory of any run, and
whether both tables are equal, byte for byte.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

__all__ = ["main", "make_pictures", "make_scans", "measured"]

# Contents that differ; the other files are links to them.
_DISTINCT_SCANS = 4


def make_pictures(folder: Path, n: int, side: int = 28) -> None:
    """Write pictures of noise under waves, as PNG."""
    import cv2

    folder.mkdir()
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:side, :side]
    for number in range(n):
        wave = np.sin(rows * rng.uniform(0, 1.5) + columns * rng.uniform(0, 1.5))
        picture = 128 + 60 * wave + rng.normal(0, 25, (side, side))
        cv2.imwrite(str(folder / f"{number:06d}.png"), np.clip(picture, 0, 255).astype(np.uint8))


def make_scans(folder: Path, n: int, side: int = 8000) -> None:
    """Write TIFFs of compressed tiles, as pages under a microscope: noise of several sizes."""
    import cv2
    import tifffile

    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(n):
        path = folder / f"{number:04d}.tif"
        if number >= _DISTINCT_SCANS:
            os.link(folder / f"{number % _DISTINCT_SCANS:04d}.tif", path)
            continue
        coarse = rng.integers(0, 256, (side // 40 + 1, side // 40 + 1), np.uint8)
        fine = rng.integers(0, 40, (side // 2, side // 2), np.uint8)
        pixels = cv2.resize(coarse, (side, side)) // 2 + cv2.resize(fine, (side, side))
        tifffile.imwrite(path, pixels, tile=(256, 256), compression="zlib")


def _command(folder: Path, out: Path, options: list[str]) -> list[str]:
    start = [sys.executable, "-m", "visionshare", "extract", "lbp", str(folder)]
    return [*start, "--out", str(out), "--sample", "500", *options]


def _peak(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; return the largest resident memory that the system saw, in MB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _killed_and_resumed(command: list[str], seconds: float, kills: int) -> Iterator[float]:
    """Run a command that is killed some times; yield the memory of each run."""
    chosen = random.Random(0)
    for number in range(kills + 1):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        if number < kills:
            time.sleep(seconds * chosen.uniform(0.3, 0.8) / kills + 1)
            # Popen.kill would reap a process that has ended.
            os.kill(process.pid, signal.SIGKILL)
        yield _peak(process)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")


def measured(folder: Path, options: list[str], kills: int, work: Path) -> dict[str, float | bool]:
    """Return rows per second, largest memory and equality of an extraction and a killed one."""
    whole = work / "whole.csv"
    resumed = work / "resumed.csv"
    begun = time.perf_counter()
    (first,) = _killed_and_resumed(_command(folder, whole, options), 0, 0)
    seconds = time.perf_counter() - begun
    peaks = list(_killed_and_resumed(_command(folder, resumed, options), seconds, kills))
    with open(whole, "rb") as a, open(resumed, "rb") as b:
        content = a.read()
        is_equal = content == b.read()
    rows = content.count(b"\n") - 1
    return {
        "rows": rows,
        "rate": rows / seconds,
        "megabytes": max(first, *peaks),
        "equal": is_equal,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure pictures and scans and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="benchmarks.extraction_campaign", description=__doc__)
    parser.add_argument("--pictures", type=int, default=100_000)
    parser.add_argument("--scans", type=int, default=200)
    parser.add_argument("--side", type=int, default=8000)
    parser.add_argument("--tile", type=int, default=256)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args(arguments)
    print("| what | rows | rows per second | largest MB | kills | same file |")
    print("|---|---|---|---|---|---|")
    for what in ("pictures", "scans"):
        n = getattr(options, what)
        if not n:
            continue
        work = Path(tempfile.mkdtemp())
        try:
            if what == "pictures":
                make_pictures(work / what, n)
            else:
                make_scans(work / what, n, options.side)
            regions = ["--tiles", str(options.tile)] if what == "scans" else []
            found = measured(work / what, regions, options.kills, work)
        finally:
            shutil.rmtree(work)
        line = (f"{n} {what}", found["rows"], f"{found['rate']:.0f}", f"{found['megabytes']:.0f}")
        same = "yes" if found["equal"] else "NO"
        print(f"| {' | '.join(map(str, line))} | {options.kills} | {same} |", flush=True)


if __name__ == "__main__":
    main()
