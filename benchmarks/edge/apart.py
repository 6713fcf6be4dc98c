"""Training in a process of its own, whose largest memory is known then."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from benchmarks.edge.contender import Contender
from visionshare.machine.system import peak_memory

__all__ = ["learned_apart"]


def learned_apart(learn: Callable[..., Contender], *arguments: Any) -> Contender:
    """Return what a function makes of arguments, with the bytes that it took at most."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_learned, learn, arguments).result()


def _learned(learn: Callable[..., Contender], arguments: tuple[Any, ...]) -> Contender:
    return replace(learn(*arguments), memory=peak_memory())
