"""Layers of whole numbers against plain sums in Python's own integers."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from visionshare.errors import InputError
from visionshare.generators.layers.depthwise.integers import IntegerDepthwise
from visionshare.generators.layers.deslant.integers import IntegerDeslant
from visionshare.generators.layers.deslant.layer import DeslantLayer
from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.integers.rounding import shifted
from visionshare.generators.layers.residual.integers import IntegerResidual
from visionshare.generators.layers.templates.integers import IntegerTemplates
from visionshare.generators.layers.units.integers import IntegerUnits


def bytes_of(layer, images):
    return Forward([layer]).outputs(images, 1).astype(np.uint8)


def cell_layer(rng, bits, numbers, pads=(0, 0), shifts=None, size=(7, 6, 2)):
    n, q = 5, 3
    rows, cols = (side + 2 * pad - q + 1 for side, pad in zip(size, pads, strict=False))
    row_cells = np.minimum(np.arange(rows) // 2, 1)
    col_cells = np.where(np.arange(cols) < 3, np.arange(cols) % 2, -1)
    return IntegerTemplates(
        size, rng.choice(numbers, (n, q, q, size[2])), bits, rng.integers(-500, 500, n),
        np.array([0, 1, 3, 5, 7]) if shifts is None else shifts, pads, row_cells, col_cells,
    )  # fmt: skip


def cells_by_hand(layer, image):
    (pad_y, pad_x), q = layer.pads, layer.weights.shape[1]
    wide = np.pad(image.astype(np.int64), ((pad_y, pad_y), (pad_x, pad_x), (0, 0)))
    out = np.zeros(layer.out_shape, np.int64)
    for t, (weights, bias, shift) in enumerate(
        zip(layer.weights, layer.biases, layer.shifts, strict=True)
    ):
        for y, r in enumerate(layer.row_cells):
            for x, c in enumerate(layer.col_cells):
                if r >= 0 and c >= 0:
                    total = (wide[y : y + q, x : x + q] * weights).sum() + bias
                    value = min(255, int(shifted(max(total, 0), shift)))
                    out[r, c, t] = max(out[r, c, t], value)
    return out


@pytest.mark.parametrize("pads", [(0, 0), (1, 2)])
@pytest.mark.parametrize(
    ("bits", "numbers"),
    [
        (8, np.arange(-127, 128)),
        (4, np.arange(-7, 8)),
        (2, [-3, -1, 1, 3]),
        ("ternary", [-1, 0, 1]),
    ],
)
def test_cells_are_those_of_plain_sums(bits, numbers, pads):
    rng = np.random.default_rng(3)
    layer = cell_layer(rng, bits, numbers, pads)
    images = rng.integers(0, 256, (6, *layer.in_shape), np.uint8)
    images[0], images[1] = 0, 255
    found = bytes_of(layer, images)
    assert found.dtype == np.uint8
    assert np.array_equal(found, [cells_by_hand(layer, image) for image in images])
    assert found.max() == 255, "nothing was cut off"


def test_depthwise_templates_are_those_with_zeros_elsewhere():
    rng = np.random.default_rng(7)
    plain = cell_layer(rng, 4, np.arange(-7, 8), (1, 0), size=(7, 6, 3))
    sources = np.array([2, 0, 0, 1, 2])
    taps = np.stack([plain.weights[t, ..., s] for t, s in enumerate(sources)])[..., None]
    layer = IntegerDepthwise(**{**vars(plain), "weights": taps}, sources=sources)
    spread = np.zeros_like(plain.weights)
    for t, source in enumerate(sources):
        spread[t, ..., source] = plain.weights[t, ..., source]
    expected = IntegerTemplates(**{**vars(plain), "weights": spread})
    images = rng.integers(0, 256, (9, *layer.in_shape), np.uint8)
    assert np.array_equal(bytes_of(layer, images), bytes_of(expected, images))
    # Restricted to some outputs, it reads some channels.
    outputs = np.array([3, 8])
    smaller, places, channels = layer.take(outputs)
    assert channels.tolist() == [1]
    values = bytes_of(smaller.take_channels(channels), images[..., channels]).reshape(9, -1)
    assert np.array_equal(values[:, places], bytes_of(layer, images).reshape(9, -1)[:, outputs])
    with pytest.raises(InputError, match="sources"):
        IntegerDepthwise(**{**vars(plain), "weights": taps}, sources=sources + 1)


def test_residual_sums_are_those_of_plain_sums():
    rng = np.random.default_rng(8)
    shape, n, q = (6, 5, 4), 4, 3
    cells = [np.arange(side) for side in shape[:2]]
    values = (rng.integers(-7, 8, (n, q, q, 4)), 4, rng.integers(-500, 500, n), np.arange(4) + 4)
    sources, lifts = np.array([0, 1, 3, 3]), np.array([0, 3, 5, 6])
    layer = IntegerResidual(shape, *values, (1, 1), *cells, sources, lifts)
    images = rng.integers(0, 256, (9, *shape), np.uint8)
    wide = np.pad(images.astype(np.int64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (q, q), axis=(1, 2))
    sums = np.einsum("nyxcab,tabc->nyxt", windows, layer.weights) + layer.biases
    sums = np.maximum(sums, 0) + (images[..., sources].astype(np.int64) << lifts)
    expected = np.minimum(shifted(sums, layer.shifts), 255)
    assert np.array_equal(bytes_of(layer, images), expected)
    for change in ({"lifts": lifts + 9}, {"lifts": -lifts}, {"sources": sources + 1},
                   {"row_cells": np.arange(6) // 2}, {"pads": (3, 1)}):  # fmt: skip
        fields = {field.name: getattr(layer, field.name) for field in dataclasses.fields(layer)}
        with pytest.raises(InputError):
            IntegerResidual(**{**fields, **change})


def test_sums_that_floats_do_not_hold_are_those_of_plain_sums():
    rng = np.random.default_rng(9)
    images = rng.integers(200, 256, (5, 5, 4, 60), np.uint8)
    biases, shifts = rng.integers(-500, 500, 4), np.array([15, 16, 17, 18])
    units = IntegerUnits((5, 4, 60), rng.integers(90, 128, (4, 1200)), 8, biases, shifts)
    sums = images.reshape(5, -1).astype(np.int64) @ units.weights.T + biases
    assert sums.max() > 2**24
    expected = np.minimum(shifted(np.maximum(sums, 0), shifts), 255)
    assert np.array_equal(bytes_of(units, images).reshape(5, 4), expected)
    weights = rng.integers(90, 128, (4, 3, 3, 60))
    cells = (np.zeros(3, int), np.arange(2))
    layer = IntegerTemplates((5, 4, 60), weights, 8, biases, shifts, (0, 0), *cells)
    assert np.array_equal(bytes_of(layer, images), [cells_by_hand(layer, im) for im in images])


@pytest.mark.parametrize("square", [False, True])
def test_units_are_those_of_plain_sums(square):
    rng = np.random.default_rng(4)
    layer = IntegerUnits(
        (2, 3, 2), rng.integers(-7, 8, (9, 12)), 4, rng.integers(-900, 900, 9),
        np.arange(9), square,
    )  # fmt: skip
    images = rng.integers(0, 256, (20, *layer.in_shape), np.uint8)
    sums = images.reshape(20, -1).astype(np.int64) @ layer.weights.T + layer.biases
    if square:
        expected = shifted(np.square(np.clip(shifted(sums, layer.shifts), -127, 127)), 6)
    else:
        expected = shifted(np.maximum(sums, 0), layer.shifts)
    found = bytes_of(layer, images).reshape(20, 9)
    assert np.array_equal(found, np.minimum(expected, 255))


def deslanted_by_hand(image):
    """Return a deslanted image (H, W, C), its moments as Python's integers."""
    rows, cols, _ = image.shape
    weights = image.astype(int).sum(axis=2)
    ys, xs = np.arange(rows)[:, None], np.arange(cols)
    mass, first, second, across, both = (
        int((weights * factor).sum()) for factor in (1, ys, ys * ys, xs, xs * ys)
    )
    spread, lean = second * mass - first * first, both * mass - across * first
    slant = middle = 0
    if spread:
        slant = min(4096, int(Fraction(abs(lean), spread) * 4096)) * (1 if lean > 0 else -1)
        middle = first * 256 // mass
    out = np.zeros(image.shape, np.uint8)
    for y in range(rows):
        move = slant * (y * 256 - middle) // 4096
        start, right = move // 256, move % 256
        for x in range(cols):
            total = np.full(image.shape[2], 128)
            if 0 <= x + start < cols:
                total += (256 - right) * image[y, x + start].astype(int)
            if 0 <= x + start + 1 < cols:
                total += right * image[y, x + start + 1].astype(int)
            out[y, x] = total // 256
    return out


