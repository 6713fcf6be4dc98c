"""How fast a machine computes the features of a family: a call, a feature, a multiply-accumulate.

Rates are plain numbers in tables, so that files and recipes can hold them::

    {"patches": {"call": 9.1, "feature": 0.21, "mac": 0.00018}}
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from visionshare.errors import InputError

__all__ = [
    "TERMS",
    "Rates",
    "check_rates",
    "checked_rates",
    "fitted_rate",
    "measured_rates",
    "rate_of",
]

#: Microseconds of each family by the terms that they are made of.
Rates = Mapping[str, Mapping[str, float]]
TERMS = ("call", "feature", "mac")
# Numbers of features that are timed together.
_SIZES = (1, 2, 4, 8, 16, 32, 64)
# Seconds of one timing at least, and timings of which the shortest counts.
_SECONDS = 0.001
_REPEATS = 5
_known: dict[str, dict[str, float]] = {}


def check_rates(rates: Any) -> dict[str, dict[str, float]]:
    """Return rates in one form, whatever families they are of."""
    accepted = f"a table of {', '.join(TERMS)} for each family, in microseconds from 0 on"
    if not isinstance(rates, Mapping) or not rates:
        raise InputError("rates", rates, accepted)
    for name, rate in rates.items():
        if not isinstance(name, str) or not isinstance(rate, Mapping) or set(rate) != set(TERMS):
            raise InputError("rates", rates, accepted)
        for value in rate.values():
            number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
            if not number or not 0 <= float(value) < np.inf:
                raise InputError("rates", rates, accepted)
    return {name: {term: float(rates[name][term]) for term in TERMS} for name in sorted(rates)}


def checked_rates(rates: Any, family: Any) -> dict[str, dict[str, float]]:
    """Return rates in one form, if they are those of a family."""
    tables = check_rates(rates)
    names = sorted(family.timed_parts)
    if list(tables) != names:
        raise InputError("rates", list(tables), f"rates of {', '.join(map(repr, names))}")
    return tables


def rate_of(rates: Rates, name: str) -> Mapping[str, float]:
    """Return the rate of a family by its name."""
    if name not in rates:
        raise InputError("rates", sorted(rates), f"rates of {name!r}")
    return rates[name]


def measured_rates(family: Any, n_scores: int) -> dict[str, dict[str, float]]:
    """Return the rates of a family's timed parts, measured once per process."""
    # Images of noise are evaluated one by one on one thread, by the family restricted to one
    # feature, to two and so on: features that stand together, which may share work, and random
    # ones. The three terms are the best ones that are not negative, by relative errors.
    rates = {}
    for name, part in family.timed_parts.items():
        key = json.dumps([_kind(part), part.n_features_, n_scores], default=repr)
        if key not in _known:
            # Of two threads that measure at once, both go by what the first found.
            _known.setdefault(key, _measured(part, n_scores))
        rates[name] = dict(_known[key])
    return check_rates(rates)


def _kind(part: Any) -> Any:
    """Return what says of a family how fast it is; a seed does not."""
    try:
        state, _ = part.to_state()
    except InputError:
        # Sources that no file holds.
        return [part.name, part.image_shape_, repr(part)]
    return _without_seeds(state)


def _without_seeds(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _without_seeds(v) for k, v in sorted(value.items()) if k != "random_state"}
    return [_without_seeds(part) for part in value] if isinstance(value, list) else value


def fitted_rate(counts: np.ndarray, microseconds: np.ndarray) -> dict[str, float]:
    """Return the rate whose terms say best how long some calls took."""
    # Its terms are not negative, and have three digits: a second measurement repeats no more.
    from scipy.optimize import nnls

    # Terms of a like size, and every timing of the same weight.
    scales = np.maximum(counts.max(axis=0), 1.0)
    found, _ = nnls(counts / scales / microseconds[:, None], np.ones(len(counts)))
    return {t: float(f"{v:.3g}") for t, v in zip(TERMS, found / scales, strict=True)}


def _measured(family: Any, n_scores: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (1, *family.image_shape_), np.uint8)
    counts = []
    seconds = []
    for ids in _choices(family, rng):
        chosen = family.take(ids)
        weights = rng.normal(size=(n_scores, len(ids))).astype(np.float32)
        counts.append([1, len(ids), chosen.macs()])
        seconds.append(_shortest(partial(chosen.weighted_sums, image, weights)))
    return fitted_rate(np.array(counts), 1e6 * np.array(seconds))


def _choices(family: Any, rng: np.random.Generator) -> list[np.ndarray]:
    """Return ids of a few features, twice of each number: neighbors and random ones."""
    d = family.n_features_
    choices = []
    for n in sorted({min(size, d) for size in _SIZES}):
        first = int(rng.integers(d - n + 1))
        choices += [np.arange(first, first + n), family.sample(n, rng)]
    return choices


def _shortest(evaluate: Callable[[], Any]) -> float:
    """Return the seconds of one call, the least of a few timings."""
    # The first call may compile.
    evaluate()
    begun = time.perf_counter()
    calls = 0
    while calls == 0 or time.perf_counter() - begun < _SECONDS:
        evaluate()
        calls += 1
    timings = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        for _ in range(calls):
            evaluate()
        timings.append((time.perf_counter() - begun) / calls)
    return min(timings)
