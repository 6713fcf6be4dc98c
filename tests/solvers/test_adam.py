"""Adam and its rates."""

import numpy as np

from visionshare.solvers import Adam, one_cycle


def test_steps_are_those_of_the_paper():
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(3, 2)), rng.normal(size=4)]
    gradients = [[rng.normal(size=a.shape) for a in start] for _ in range(5)]
    schedule, rates = [1.0, 0.5, 1.0, 0.25, 2.0], [0.1, 0.02]
    moved = [a.astype(np.float32) for a in start]
    adam = Adam(moved, rates)
    for gradient, factor in zip(gradients, schedule, strict=True):
        adam.step(gradient, factor)
    for number, (a, rate) in enumerate(zip(start, rates, strict=True)):
        theta, m, v = a.copy(), np.zeros_like(a), np.zeros_like(a)
        for t in range(1, 6):
            g = gradients[t - 1][number]
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g**2
            corrected = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            theta = theta - schedule[t - 1] * rate * corrected
        np.testing.assert_allclose(moved[number], theta, rtol=1e-5, atol=1e-6)


def test_one_cycle_goes_up_and_down():
    rates = [one_cycle(t, 1000, 0.3) for t in range(1000)]
    assert np.argmax(rates) == 300
    assert rates[0] == 0.04
    assert all(np.diff(rates[:300]) > 0)
    assert all(np.diff(rates[300:]) < 0)
    assert 0 < rates[-1] < 1e-4
