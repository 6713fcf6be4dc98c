"""Rates of machines: what may be given, what is measured, and times that follow from them."""

import numpy as np
import pytest

from visionshare import Pixels, RandomFourier, SourceClassifiers, UnionOfFamilies
from visionshare.errors import InputError
from visionshare.generators.rates import check_rates, checked_rates, fitted_rate

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 5, 4), np.uint8)
RATE = {"call": 8.0, "feature": 0.5, "mac": 0.25}


def test_the_terms_of_exact_timings_are_found():
    rng = np.random.default_rng(1)
    counts = np.column_stack([np.ones(14, int), rng.integers(1, 60, 14), rng.integers(0, 9000, 14)])
    for terms in ([9, 0.25, 0.0005], [120, 0, 0.01], [5, 2, 0]):
        found = fitted_rate(counts, counts @ np.array(terms))
        np.testing.assert_allclose(list(found.values()), terms, rtol=1e-6, atol=1e-9)
    # No term is negative, whatever the timings say.
    noisy = fitted_rate(counts, rng.uniform(1, 50, 14))
    assert min(noisy.values()) >= 0


@pytest.mark.parametrize("seed", [0, 1])
def test_rates_are_measured_once_whatever_the_seed(seed):
    first = RandomFourier(6, random_state=seed).fit(IMAGES).rates(3)
    assert first == RandomFourier(6, random_state=seed + 1).fit(IMAGES).rates(3)
    assert first == check_rates(first)
    assert list(first) == ["fourier"]
    assert first["fourier"]["call"] + first["fourier"]["mac"] > 0
    first["fourier"]["call"] = -1.0
    assert RandomFourier(6).fit(IMAGES).rates(3)["fourier"]["call"] >= 0


def test_sources_that_no_file_holds_have_rates():
    family = SourceClassifiers([lambda images: images.mean(axis=(1, 2))]).fit(IMAGES)
    assert list(family.rates()) == ["sources"]
    with pytest.raises(InputError, match=r"^sources: got"):
        family.added_bytes(np.array([0]))


def test_parts_of_unions_have_rates_of_their_own():
    inner = UnionOfFamilies([Pixels(), RandomFourier(3)])
    family = UnionOfFamilies([RandomFourier(2), inner, Pixels()]).fit(IMAGES)
    assert list(family.rates()) == ["0.fourier", "1.0.pixels", "1.1.fourier", "2.pixels"]
    rates = {name: {**RATE, "call": 8.0 * 2**i} for i, name in enumerate(family.timed_parts)}
    ids = np.array([0, 1, 4, 5, 24])
    # One pair of the first part; of the union inside two pixels and a half of a pair.
    expected = (8 + 2 * 0.5 + 20 * 0.25) + (16 + 2 * 0.5) + (32 + 0.5 + 20 * 0.25)
    assert family.microseconds(rates, ids) == expected
    added = family.added_microseconds(rates, ids, np.array([2, 25, 30, 31]))
    assert added.tolist() == [0.5 + 5.0, 0.5, 64.5, 64.5]


def test_times_are_made_of_calls_features_and_macs():
    family = RandomFourier(6).fit(IMAGES)
    rates = {"fourier": RATE}
    assert family.microseconds(rates, np.empty(0, int)) == 0
    assert family.microseconds(rates) == 8 + 12 * 0.5 + 6 * 20 * 0.25
    groups = family.added_microseconds(rates, np.array([0]), np.arange(12), np.arange(0, 12, 2))
    # A copy of the first feature and its other half bring no further projection.
    assert groups.tolist() == [1.0] + [1.0 + 5.0] * 5
    for missing in ({}, {"pixels": RATE}):
        with pytest.raises(InputError, match=r"^rates: got"):
            family.microseconds(missing)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        [("pixels", RATE)],
        {"pixels": 3.0},
        {3: RATE},
        {"pixels": {"call": 1.0, "mac": 1.0}},
        {"pixels": {**RATE, "second": 1.0}},
        {"pixels": {**RATE, "mac": -0.1}},
        {"pixels": {**RATE, "mac": float("nan")}},
        {"pixels": {**RATE, "mac": float("inf")}},
        {"pixels": {**RATE, "mac": "0.1"}},
        {"pixels": {**RATE, "mac": True}},
    ],
)
def test_other_rates_are_refused(wrong):
    with pytest.raises(InputError, match=r"^rates: got"):
        check_rates(wrong)


def test_rates_are_those_of_all_parts_and_no_others():
    family = Pixels().fit(IMAGES)
    given = {"pixels": {"mac": np.float32(0.25), "feature": 1, "call": 8}}
    assert checked_rates(given, family) == {"pixels": {"call": 8.0, "feature": 1.0, "mac": 0.25}}
    for others in ({"0.pixels": RATE}, {"pixels": RATE, "patches": RATE}):
        with pytest.raises(InputError, match=r"accepted: rates of 'pixels'"):
            checked_rates(others, family)
