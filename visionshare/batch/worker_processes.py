"""Processes that call functions for this one, each over a connection of its own.

Unlike the processes of ``concurrent.futures``, they can be killed at any moment: a process that
dies while it sends a result closes its connection, where one queue for all of them would wait for
the rest of that result forever.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from visionshare.machine.interrupts import interrupts_held

P = ParamSpec("P")
R = TypeVar("R")


class DeadProcess(Exception):
    """A process died before it gave a result."""


class _RemoteTraceback(Exception):
    """Where an error was raised in another process: the cause of the one that comes back."""


class WorkerProcesses:
    """Processes that take calls."""

    def __init__(self, connections: list[Connection]) -> None:
        # A thread for each connection: it sends a call and waits for the result.
        self._threads = ThreadPoolExecutor(len(connections))
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        for connection in connections:
            self._idle.put(connection)

    def submit(
        self, function: Callable[P, R], /, *arguments: P.args, **options: P.kwargs
    ) -> Future[R]:
        """Call a function in a process that is idle, or will be."""
        return self._threads.submit(self._call, function, arguments, options)

    def _call(self, function: Callable[..., R], arguments: Any, options: Any) -> R:
        connection = self._idle.get()
        try:
            connection.send((function, arguments, options))
            # Instead of a result, the text of an error's traceback comes with it.
            result, error = connection.recv()
        except (EOFError, OSError):
            raise DeadProcess from None
        finally:
            self._idle.put(connection)
        if error is not None:
            raise error from _RemoteTraceback(result)
        return result

    def close(self) -> None:
        """Drop the calls that have not begun, and wait for the others."""
        self._threads.shutdown(cancel_futures=True)


@contextmanager
def worker_processes(
    n_processes: int,
    begin: Callable[P, object] | None = None,
    *arguments: P.args,
    **options: P.kwargs,
) -> Iterator[WorkerProcesses]:
    """Yield processes; they end with the block, whatever ends it, and with this process."""
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(n_processes)]
    call = (begin, arguments, options)
    # Those that are left when the interpreter ends are ended by it.
    started = [
        context.Process(target=_work, args=(theirs, *call), daemon=True) for _, theirs in pairs
    ]
    processes = WorkerProcesses([ours for ours, _ in pairs])
    try:
        with interrupts_held():
            for process in started:
                process.start()
        for _, theirs in pairs:
            # The process has the only other one: it closes when the process dies.
            theirs.close()
        yield processes
    except BaseException:
        for process in started:
            if process.pid is not None:
                process.kill()
        raise
    finally:
        processes.close()
        for connection in chain.from_iterable(pairs):
            connection.close()
        for process in started:
            if process.pid is not None:
                process.join()


def _work(
    connection: Connection, begin: Callable[..., object] | None, arguments: Any, options: Any
) -> None:
    """Answer calls until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if begin is not None:
        begin(*arguments, **options)
    while True:
        try:
            function, arguments, options = connection.recv()
        except EOFError:
            return
        try:
            answer: tuple[Any, Exception | None] = (function(*arguments, **options), None)
        except Exception as error:
            answer = traceback.format_exc(), error
        connection.send(answer)


def _end_with_parent() -> None:
    # A parent that was killed cannot say that there is no more work.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