@pytest.mark.parametrize("shape", [(9, 7, 1), (5, 11, 3), (1, 4, 1)])
def test_deslanted_images_are_those_of_exact_moments(shape):
    rng = np.random.default_rng(5)
    images = rng.integers(0, 256, (30, *shape), np.uint8)
    images[rng.random(images.shape) < 0.8] = 0
    images[0] = 0
    images[1] = 255
    for i in range(min(shape[:2])):
        images[2, i, i], images[3, i, -1 - i] = 200, 200
    found = bytes_of(IntegerDeslant(shape), images)
    assert np.array_equal(found, [deslanted_by_hand(image) for image in images])


def test_deslanting_is_close_to_that_of_floats():
    rng = np.random.default_rng(6)
    images = np.zeros((20, 28, 28, 1), np.uint8)
    for image in images:
        lean = rng.uniform(-0.8, 0.8)
        for y in range(4, 24):
            x = int(14 + lean * (y - 14))
            image[y, x - 1 : x + 2] = rng.integers(100, 256, (3, 1))
    found = bytes_of(IntegerDeslant((28, 28, 1)), images).astype(int)
    floats = Forward([DeslantLayer((28, 28, 1))]).outputs(images, 1)
    assert np.abs(found - floats.astype(int)).max() <= 6


def test_a_sum_that_leaves_32_bits_is_refused():
    weights = np.full((1, 70_000), 127)
    with pytest.raises(InputError, match="sums up to"):
        IntegerUnits((1, 1, 70_000), weights, 8, np.zeros(1, int), np.zeros(1, int))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shifts": np.full(5, -1)}, "shifts"),
        ({"shifts": np.full(5, 31)}, "shifts"),
        ({"bits": 4}, "weights"),
        ({"bits": 5}, "bits"),
        ({"biases": np.zeros(4, int)}, "biases"),
        ({"biases": np.zeros(5)}, "biases"),
        ({"pads": (-1, 0)}, "cells"),
        ({"row_cells": np.zeros(50, int)}, "cells"),
        ({"row_cells": np.array([0, 2])}, "cells"),
        ({"in_shape": (7, 6, 3)}, "weights"),
    ],
)
def test_layers_that_do_not_fit_are_refused(change, message):
    layer = cell_layer(np.random.default_rng(0), 8, np.arange(-127, 128))
    with pytest.raises(InputError, match=message):
        IntegerTemplates(**{**vars(layer), **change})


def test_images_whose_moments_leave_64_bits_are_refused():
    with pytest.raises(InputError, match="image_shape"):
        IntegerDeslant((1000, 1000, 3))
