"""Functions that run on all workers of a cluster in step, with parts of the data each."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from visionshare.distributed.placement import Bounds, Placement
from visionshare.distributed.process_groups import (
    ConnectedProcessGroup,
    GroupMember,
    ProcessGroup,
    SingleProcessGroup,
    listener,
)
from visionshare.distributed.sources import current_client
from visionshare.errors import ClusterError
from visionshare.machine.resources import thread_limit

__all__ = ["InStep", "in_lockstep", "in_one_process"]

_logger = logging.getLogger(__name__)

#: Yields what it begins with, is sent the records of before, and yields those that follow.
InStep = Callable[..., Generator[Any, Any, None]]


class _Answer(NamedTuple):
    """What a worker says of a step; the one that leads says what the function has yielded."""

    state: str
    value: Any = None


_STEPPED, _ENDED, _BROKEN = "stepped", "ended", "broken"


def in_one_process(
    function: InStep, parts: Sequence[Any], args: tuple[Any, ...], n_jobs: int = 1
) -> Generator[Any, Any, None]:
    """Yield what a function yields that has all parts here, each step as a worker takes it."""
    group = SingleProcessGroup(len(parts))
    sent = None
    with closing(function(group, dict(enumerate(parts)), *args, n_jobs)) as steps:
        while True:
            # A worker's BLAS has one thread too, and rounding depends on how many it has.
            with thread_limit(n_jobs):
                try:
                    value = steps.send(sent)
                except StopIteration:
                    return
            sent = yield value


def in_lockstep(
    client: Any,
    function: InStep,
    parts: Sequence[Any],
    args: tuple[Any, ...],
    waits: Bounds | None = None,
) -> Generator[Any, Any, None]:
    """Yield what a function yields on the workers of a cluster, all of which call it."""
    # Each worker has some of the parts. Where one is lost, all begin again from the records that
    # the function has yielded so far.
    placement = Placement(current_client(client), parts, Member, (), waits)
    workers = _Workers(placement, function, args)
    try:
        records = list((yield workers.begin().value) or [])
        sent: list[Any] | None = records
        while (answer := workers.step(sent)).state != _ENDED:
            if answer.state == _BROKEN:
                workers.begin()
                sent = records
                continue
            workers.losses, sent = 0, None
            records.append(answer.value)
            yield answer.value
    finally:
        placement.close()


class _Workers:
    """All workers that have a part, and the function that they are in."""

    def __init__(self, placement: Placement, function: InStep, args: tuple[Any, ...]) -> None:
        self._placement, self._function, self._args = placement, function, args
        self._lost: list[int] = []
        self.losses = 0

    def begin(self) -> _Answer:
        """Form a group and call the function; return what it begins with."""
        placement, most = self._placement, self._placement.waits.losses
        while self.losses < most:
            placement.place(self._lost)
            self._lost = []
            numbers = placement.numbers()
            addresses = sorted(numbers, key=lambda address: numbers[address][0])
            leader = self._ask("listen", {addresses[0]: ()})
            if leader is not None:
                parts = tuple(tuple(numbers[address]) for address in addresses)
                key = secrets.token_bytes(32)
                members = [GroupMember(parts, i, leader[0], key) for i in range(len(addresses))]
                told = (self._function, self._args)
                given = {a: (member, *told) for a, member in zip(addresses, members, strict=True)}
                answer = self._of_all(given, "begin")
                if answer.state != _BROKEN:
                    return answer
            self.losses += 1
        raise ClusterError(f"workers were lost {most} times in a row; none stayed")

    def step(self, value: Any) -> _Answer:
        """Have the function go on, on all workers; a group that breaks is to begin again."""
        answer = self._of_all(dict.fromkeys(self._placement.numbers(), (value,)), "step")
        self.losses += answer.state == _BROKEN
        return answer

    def _of_all(self, questions: dict[str, tuple[Any, ...]], method: str) -> _Answer:
        answers = self._ask(method, questions)
        if answers is None or any(answer.state == _BROKEN for answer in answers):
            return _Answer(_BROKEN)
        (said,) = {answer.state for answer in answers}
        values = [answer.value for answer in answers if answer.value is not None]
        return _Answer(said, values[0] if values else None)

    def _ask(self, method: str, questions: dict[str, tuple[Any, ...]]) -> list[Any] | None:
        """Return workers' answers; None where one was lost, whose parts are placed anew then."""
        numbers = self._placement.numbers()
        answers, lost = self._placement.ask(method, questions)
        self._lost += [number for address in lost for number in numbers[address]]
        return None if lost else list(answers.values())


class Member:
    """A worker's process in a group, with its parts and the function that it is in."""

    def __init__(self) -> None:
        from distributed import get_worker

        worker = get_worker()
        self._host = urlsplit(worker.address).hostname or "127.0.0.1"
        self._n_jobs = int(worker.state.nthreads)
        self._parts: dict[int, Any] = {}
        self._listening: socket.socket | None = None
        self._group: ProcessGroup | None = None
        self._records: Generator[Any, Any, None] | None = None

    def place_all(self, parts: Sequence[tuple[int, Any]]) -> list[None]:
        """Hold parts."""
        self._parts.update(parts)
        return [None] * len(parts)

    def listen(self) -> tuple[str, int]:
        """Wait for the others' connections from now on; return host and port."""
        self._leave()
        self._listening = listener(self._host)
        host, port = self._listening.getsockname()[:2]
        return host, port

    def begin(self, member: GroupMember, function: InStep, args: tuple[Any, ...]) -> _Answer:
        """Join a group and call a function."""
        if member.rank:
            self._leave()
        return self._guarded(lambda: self._begun(member, function, args))

    def _begun(self, member: GroupMember, function: InStep, args: tuple[Any, ...]) -> Any:
        one = len(member.parts) == 1
        self._group = SingleProcessGroup(len(member.parts[0])) if one else self._joined(member)
        parts = {number: self._parts[number] for number in member.parts[member.rank]}
        self._records = function(self._group, parts, *args, self._n_jobs)
        return next(self._records)

    def _joined(self, member: GroupMember) -> ProcessGroup:
        return ConnectedProcessGroup(member, None if member.rank else self._listening)

    def step(self, value: Any) -> _Answer:
        """Have the function go on to its next record."""
        if self._records is None:
            return _Answer(_BROKEN)
        return self._guarded(self._records.send, value)

    def _guarded(self, action: Callable[..., Any], *args: Any) -> _Answer:
        """Return what an action gives; leave the group where it fails, so that no other waits."""
        try:
            with thread_limit(self._n_jobs):
                value = action(*args)
        except StopIteration:
            self._leave()
            return _Answer(_ENDED)
        except (ConnectionError, EOFError) as error:
            self._leave()
            _logger.info("the group broke: %r", error)
            return _Answer(_BROKEN)
        except BaseException:
            self._leave()
            raise
        return _Answer(_STEPPED, value if self._group is not None and self._group.leads else None)

    def _leave(self) -> None:
        if self._listening is not None:
            self._listening.close()
        if self._group is not None:
            self._group.close()
        self._listening, self._group, self._records = None, None, None
