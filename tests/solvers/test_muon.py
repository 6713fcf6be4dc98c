"""Muon: directions of templates, and Adam's steps of all else."""

import numpy as np
import pytest

from visionshare.solvers import Adam, Muon
from visionshare.solvers.muon import orthogonalized

rng = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(4, 25), (48, 20), (1, 9), (12, 12)])
def test_singular_values_become_about_equal(shape):
    matrix = rng.normal(size=shape).astype(np.float32)
    U, values, Vt = np.linalg.svd(matrix, full_matrices=False)
    found = orthogonalized(matrix)
    within = U.T @ found @ Vt.T
    assert found.dtype == np.float32
    large = values > 0.1 * values[0]
    assert np.all((np.diag(within)[large] > 0.6) & (np.diag(within)[large] < 1.3))
    np.testing.assert_allclose(within - np.diag(np.diag(within)), 0, atol=1e-4)


def test_no_gradient_is_no_step():
    templates = np.ones((2, 3, 3, 1), np.float32)
    Muon([templates], [0.1]).step([np.zeros_like(templates)])
    assert np.all(templates == 1)


def test_templates_turn_by_the_rate_and_all_else_moves_as_in_adam():
    start = [rng.normal(size=(4, 3, 3, 2)), rng.normal(size=4), rng.normal(size=(3, 5))]
    ours = [a.astype(np.float32) for a in start]
    plain = [a.astype(np.float32) for a in start]
    muon = Muon(ours, [0.01] * 3)
    adam = Adam(plain, [0.01] * 3)
    for _ in range(4):
        before = ours[0].copy()
        gradients = [rng.normal(size=a.shape).astype(np.float32) for a in start]
        muon.step(gradients, 0.5)
        adam.step(gradients, 0.5)
        step = np.linalg.norm(ours[0] - before) / np.linalg.norm(start[0])
        assert 0.5 * 0.035 * 0.6 < step < 0.5 * 0.035 * 1.3
    for a, b in zip(ours[1:], plain[1:], strict=True):
        np.testing.assert_array_equal(a, b)
