"""Classifies pictures in tars on a server of S3 by workers, beside one process on local files.

Each way is a command of its own, in turns. Then a command is killed several times at random moments
and given again until it ends: every picture must be in the results once, as one process has it.
Run: ``python -m scripts.clusters.predictions --pictures 20000``.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from scripts.clusters.local import await_port, free_port
from visionshare.recipes import load_recipe, train

__all__ = ["main", "storage", "write_tars"]

_BUCKET = "pictures"


def write_tars(folder: Path, pictures: int, tars: int) -> None:
    """Write the digits of scikit-learn again and again, in tars of PNG files."""
    images = (load_digits().images * 15).astype(np.uint8)
    contents = []
    for image in images:
        file = io.BytesIO()
        Image.fromarray(image).resize((32, 32)).save(file, "PNG")
        contents.append(file.getvalue())
    bounds = np.linspace(0, pictures, tars + 1).astype(int)
    for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
        with tarfile.open(folder / f"{number:03d}.tar", "w") as tar:
            for i in range(start, stop):
                entry = tarfile.TarInfo(f"{i:07d}.png")
                entry.size = len(contents[i % len(contents)])
                tar.addfile(entry, io.BytesIO(contents[i % len(contents)]))


@contextmanager
def storage(folder: Path) -> Iterator[dict[str, str]]:
    """Start a server of S3 that has the files of a folder; give the environment of its clients."""
    import fsspec

    port = free_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            await_port(port, server)
            files = fsspec.filesystem(
                "s3", endpoint_url=environment["AWS_ENDPOINT_URL"], key="a", secret="b"
            )
            files.mkdir(_BUCKET)
            for file in sorted(folder.iterdir()):
                files.put_file(str(file), f"{_BUCKET}/{file.name}")
            yield {**os.environ, **environment}
        finally:
            server.terminate()


def _command(classifier: Path, source: str, out: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "visionshare", "--quiet", "predict", str(classifier), source]
    return [*command, "--out", str(out), *options]


def _rows(file: Path) -> list[tuple[str, ...]]:
    """Return picture, class and probability of each line, without where its tar lies."""
    rows = [line.split(",") for line in file.read_text("utf-8").splitlines()[1:]]
    return [(row[0].replace("\\", "/").rsplit("/", 2)[-1], *row[1:]) for row in rows]


class Seconds(NamedTuple):
    """Of a clock, and of the processors by a command and all its processes."""

    clock: float
    processors: float


def _timed(command: list[str], environment: dict[str, str]) -> Seconds:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    clock, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Seconds(clock, processors)


def _interrupted(command: list[str], environment: dict[str, str], kills: int, most: float) -> int:
    """Kill a command so many times at random moments, then let it end; return the kills."""
    rng, done = random.Random(0), 0
    for _ in range(kills):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            process.wait(rng.uniform(0.3, 0.9) * most)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            done += 1
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return done


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--tars", type=int, default=40)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder, tars = Path(name), Path(name, "tars")
        tars.mkdir()
        train(load_recipe("digits", ["learner.rounds=20"]), folder / "run")
        classifier = folder / "run" / "classifier.safetensors"
        write_tars(tars, given.pictures, given.tars)
        with storage(tars) as environment:
            local = _command(classifier, str(tars), folder / "here.csv", "--jobs", "1")
            stored = _command(
                classifier, f"s3://{_BUCKET}/*.tar", folder / "there.csv",
                "--workers", "2", "--jobs", "2",
            )  # fmt: skip
            ratios = []
            for turn in range(given.turns):
                for file in ("here.csv", "there.csv"):
                    (folder / file).unlink(missing_ok=True)
                here = _timed(local, environment)
                there = _timed(stored, environment)
                ratios.append(here.clock / there.clock / 2)
                rates = [f"{given.pictures / seconds.clock:.0f}" for seconds in (here, there)]
                print(
                    f"turn {turn + 1}: {here.clock:.1f} s in one process, {there.clock:.1f} s by "
                    f"2 workers, {' and '.join(rates)} pictures/s; {ratios[-1]:.2f} of twice; "
                    f"of the processors {here.processors:.1f} and {there.processors:.1f} s; "
                    f"load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
            print(f"median       {np.median(ratios):.2f} of twice the rate of one process")
            expected = _rows(folder / "here.csv")
            assert len(set(expected)) == given.pictures, "a picture is missing"
            alike = _rows(folder / "there.csv") == expected
            (folder / "there.csv").unlink()
            kills = _interrupted(stored, environment, given.kills, there.clock)
            again = _rows(folder / "there.csv") == expected
    print(f"{given.pictures} pictures, each once, {'the same results' if alike else 'OTHERS'}")
    print(f"after {kills} kills and resumed: {'the same' if again else 'OTHER'} results")
    return int(not (alike and again))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
