"""Broken and malicious inputs by the thousand: each must be accepted or be a typed error.

    python -m scripts.fuzz --inputs 20000 --seed 0                  # of every kind
    python -m scripts.fuzz --kind image --only 1234 --save found.png    # one of them, again

Valid inputs are mutated; input number i of a kind and a seed is always the same. They are tried in
a process of bounded memory, which is restarted when it dies. A kind is an entry of KINDS.
"""

from __future__ import annotations

import argparse
import resource
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from scripts.fuzz.classifiers import CLASSIFIERS
from scripts.fuzz.images import IMAGES
from scripts.fuzz.mutations import Kind
from scripts.fuzz.pages import PAGES
from scripts.fuzz.requests import REQUESTS
from visionshare.errors import VisionshareError

_SECONDS = 20
_MEMORY = 1 << 30
_SHOWN = 10
ROOT = Path(__file__).parents[2]

Kinds = Mapping[str, Kind]
KINDS: Kinds = {"classifier": CLASSIFIERS, "image": IMAGES, "request": REQUESTS, "page": PAGES}

GOOD = ("accepted", "typed error")
COMMAND = [sys.executable, "-m", "scripts.fuzz"]


class TooSlow(BaseException):
    """An input took longer than it may."""


def make_input(
    kind: str, seed: int, number: int, kinds: Kinds = KINDS
) -> tuple[bytes, np.random.Generator]:
    """Return an input, and the generator that decides how it is used."""
    rng = np.random.default_rng((seed, list(kinds).index(kind), number))
    return kinds[kind].mutate(kinds[kind].seeds(), rng), rng


def outcome(kind: str, seed: int, number: int, kinds: Kinds = KINDS) -> str:
    """Return "accepted", "typed error", or what went wrong."""
    content, rng = make_input(kind, seed, number, kinds)
    try:
        kinds[kind].attempt(content, rng)
        return "accepted"
    except VisionshareError as error:
        return "typed error" if "\n" not in str(error) else "an error of several lines"
    except (Exception, TooSlow) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:200]


@contextmanager
def _clock() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooSlow(f"more than {_SECONDS} s")

    signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.alarm(0)


def work(kind: str, seed: int, numbers: range, kinds: Kinds = KINDS) -> None:
    """Try inputs within bounds; write a line before each, and how it ended after it."""
    kinds[kind].seeds()
    warnings.simplefilter("error")
    # Compiled kernels and thread stacks take what they take: the bound is on top of it.
    for number in range(8):
        outcome(kind, seed + 1_000_003, number, kinds)
    with open("/proc/self/statm") as file:
        memory = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (memory + _MEMORY, memory + _MEMORY))
    with _clock():
        for number in numbers:
            print("at", number, flush=True)
            signal.alarm(_SECONDS)
            result = outcome(kind, seed, number, kinds)
            signal.alarm(0)
            print("end", result, flush=True)


def run(
    kind: str, seed: int, inputs: int, program: Sequence[str] = COMMAND
) -> tuple[Counter[str], list[str]]:
    """Return how many inputs of a kind ended how, and what is wrong with which."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    first = 0
    while first < inputs:
        command = [*program, "--kind", kind, "--seed", str(seed)]
        command += ["--work", str(first), str(inputs)]
        last = first - 1
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        ) as worker:
            for line in worker.stdout or ():
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "at":
                    last = int(rest)
                elif rest in GOOD:
                    counts[rest] += 1
                else:
                    counts["crashed"] += 1
                    faults.append(f"{last} {rest}")
        if worker.returncode == 0:
            break
        if last < first:
            raise SystemExit(f"{kind}: does not start (exit code {worker.returncode})")
        counts["crashed"] += 1
        faults.append(f"{last} the process died (exit code {worker.returncode})")
        first = last + 1
    return counts, faults


def main(kinds: Kinds = KINDS, program: Sequence[str] = COMMAND) -> int:
    """Run, print a table, and return 1 where something crashed.

    Inputs are tried by processes of ``program``, which hands the same ``kinds`` to this function.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(kinds), action="append")
    parser.add_argument("--only", type=int, help="try this one in this process, without bounds")
    parser.add_argument("--save", type=Path, help="with --only: where to write the input")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.kind or list(kinds)
    if options.only is not None:
        content, rng = make_input(names[0], options.seed, options.only, kinds)
        if options.save is not None:
            options.save.write_bytes(content)
        kinds[names[0]].attempt(content, rng)
        return 0
    if options.work is not None:
        work(names[0], options.seed, range(*options.work), kinds)
        return 0
    print(f"{'kind':12}{'tried':>9}{'typed error':>13}{'accepted':>10}{'crashed':>9}")
    crashed = 0
    for kind in names:
        counts, faults = run(kind, options.seed, options.inputs, program)
        ends = counts["typed error"], counts["accepted"], counts["crashed"]
        print(f"{kind:12}{sum(counts.values()):9}{ends[0]:13}{ends[1]:10}{ends[2]:9}", flush=True)
        for fault in faults[:_SHOWN]:
            print(f"    {fault}")
        crashed += ends[2]
    return int(crashed > 0)
