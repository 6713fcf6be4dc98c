"""Kills, full disks, failures and lost power at every file operation of every command."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from scripts.attack.commands import COMMANDS, Command, contents, fresh
from scripts.attack.forked import said
from scripts.attack.power import lose_power, remember
from scripts.attack.results import Ended, Ending
from scripts.attack.shim import Outcome, Runner

__all__ = ["Operations"]

# What happens to the process in a mode. Where the power is lost, what was not flushed is, too.
_DEADLY = {"kill": "kill", "torn": "torn", "lost-contents": "kill", "lost-names": "kill"}
_POWER = {"lost-contents": True, "lost-names": False}


@dataclass(frozen=True)
class Operations:
    """A kind of attack: each operation of each command once, in the order of a seeded draw.

    The modes take turns; in the next round each operation is attacked in the next one. A command
    that was stopped is given again: it must end with the same files as one that was not. One that
    says that it is done must have them already.

    Attributes
    ----------
    modes : tuple of str
        Of :data:`scripts.attack.shim.MODES`; or the power is lost when the process is killed, and
        in the end: ``"lost-contents"`` and ``"lost-names"``, see :mod:`scripts.attack.power`.
    commands : mapping of str to Command
    """

    modes: tuple[str, ...]
    commands: Mapping[str, Command] = field(default_factory=lambda: COMMANDS)

    @property
    def parts(self) -> Sequence[str]:
        """Names of the commands."""
        return list(self.commands)

    def only(self, parts: Sequence[str]) -> Operations:
        """Return the same attack on some of the commands."""
        return replace(self, commands={name: self.commands[name] for name in parts})

    def __call__(self, tries: range, seed: int) -> Iterator[Ending]:
        with Runner() as runner, tempfile.TemporaryDirectory() as made:
            attacked = {
                name: _Attacked(runner, Path(made), name, command)
                for name, command in self.commands.items()
            }
            # The last point of lost power is when the command has ended.
            after = int(self.modes[0] in _POWER)
            every = [
                (name, at + 1)
                for name, one in attacked.items()
                for at in range(one.operations + after)
            ]
            for number in tries:
                name, at, mode = self._drawn(every, seed, number)
                operations = attacked[name].operations
                ended, fault = attacked[name].tried(mode, at)
                fault = fault and f"{mode} at {at} of {operations}: {fault}"
                yield Ending(ended, fault, name, at, operations + after)

    def _drawn(
        self, every: Sequence[tuple[str, int]], seed: int, number: int
    ) -> tuple[str, int, str]:
        """Return command, operation and mode of a try: each operation comes once before twice."""
        round_, position = divmod(number, len(every))
        i = int(np.random.default_rng((seed, round_)).permutation(len(every))[position])
        return (*every[i], self.modes[(i + round_) % len(self.modes)])


class _Attacked:
    """A command, and what it leaves when it is not attacked."""

    def __init__(self, runner: Runner, folder: Path, name: str, command: Command) -> None:
        self._runner = runner
        self._folder = folder
        self._name = name
        self._command = command
        self._memory = folder / "memory"
        self._inputs: dict[str, Path] = {}
        runner.warm(command.argv(self._fresh()))
        target = self._fresh()
        whole = runner.run(command.argv(target), target)
        if whole.status != 0:
            raise RuntimeError(f"{name} fails without an attack: {whole.output}")
        self.operations = whole.operations
        self._expected = contents(target)

    def _fresh(self) -> Path:
        return fresh(self._command, self._folder, self._inputs, self._name)

    def tried(self, mode: str, at: int) -> tuple[Ended, str]:
        """Attack the command once; return how it did, and what was wrong."""
        try:
            return self._tried(mode, at)
        except Exception as error:
            # What is left cannot even be looked at.
            return "lost", f"breaks what looks at it: {said(error)}"

    def _tried(self, mode: str, at: int) -> tuple[Ended, str]:
        target = self._fresh()
        # 1) attack it
        memory = self._memory if mode in _POWER else None
        if memory is not None:
            remember(target, memory)
        argv = self._command.argv(target)
        ended = self._runner.run(argv, target, _DEADLY.get(mode, mode), at, memory=memory)
        if memory is not None:
            lose_power(target, memory, names_survive=_POWER[mode])
        # 2) does it say what happened?
        problem = _died_badly(ended, mode)
        if problem is None and ended.status == 0:
            problem = _promised(self._expected, contents(target))
        if problem is not None:
            return problem
        # 3) give it again
        again = self._runner.run(self._command.again(target), target)
        if again.status != 0:
            return _not_resumed(again)
        return _compared(self._expected, contents(target))


def _died_badly(ended: Outcome, mode: str) -> tuple[Ended, str] | None:
    """Return what is wrong with how a command ended under an attack, None where nothing is."""
    if ended.status == 124:
        return "crashed", "hangs"
    if mode in ("full", "fail") and ended.status < 0:
        return "crashed", f"ended by signal {-ended.status}"
    if mode in ("full", "fail") and ("Traceback" in ended.output or "--debug" in ended.output):
        return "crashed", f"untyped error: {ended.output.strip().splitlines()[-1]}"
    return None


def _promised(expected: dict[str, str], left: dict[str, str]) -> tuple[Ended, str] | None:
    """Return what is missing of the files of a command that says it is done, None if nothing is.

    Files that it could not remove may be there as well.
    """
    if missing := sorted(set(expected) - set(left)):
        return "lost", f"exit code 0, but without {missing[:3]}"
    if differ := sorted(name for name in expected if left[name] != expected[name]):
        return "silent", f"exit code 0, but different contents: {differ[:3]}"
    return None


def _not_resumed(again: Outcome) -> tuple[Ended, str]:
    last = again.output.strip().splitlines() or ["no message"]
    return ("crashed" if again.status < 0 else "lost"), f"does not resume: {last[-1]}"


def _compared(expected: dict[str, str], left: dict[str, str]) -> tuple[Ended, str]:
    """Return how the files of a resumed command differ from those of one that ran at once."""
    if left == expected:
        return "survived", ""
    if more := sorted(set(left) - set(expected)):
        return "lost", f"files left over: {more[:3]}"
    differ = Counter(expected.items()) - Counter(left.items())
    return "silent", f"different contents: {sorted(name for name, _ in differ)[:3]}"
