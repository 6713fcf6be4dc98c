import numpy as np
import pytest

from visionshare.distributed.sums import JOINS, joined, root


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_sums_do_not_depend_on_who_joins(n):
    rng = np.random.default_rng(n)
    leaves = {(0, i): rng.normal(size=3) for i in range(n)}
    whole = root(leaves, n, JOINS["sum"])
    assert np.allclose(whole, sum(leaves.values()))
    for _ in range(5):
        owner = rng.integers(0, 3, n)
        nodes = {}
        for worker in range(3):
            mine = {(0, i): leaves[0, i] for i in range(n) if owner[i] == worker}
            nodes.update(joined(mine, n, JOINS["sum"]))
        assert np.array_equal(root(nodes, n, JOINS["sum"]), whole)


def test_neighbors_leave_few_nodes():
    leaves = dict.fromkeys([(0, i) for i in range(64, 128)], 1)
    assert joined(leaves, 128, JOINS["sum"]) == {(6, 1): 64}
    assert len(joined(dict.fromkeys([(0, i) for i in range(3, 61)], 1), 64, JOINS["sum"])) <= 10


def test_tuples_are_summed_by_position_and_maxima_taken():
    nodes = {(0, 0): (1, np.array([1.0, 5.0])), (0, 1): (2, np.array([3.0, 4.0]))}
    number, array = root(nodes, 2, JOINS["sum"])
    assert number == 3
    assert array.tolist() == [4, 9]
    assert root({(0, 0): np.array([1, 5]), (0, 1): np.array([3, 4])}, 2, JOINS["max"]).tolist() == [
        3,
        5,
    ]
