"""Many pictures and large scans, killed and resumed: ``python -m benchmarks.extraction_campaign``.

Pictures of 28 × 28 and tiled, compressed scans are made (a few contents under many names), and
``visionshare extract`` runs on them twice: once undisturbed, and once killed some times, after
random numbers of parts, and started again. Printed are rows per second, the largest resident memory
of any run, how many kills ended a run, and whether both tables are equal, byte for byte.
``--json FILE`` keeps the figures.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from visionshare.files.fingerprints import IMAGE_BLOCK

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


def _run(command: list[str], out: Path, kill_after: int | None = None) -> tuple[float, bool]:
    """Run an extraction, killed after so many parts; return its memory in MB, and if it was."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    ended = 0
    while not ended:
        time.sleep(0.02)
        n_parts = 0 if kill_after is None else len(list(Path(f"{out}.store/work").glob("*.json")))
        if kill_after is not None and n_parts >= kill_after:
            # Popen.kill would reap a process that has ended.
            os.kill(process.pid, signal.SIGKILL)
            kill_after = None
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    # A process that ended before the signal keeps the code that it ended with.
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3), process.returncode != 0


def measured(folder: Path, options: list[str], kills: int, work: Path) -> dict[str, float | bool]:
    """Return rows per second, largest memory and equality of an extraction and a killed one."""
    whole = work / "whole.csv"
    resumed = work / "resumed.csv"
    begun = time.perf_counter()
    first = _run(_command(folder, whole, options), whole)
    seconds = time.perf_counter() - begun
    rows = _n_lines(whole) - 1
    chosen = random.Random(0)
    # Not after the last part, when a run might end before the signal.
    most = max(1, (rows - 1) // IMAGE_BLOCK)
    moments = sorted(chosen.randint(1, most) for _ in range(kills))
    runs = [first]
    for moment in [*moments, None]:
        runs.append(_run(_command(folder, resumed, options), resumed, moment))
    return {
        "rows": rows,
        "seconds": seconds,
        "rate": rows / seconds,
        "megabytes": max(peak for peak, _ in runs),
        "kills": sum(was_killed for _, was_killed in runs),
        "equal": filecmp.cmp(whole, resumed, shallow=False),
    }


def _n_lines(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def main(arguments: list[str] | None = None) -> None:
    """Measure pictures and scans and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="benchmarks.extraction_campaign", description=__doc__)
    parser.add_argument("--pictures", type=int, default=100_000)
    parser.add_argument("--scans", type=int, default=200)
    parser.add_argument("--side", type=int, default=8000)
    parser.add_argument("--tile", type=int, default=256)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file of the figures")
    options = parser.parse_args(arguments)
    print("| what | rows | rows per second | largest MB | kills at work | same file |")
    print("|---|---|---|---|---|---|")
    all_found: dict[str, dict[str, float | bool]] = {}
    for what in ("pictures", "scans"):
        n = getattr(options, what)
        if not n:
            continue
        work = Path(tempfile.mkdtemp())
        try:
            if what == "pictures":
                _in_a_process(make_pictures, work / what, n)
                regions = []
            else:
                _in_a_process(make_scans, work / what, n, options.side)
                regions = ["--tiles", str(options.tile)]
            found = measured(work / what, regions, options.kills, work)
        finally:
            shutil.rmtree(work)
        all_found[f"{n} {what}"] = found
        line = (f"{n} {what}", found["rows"], f"{found['rate']:.0f}", f"{found['megabytes']:.0f}")
        kills = f"{found['kills']} of {options.kills}"
        same = "yes" if found["equal"] else "NO"
        print(f"| {' | '.join(map(str, line))} | {kills} | {same} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(all_found, indent=1) + "\n", encoding="utf-8")


def _in_a_process(function: Callable[..., None], *arguments: object) -> None:
    """Call a function in a process of its own."""
    # The system counts the memory of a command from that of the process that starts it.
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{function.__name__}: exit code {process.exitcode}")


if __name__ == "__main__":
    main()
