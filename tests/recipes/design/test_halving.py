"""Which trial is next: promotions, ends, and what the time allows."""

import pytest

from visionshare.recipes.design.cost import Cost
from visionshare.recipes.design.halving import Halving, Next, rung_epochs
from visionshare.recipes.design.structure import Structure
from visionshare.recipes.design.trials import Trial, best_trial

SOME = Structure((), 3, 10, 2, "linear", 0, False)


def trial(number, rung, error, seconds=4.0, per_epoch=1.0):
    return Trial(number, rung, 1, SOME, Cost(10, 10, 10), error, seconds, per_epoch)


def played(rule, errors, seconds_per_epoch=1.0, choosing=2.0):
    """Return what a rule asks for where each structure has an error, and the seconds it takes."""
    trials, asked, elapsed = [], [], 0.0

    def asks():
        return rule.next(trials, elapsed, sum(t.rung == 0 for t in trials) < len(errors))

    while (todo := asks()) is not None:
        assert todo not in asked
        asked.append(todo)
        seconds = seconds_per_epoch * rule.epochs[todo.rung] + choosing * (todo.rung == 0)
        elapsed += seconds
        error = errors[todo.number] / (1 + todo.rung)
        trials.append(trial(todo.number, todo.rung, error, seconds, seconds_per_epoch))
    return asked, elapsed


def test_epochs_of_rungs():
    assert rung_epochs(27, 4, 3) == (1, 3, 9, 27)
    assert rung_epochs(1, 3, 3) == (1,)
    assert rung_epochs(20, 3, 3, least=4) == (4, 7, 20)


def test_the_best_of_each_rung_go_on():
    errors = [0.9, 0.5, 0.7, 0.3, 0.8, 0.6, 0.4, 0.95, 0.2]
    asked, _ = played(Halving((1, 3, 9), 3, n_structures=9), errors)
    assert {todo.number for todo in asked if todo.rung == 0} == set(range(9))
    assert sum(todo.rung == 1 for todo in asked) >= 3
    assert Next(8, 2) in asked
    # As soon as three are known the best of them goes on.
    assert asked[3] == Next(1, 1)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_few_structures_still_reach_the_last_rung(n):
    asked, _ = played(Halving((1, 3, 9), 3, n_structures=n), [0.5, 0.4, 0.3, 0.2, 0.1][:n])
    assert sum(todo.rung == 0 for todo in asked) == n
    assert any(todo.rung == 2 for todo in asked)


def test_a_single_rung_has_no_promotions():
    asked, _ = played(Halving((5,), 3, n_structures=4), [0.1] * 4)
    assert asked == [Next(number, 0) for number in range(4)]


@pytest.mark.parametrize("seconds", [20.0, 60.0, 300.0])
def test_the_time_is_used_and_kept(seconds):
    errors = [0.1 + (7 * number % 97) / 100 for number in range(400)]
    asked, elapsed = played(Halving((1, 3, 9), 3, seconds), errors)
    assert elapsed <= seconds
    assert elapsed > 0.5 * seconds
    # The best of those that were tried is not left on the first rung.
    assert any(todo.rung == 2 for todo in asked) == (seconds > 20)


def test_however_short_the_time_one_is_trained():
    rule = Halving((1, 3), 3, seconds=1e-3)
    assert rule.next([], 99.0) == Next(0, 0)
    assert rule.next([trial(0, 0, 0.5)], 99.0) is None
    assert rule.next([], 0.0, has_more=False) is None


def test_what_failed_is_never_promoted():
    rule = Halving((1, 3), 3, n_structures=3)
    failed = [trial(0, 0, None), trial(1, 0, None), trial(2, 0, None)]
    assert rule.next(failed, 0.0) is None
    assert best_trial(failed) is None
    assert best_trial([*failed[:2], trial(2, 0, 0.9)]).number == 2
    assert rule.next([*failed[:2], trial(2, 0, 0.9)], 0.0) == Next(2, 1)


def test_of_equal_errors_more_epochs_are_better_then_less_cost():
    trials = [trial(0, 0, 0.5), trial(1, 1, 0.5), trial(2, 1, 0.6)]
    assert best_trial(trials).number == 1
