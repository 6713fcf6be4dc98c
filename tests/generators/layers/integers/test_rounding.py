"""Formats of few bits, exponents, shifts, and numbers packed into bytes."""

import numpy as np
import pytest

from visionshare.errors import InputError
from visionshare.generators.layers.integers.packing import PER_BYTE, packed, unpacked
from visionshare.generators.layers.integers.rounding import (
    ACTIVATIONS,
    FORMATS,
    Rounding,
    best_exponents,
    format_of,
    shifted,
)

ALL = {
    8: np.arange(-127, 128),
    4: np.arange(-7, 8),
    2: np.array([-3, -1, 1, 3]),
    "ternary": np.array([-1, 0, 1]),
}


@pytest.mark.parametrize("bits", FORMATS)
def test_the_nearest_number_is_that_of_a_search(bits):
    values = np.random.default_rng(0).normal(0, 5, 2000)
    distance = np.abs(values[:, None] - ALL[bits])
    nearest = FORMATS[bits].nearest(values)
    assert set(nearest.tolist()) <= set(ALL[bits].tolist())
    assert np.array_equal(np.abs(values - nearest), distance.min(axis=1))
    assert FORMATS[bits].holds(ALL[bits])
    assert not FORMATS[bits].holds(ALL[bits] * 200)


@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize("n", [1, 2, 5, 6, 41])
def test_packed_numbers_come_back(bits, n):
    numbers = np.random.default_rng(n).choice(ALL[bits], n)
    data = packed(numbers, bits)
    assert data.dtype == np.uint8
    assert len(data) == -(-n // PER_BYTE[bits])
    assert np.array_equal(unpacked(data, bits, n), numbers)


def test_what_is_no_packed_number_is_out_of_the_format():
    assert not FORMATS["ternary"].holds(unpacked(np.array([255], np.uint8), "ternary", 5))
    assert not FORMATS[4].holds(unpacked(np.array([0], np.uint8), 4, 2))


def test_a_shift_rounds_halves_up():
    sums, shifts = np.arange(-70, 70), np.arange(6)[:, None]
    expected = np.floor(sums / 2.0**shifts + 0.5)
    assert np.array_equal(shifted(sums, shifts), expected)


@pytest.mark.parametrize("bits", FORMATS)
def test_no_other_exponent_errs_less(bits):
    rows = np.random.default_rng(1).normal(size=(30, 25)) * np.exp2(np.arange(-15, 15))[:, None]
    chosen = best_exponents(rows, FORMATS[bits])

    def error(exponents):
        rounded = Rounding(FORMATS[bits], exponents[:, None])(rows).astype(np.float64)
        return np.square(rounded - rows).sum(axis=1)

    for step in (-2, -1, 1, 2):
        assert (error(chosen) <= error(chosen + step) * (1 + 1e-6)).all()


def test_zeros_have_an_exponent():
    rows = np.zeros((1, 4))
    exponents = best_exponents(rows, ACTIVATIONS)
    assert np.array_equal(Rounding(ACTIVATIONS, exponents)(rows), rows)


@pytest.mark.parametrize("bits", [3, True, "8", None])
def test_unknown_bits_are_refused(bits):
    with pytest.raises(InputError, match="template_bits"):
        format_of("template_bits", bits)
