"""Pairs of measurements: ours and the plain form, in turn, in one run on the same threads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.measuring import Noted, Paired

_ROWS: list[tuple[str, str]] = []


@pytest.fixture
def paired(benchmark: Any, request: pytest.FixtureRequest) -> Paired:
    """Return a function that times ``ours`` and ``plain`` in turn and notes the ratio of medians.

    The two alternate, so that whatever else the machine does hits both. pytest-benchmark keeps
    the seconds of ``ours``; the ratio stands in ``extra_info`` and in the table at the end.
    """

    def measure(
        ours: Callable[[], Any],
        plain: Callable[[], Any],
        rounds: int = 9,
    ) -> None:
        ours(), plain()
        times: dict[str, list[float]] = {"ours": [], "plain": []}
        for _ in range(rounds):
            for name, function in (("plain", plain), ("ours", ours)):
                # Threads of the one before spin on for a while, on cores that this one needs.
                time.sleep(0.3)
                begun = time.perf_counter()
                function()
                times[name].append(time.perf_counter() - begun)
        benchmark.pedantic(ours, rounds=3)
        ratios = [a / b for a, b in zip(times["ours"], times["plain"], strict=True)]
        middle = {name: statistics.median(values) for name, values in times.items()}
        ratio = middle["ours"] / middle["plain"]
        benchmark.extra_info.update(ratio=ratio, **middle)
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        _ROWS.append((request.node.name, f"{ratio:.2f} ({spread})"))

    return measure


@pytest.fixture
def noted(benchmark: Any, request: pytest.FixtureRequest) -> Noted:
    """Return a function that notes a figure that has no plain form."""

    def note(text: str) -> None:
        benchmark.extra_info.update(figure=text)
        _ROWS.append((request.node.name, text))

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table."""
    if _ROWS:
        terminalreporter.section("ratios: ours / plain form, medians of alternating runs")
        for name, figure in _ROWS:
            terminalreporter.write_line(f"{name:44} {figure}")
