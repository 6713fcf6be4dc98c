"""Kills, full disks and failures at every file operation of every command."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from scripts.attack.commands import COMMANDS, contents, fresh
from scripts.attack.results import Ended, Ending
from scripts.attack.shim import Outcome, Runner

__all__ = ["disk_full", "kills"]


def kills(tries: range, seed: int) -> Iterator[Ending]:
    """Kill commands at file operations, let them resume, and compare what is left.

    Every operation of every command once, in the order of a seeded draw, half of the kills in the
    middle of a write; then again in another order.
    """
    return _attacked(tries, seed, ("kill", "torn"))


def disk_full(tries: range, seed: int) -> Iterator[Ending]:
    """Let the disk be full from a file operation on, or one operation fail; then resume."""
    return _attacked(tries, seed, ("full", "fail"))


def _attacked(tries: range, seed: int, modes: tuple[str, str]) -> Iterator[Ending]:
    inputs: dict[str, Path] = {}
    expected: dict[str, dict[str, str]] = {}
    operations: dict[str, int] = {}
    with Runner() as runner, tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, command in COMMANDS.items():
            runner.warm(command.argv(fresh(command, folder, inputs, name)))
            target = fresh(command, folder, inputs, name)
            whole = runner.run(command.argv(target), target)
            if whole.status != 0:
                raise RuntimeError(f"{name} fails without an attack: {whole.output}")
            expected[name], operations[name] = contents(target), whole.operations
        every = [(name, at + 1) for name, count in operations.items() for at in range(count)]
        for number in tries:
            name, at, mode = _drawn(every, seed, number, modes)
            command = COMMANDS[name]
            target = fresh(command, folder, inputs, name)
            ended = runner.run(command.argv(target), target, mode, at)
            problem = _died_badly(ended, mode)
            if problem is None:
                again = runner.run(command.again(target), target)
                problem = _compared(again, expected[name], contents(target))
            kind, fault = problem
            fault = fault and f"{mode} at {at} of {operations[name]}: {fault}"
            yield Ending(kind, fault, name, at, operations[name])


def _drawn(
    every: Sequence[tuple[str, int]], seed: int, number: int, modes: tuple[str, str]
) -> tuple[str, int, str]:
    """Return command, operation and mode of a try: each operation comes once before any twice."""
    round_, position = divmod(number, len(every))
    i = int(np.random.default_rng((seed, round_)).permutation(len(every))[position])
    # The other way in the next round.
    return (*every[i], modes[(i + round_) % 2])


def _died_badly(ended: Outcome, mode: str) -> tuple[Ended, str] | None:
    """Return what is wrong with how a command ended under an attack, None where nothing is."""
    if ended.status == 124:
        return "crashed", "hangs"
    if mode in ("full", "fail") and ended.status < 0:
        return "crashed", f"ended by signal {-ended.status}"
    if mode in ("full", "fail") and ("Traceback" in ended.output or "--debug" in ended.output):
        return "crashed", f"untyped error: {ended.output.strip().splitlines()[-1]}"
    return None


def _compared(again: Outcome, expected: dict[str, str], left: dict[str, str]) -> tuple[Ended, str]:
    """Return how a resumed command did."""
    if again.status != 0:
        said = again.output.strip().splitlines() or ["no message"]
        return ("crashed" if again.status < 0 else "lost"), f"does not resume: {said[-1]}"
    if left == expected:
        return "survived", ""
    differ = Counter(expected.items()) - Counter(left.items())
    more = sorted(set(left) - set(expected))
    if more:
        return "lost", f"files left over: {more[:3]}"
    return "silent", f"different contents: {sorted(name for name, _ in differ)[:3]}"
