"""Tries in one process that is forked for them, with bounds of time and memory for each."""

from __future__ import annotations

import logging
import os
import resource
import select
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence

from scripts.attack.results import Ending
from visionshare.errors import VisionshareError

__all__ = ["Attempt", "TooSlow", "forked", "in_child", "outcome"]

# Makes the try of a number.
Attempt = Callable[[int], Ending]

_MEMORY = 1 << 30
_SECONDS = 20
# What a process may take until it is ready: kernels are compiled.
_STARTING = 600
# A process is replaced after so many tries: what each leaves behind adds up to no fault.
_TRIES = 50_000


class TooSlow(BaseException):
    """A try took longer than it may."""


def forked(
    ready: Callable[[], Attempt],
    tries: Sequence[int],
    part: Callable[[int], str] = lambda number: "",
    seconds: float = _SECONDS,
    memory: int = _MEMORY,
) -> Generator[Ending, None, None]:
    """Yield how each try ended; a process makes many, and another goes on where one ends.

    This process itself runs nothing that has threads: they do not survive a fork.

    Parameters
    ----------
    ready : callable
        Called in the child; returns what makes a try.
    tries : sequence of int
    part : callable
        Says what the try of a number attacks.
    seconds : float, default 20
        For one try.
    memory : int, default 1 GiB
        Bytes that the child may take more than it has when it is ready.
    """
    position = 0
    while position < len(tries):
        batch = tries[position : position + _TRIES]
        made = 0
        child = _Child(ready, batch, seconds, memory)
        try:
            for ending in child.endings():
                yield ending._replace(part=part(batch[made]))
                made += 1
        finally:
            status = child.end()
        if made < len(batch):
            if not child.is_ready:
                raise RuntimeError(f"the process does not start (exit code {status})")
            fault = child.hung or f"the process ended with {status}"
            waited = 2 * seconds if child.hung else 0.0
            yield Ending("crashed", fault, part(batch[made]), seconds=waited)
            made += 1
        position += made


def in_child(work: Callable[[], object]) -> None:
    """Do some work in a child process.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    child = os.fork()
    if child == 0:
        status = 70
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise RuntimeError("the child process failed")


def outcome(attempt: Attempt, number: int) -> Ending:
    """Return how a try ended: with a value or a typed error of one line, or badly."""
    try:
        return attempt(number)
    except VisionshareError as error:
        return judged(error)
    except (Exception, TooSlow) as error:
        return Ending("crashed", said(error))


def judged(error: VisionshareError) -> Ending:
    """Return what a typed error is worth: one of several lines, or of memory, is none."""
    if "\n" in str(error):
        return Ending("crashed", f"an error of several lines: {said(error)}")
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return Ending("crashed", f"asked for more than the bound: {said(error)}")
        cause = cause.__cause__ or cause.__context__
    return Ending("survived")


def said(error: BaseException) -> str:
    """Return an exception in one short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


class _Child:
    """A process that makes tries, and writes how each ended into a pipe."""

    def __init__(
        self, ready: Callable[[], Attempt], tries: Sequence[int], seconds: float, memory: int
    ) -> None:
        self.is_ready = False
        self.hung = ""
        self._seconds = seconds
        # Of all files that tries make: a process that dies removes none.
        self._made = tempfile.TemporaryDirectory()
        self._read, write = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            status = 70
            try:
                os.setpgid(0, 0)
                os.close(self._read)
                tempfile.tempdir = self._made.name
                _work(ready, tries, seconds, memory, write)
                status = 0
            finally:
                os._exit(status)
        os.close(write)

    def endings(self) -> Iterator[Ending]:
        """Yield how tries ended, until the process does."""
        rest = b""
        while True:
            wait = 2 * self._seconds if self.is_ready else _STARTING
            if not select.select([self._read], [], [], wait)[0]:
                self.hung = f"hangs for more than {wait:g} s"
                return
            part = os.read(self._read, 1 << 16)
            if not part:
                return
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                word, seconds, text = line.decode().split("\t", 2)
                if word == "ready":
                    self.is_ready = True
                else:
                    yield Ending(word, text, seconds=float(seconds))  # type: ignore[arg-type]

    def end(self) -> int:
        """End the process where it has not ended; return its exit code."""
        os.close(self._read)
        stop = time.monotonic() + (0 if self.hung else 1)
        while True:
            ended, status = os.waitpid(self._process, os.WNOHANG)
            if ended:
                self._made.cleanup()
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > stop:
                os.killpg(self._process, signal.SIGKILL)
                stop = float("inf")
            time.sleep(0.002)


def _work(
    ready: Callable[[], Attempt], tries: Sequence[int], seconds: float, memory: int, write: int
) -> None:
    # What is damaged is warned of.
    logging.disable()
    attempt = ready()
    warnings.simplefilter("error")
    # NumPy reads headers that Python 2 wrote, and says so.
    warnings.filterwarnings("ignore", message="Reading `.npy` or `.npz` file")
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))

    def ring(*_: object) -> None:
        raise TooSlow(f"more than {seconds:g} s")

    signal.signal(signal.SIGALRM, ring)
    # Libraries write of damage too.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.write(write, b"ready\t0\t\n")
    for number in tries:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        ending = outcome(attempt, number)
        signal.setitimer(signal.ITIMER_REAL, 0)
        fault = " ".join(ending.fault.split())[:200]
        line = f"{ending.ended}\t{ending.seconds:.4f}\t{fault}\n"
        os.write(write, line.encode("utf-8", "replace"))
