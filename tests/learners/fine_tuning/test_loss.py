"""The loss of fine-tuning against its definition; moving averages."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax

from visionshare.learners.fine_tuning.averaging import Averages
from visionshare.learners.fine_tuning.loss import Batch, TuningLoss
from visionshare.learners.fine_tuning.settings import FineTuning

SETTINGS = [
    {}, {"label_smoothing": 0.1}, {"label_smoothing": 0.3, "margin": 0.0},
    {"teacher_weight": 0.4}, {"label_smoothing": 0.2, "teacher_weight": 0.7},
]  # fmt: skip


def batch(taught):
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(4, 6)) * 3, rng.integers(0, 4, 6)
    P = softmax(rng.normal(size=(4, 6)), axis=0) if taught else None
    return Z, Batch(y, P)


def plain(Z, batch, settings):
    """Return the loss by its definition, an image at a time."""

    def of_label(z, y):
        return logsumexp(z + settings.margin * (np.arange(len(z)) != y)) - z[y]

    total, tau = 0.0, settings.teacher_temperature
    for i, z in enumerate(Z.T):
        loss = of_label(z, batch.y[i])
        uniform = logsumexp(z) - z.mean() - np.log(len(z))
        loss = (1 - settings.label_smoothing) * loss + settings.label_smoothing * uniform
        if batch.taught is not None:
            p = batch.taught[:, i]
            soft = tau**2 * np.sum(p * (np.log(p) - np.log(softmax(z / tau))))
            loss = (1 - settings.teacher_weight) * loss + settings.teacher_weight * soft
        total += loss / len(batch.y)
    return total


@pytest.mark.parametrize("given", SETTINGS)
def test_weights_of_classes_are_repeated_images(given):
    settings = FineTuning(**given)
    Z, known = batch("teacher_weight" in given)
    weights = np.array([3, 1, 2, 1])
    repeated = np.repeat(np.arange(6), weights[known.y])
    taught = None if known.taught is None else known.taught[:, repeated]
    total, _ = TuningLoss(settings).residual(Z[:, repeated], Batch(known.y[repeated], taught))
    value, R = TuningLoss(settings, weights).residual(Z, known)
    assert value == pytest.approx(total * len(repeated) / 6, rel=1e-6)
    _, plain_R = TuningLoss(settings).residual(Z, known)
    assert_allclose(R, plain_R * weights[known.y], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("given", SETTINGS)
def test_loss_and_derivative_are_those_of_the_definition(given):
    settings = FineTuning(**given)
    Z, known = batch("teacher_weight" in given)
    value, R = TuningLoss(settings).residual(Z, known)
    assert value == pytest.approx(plain(Z, known, settings), rel=1e-6)
    step = 1e-6
    for q in range(4):
        for i in range(6):
            there, back = Z.copy(), Z.copy()
            there[q, i] += step
            back[q, i] -= step
            slope = (plain(there, known, settings) - plain(back, known, settings)) / (2 * step)
            assert R[q, i] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.99])
def test_averages_against_a_plain_recursion(decay):
    rng = np.random.default_rng(0)
    moving = [rng.random(3).astype(np.float32), rng.random((2, 2)).astype(np.float32)]
    averages, expected = Averages(moving, decay), [p.astype(float) for p in moving]
    for t in range(1, 40):
        for i, p in enumerate(moving):
            p += rng.normal(size=p.shape).astype(np.float32)
            d = min(decay, (1 + t) / (10 + t))
            expected[i] = d * expected[i] + (1 - d) * p
        averages.update(t)
    before = [p.copy() for p in moving]
    shown = expected if decay else before
    with averages.in_place():
        for p, e in zip(moving, shown, strict=True):
            assert_allclose(p, e, atol=1e-5)
            if decay:
                # What happens to parameters in the meantime does not last.
                p[...] = 0
    for p, b in zip(moving, before, strict=True):
        assert_array_equal(p, b)
    averages.take_over()
    assert_allclose(moving[0], shown[0], atol=1e-5)
    assert len(averages.values) == (2 if decay else 0)
