"""The front of each cost, against every pair of points, and points of the stored records."""

import numpy as np
import pytest

from benchmarks.front import OURS, Point, ahead, front, points

COST = "bytes"


def random_points(n: int) -> list[Point]:
    rng = np.random.default_rng(0)
    errors, costs = rng.integers(1, 20, n), rng.integers(1, 20, n)
    kinds = rng.choice([OURS, "measured", "published"], n)
    return [
        Point(str(i), str(kind), float(error), {COST: float(cost)})
        for i, (kind, error, cost) in enumerate(zip(kinds, errors, costs, strict=True))
    ]


def test_the_front_is_what_no_other_point_beats() -> None:
    found = random_points(60)
    best = front([*found, Point("without a cost", OURS, 0.0)], COST)

    def is_beaten(one: Point) -> bool:
        return any(
            p.error <= one.error and p.costs[COST] <= one.costs[COST]
            and (p.error, p.costs[COST]) != (one.error, one.costs[COST])
            for p in found
        )  # fmt: skip

    expected = {(p.error, p.costs[COST]) for p in found if not is_beaten(p)}
    assert [(p.error, p.costs[COST]) for p in best] == sorted(expected, key=lambda pair: pair[1])


def test_others_are_ahead_where_both_error_and_cost_are_lower() -> None:
    mine = Point("mine", OURS, 2.0, {COST: 100.0})
    better = Point("better", "published", 1.9, {COST: 100.0})
    dearer = Point("dearer", "measured", 1.0, {COST: 101.0})
    assert ahead([mine, better, dearer], COST) == [(mine, [better])]
    assert ahead([mine, dearer], COST) == []


@pytest.mark.parametrize("data_set", ["mnist", "fashion-mnist", "cifar10"])
def test_records_and_publications_give_points(data_set: str) -> None:
    found = points(data_set)
    assert {"ours", "measured", "published"} == {p.kind for p in found}
    assert all(0 < p.error < 100 for p in found)
    assert all(cost > 0 for p in found for cost in p.costs.values())
