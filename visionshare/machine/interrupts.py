"""Ctrl-C while a command starts processes of its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Shield processes started in the block from Ctrl-C; this process hears it after the block."""
    if threading.current_thread() is not threading.main_thread():
        with _interrupts_blocked():
            yield
        return
    heard: list[bool] = []
    # Another thread may be given the signal, and then it would end a start halfway.
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        with _interrupts_blocked():
            yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for this thread, and for processes that it starts, where systems can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # When it starts, it lets all signals through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
