"""Progress: what a long call does, how far it is, and when it will end.

The library shows nothing unless it is asked to: inside of ``with Progress():`` its stages and
loops tell how far they are, as a bar on a terminal and as lines elsewhere.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TextIO, TypeAlias, TypeVar

Item = TypeVar("Item")
#: Counts some steps.
Advance: TypeAlias = Callable[[int], None]
_EVERY = 5.0


class _Task:
    """Something that is counted: its label, its steps, and when it began."""

    def __init__(self, label: str, total: int | None, begun: int, clock: Callable[[], float]):
        self.label = label
        self.total = total
        self.first = begun
        self.done = begun
        self._clock = clock
        self._start = clock()

    def line(self, label: str) -> str:
        """Return under a label how far the task is, and when it will end."""
        seconds = self._clock() - self._start
        parts = [label]
        if self.total:
            parts.append(f"{100 * self.done // self.total} % ({self.done}/{self.total})")
        elif self.done:
            parts.append(str(self.done))
        parts.append(_duration(seconds))
        steps = self.done - self.first
        # Of the first moment nothing follows.
        if self.total and steps > 0 and seconds >= 1:
            left = seconds / steps * (self.total - self.done)
            parts.append(f"about {_duration(left)} left")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    """Return seconds as people say them."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def about(seconds: float) -> str:
    """Return a rough number of seconds as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds / 10)) * 10} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Progress:
    """Shows the stages and loops of what runs inside of a ``with`` block."""

    def __init__(
        self,
        file: TextIO | None = None,
        every: float = _EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = sys.stderr if file is None else file
        self._every = every
        self._clock = clock
        self._is_terminal = self._file.isatty()
        self._tasks: list[_Task] = []
        # The bar on a terminal, and the task that it counts.
        self._bar: Any = None
        self._bar_of: _Task | None = None
        self._ticker: threading.Thread | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._last = self._clock()

    def __enter__(self) -> Progress:
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        self._ended.set()
        if self._ticker is not None:
            self._ticker.join()
        self._close_bar()

    def _tick(self) -> None:
        while not self._ended.wait(self._every if not self._is_terminal else 1.0):
            with self._lock:
                if self._bar is not None:
                    self._bar.set_description_str(self._path())
                self._show()

    @contextmanager
    def task(self, label: str, total: int | None, begun: int = 0) -> Iterator[Advance]:
        """Show a task while a block runs; what is yielded counts steps."""
        task = _Task(label, total, begun, self._clock)
        with self._lock:
            if self._ticker is None:
                # What says nothing for a while, such as a compilation, is told of all the same.
                self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
                self._ticker.start()
            self._tasks.append(task)
            self._renew_bar()

        def advance(steps: int) -> None:
            with self._lock:
                task.done += steps
                self._show()

        try:
            yield advance
        finally:
            with self._lock:
                self._tasks.remove(task)
                self._renew_bar()

    def _counted(self) -> _Task:
        """Return the outermost task of several steps; of tasks without any the innermost."""
        counted = (task for task in self._tasks if task.total is not None and task.total > 1)
        return next(counted, self._tasks[-1])

    def _path(self) -> str:
        """Return the labels of the tasks, outermost first, each once."""
        return ": ".join(dict.fromkeys(task.label for task in self._tasks))

    def _renew_bar(self) -> None:
        """On a terminal, show a bar of what is counted now."""
        if not self._is_terminal:
            return
        if not self._tasks or self._counted() is not self._bar_of:
            self._close_bar()
        if not self._tasks:
            return
        if self._bar is None:
            from tqdm import tqdm

            task = self._bar_of = self._counted()
            # Of what is not counted the time that it has taken.
            form = None if task.total else "{desc} [{elapsed}]"
            self._bar = tqdm(
                desc=self._path(), total=task.total, initial=task.done, file=self._file,
                leave=False, dynamic_ncols=True, bar_format=form, mininterval=0.1,
            )  # fmt: skip
        else:
            self._bar.set_description_str(self._path())

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = self._bar_of = None

    def _show(self) -> None:
        if not self._tasks:
            return
        task = self._counted()
        if self._bar is not None:
            self._bar.update(task.done - self._bar.n)
            return
        now = self._clock()
        if now - self._last >= self._every:
            self._last = now
            self._file.write(task.line(self._path()) + "\n")
            self._file.flush()


_current: ContextVar[Progress | None] = ContextVar("visionshare_progress", default=None)


def shown(progress: bool) -> Any:
    """Return a context that shows progress where it is asked for and nobody shows it yet."""
    return Progress() if progress and _current.get() is None else nullcontext()


@contextmanager
def stage(label: str, total: int | None = None, begun: int = 0) -> Iterator[Advance]:
    """Name what a block does; yield a function that counts its steps."""
    progress = _current.get()
    if progress is None:
        yield lambda steps: None
        return
    with progress.task(label, total, begun) as advance:
        yield advance


def track(
    items: Iterable[Item], label: str, total: int | None = None, begun: int = 0
) -> Iterator[Item]:
    """Yield the items, and tell how many were taken and used."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with stage(label, total, begun) as advance:
        for item in items:
            yield item
            advance(1)
