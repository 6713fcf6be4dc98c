"""Kills and full disks at every file operation of every command."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scripts.attack.commands import COMMANDS, contents, fresh
from scripts.attack.results import Kind, Result
from scripts.attack.shim import Outcome, Runner

__all__ = ["disk_full", "kills"]


def kills(n: int, seed: int) -> Result:
    """Kill commands at file operations, let them resume, and compare what is left.

    Every operation of every command once, in the order of a seeded draw, half of the kills in the
    middle of a write; where ``n`` is larger, operations are drawn again.
    """
    return _attacked(n, seed, ("kill", "torn"))


def disk_full(n: int, seed: int) -> Result:
    """Let the disk be full from a file operation on, then give it room and resume."""
    return _attacked(n, seed, ("full",))


def _attacked(n: int, seed: int, modes: tuple[str, ...]) -> Result:
    result = Result()
    inputs: dict[str, Path] = {}
    expected: dict[str, dict[str, str]] = {}
    operations: dict[str, int] = {}
    with Runner() as runner, tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, command in COMMANDS.items():
            target = fresh(command, folder, inputs, name)
            whole = runner.run(command.argv(target), target)
            if whole.status != 0:
                raise RuntimeError(f"{name} fails without an attack: {whole.output}")
            expected[name], operations[name] = contents(target), whole.operations
        for name, at, mode in _draws(operations, n, seed, modes):
            command = COMMANDS[name]
            target = fresh(command, folder, inputs, name)
            ended = runner.run(command.argv(target), target, mode, at)
            what = f"{name}, {mode} at {at} of {operations[name]}"
            if problem := _died_badly(ended, mode):
                result.add(problem[0], f"{what}: {problem[1]}")
                continue
            again = runner.run(command.again(target), target)
            result.add(*_compared(again, expected[name], contents(target), what))
    return result


def _draws(
    operations: dict[str, int], n: int, seed: int, modes: tuple[str, ...]
) -> Iterator[tuple[str, int, str]]:
    """Yield command, operation and mode of ``n`` tries: each operation once before any twice."""
    rng = np.random.default_rng(seed)
    every = [(name, at + 1) for name, count in operations.items() for at in range(count)]
    for start in range(0, n, len(every)):
        order = rng.permutation(len(every))[: n - start]
        for number, i in enumerate(order):
            yield (*every[i], modes[(start + number) % len(modes)])


def _died_badly(ended: Outcome, mode: str) -> tuple[Kind, str] | None:
    """Return what is wrong with how a command ended under an attack, None where nothing is."""
    if ended.status == 124:
        return "crashed", "hangs"
    if mode == "full" and ended.status < 0:
        return "crashed", f"ended by signal {-ended.status}"
    if mode == "full" and ("Traceback" in ended.output or "--debug" in ended.output):
        return "crashed", f"untyped error: {ended.output.strip().splitlines()[-1]}"
    return None


def _compared(
    again: Outcome, expected: dict[str, str], left: dict[str, str], what: str
) -> tuple[Kind, str]:
    """Return how a resumed command did."""
    if again.status != 0:
        said = again.output.strip().splitlines() or ["no message"]
        return ("crashed" if again.status < 0 else "lost"), f"{what}: {said[-1]}"
    if left == expected:
        return "survived", ""
    differ = Counter(expected.items()) - Counter(left.items())
    more = sorted(set(left) - set(expected))
    if more:
        return "lost", f"{what}: files left over: {more[:3]}"
    return "silent", f"{what}: different contents: {sorted(name for name, _ in differ)[:3]}"
