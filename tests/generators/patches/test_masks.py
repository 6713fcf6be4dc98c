"""Masks of cells, and templates under them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import PatchTemplates
from visionshare.errors import InputError
from visionshare.generators import family_from_state
from visionshare.generators.patches.cells import CellPlan, serves
from visionshare.generators.patches.masks import cell_masks
from visionshare.generators.patches.restricted import RestrictedPlan
from visionshare.generators.patches.tuning_kernels import add_templates

IMAGES = np.random.default_rng(0).integers(0, 256, (30, 9, 8, 2), np.uint8)


@pytest.mark.parametrize("grid", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("positions", [1, 2, 3, 5, 12, 13])
def test_cells_divide_an_axis(positions, grid):
    masks = cell_masks(positions, grid)
    assert masks.shape == (grid, positions)
    assert masks.dtype == np.float32
    assert set(np.unique(masks)) <= {0, 1}
    sizes = masks.sum(axis=1)
    assert (sizes >= 1).all()
    if positions >= grid:
        assert_array_equal(masks.sum(axis=0), 1)
        assert sizes.max() - sizes.min() <= 1
    else:
        assert_array_equal(sizes, 1)
    # Each cell is one run, to the right of the one before.
    firsts = masks.argmax(axis=1)
    assert (np.diff(firsts) >= 0).all()
    for mask, first, size in zip(masks, firsts, sizes.astype(int), strict=True):
        assert mask[first : first + size].all()


@pytest.mark.parametrize("grid", [2, 3, 9])
def test_features_are_maxima_of_cells(grid):
    family = PatchTemplates(3, 4, grid, masks="cells", padding=0, n_patches=500).fit(IMAGES)
    rows, cols = family.positions_
    x = IMAGES / 255.0
    expected = np.zeros((len(x), family.n_features_))
    for f, (t, a, b) in enumerate(family.layout_):
        for row, col in np.ndindex(rows, cols):
            if family.row_masks_[a, row] and family.col_masks_[b, col]:
                patch = x[:, row : row + 3, col : col + 3]
                response = (patch * family.templates_[t]).sum(axis=(1, 2, 3))
                expected[:, f] = np.maximum(expected[:, f], response)
    assert_allclose(family.transform(IMAGES), expected, rtol=1e-4, atol=1e-5)
    assert family.n_features_ == 4 * grid**2
    if grid <= min(rows, cols):
        # Every position once, and no product with a mask.
        assert family.macs() == 4 * rows * cols * 18
    ids = np.array([1, 5, 2])
    taken = family.take(ids)
    assert taken.macs() == family.macs(ids)
    again = family_from_state(*taken.to_state())
    assert_array_equal(again.transform(IMAGES), taken.transform(IMAGES))
    for chosen in (np.empty(0, int), ids):
        added = [family.macs(np.append(chosen, f)) - family.macs(chosen) for f in range(6)]
        assert_array_equal(family.added_macs(chosen, np.arange(6)), added)


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize(("n_templates", "grid"), [(7, 2), (20, 3), (37, 9)])
def test_templates_side_by_side_are_those_one_by_one(n_templates, grid, padding):
    family = PatchTemplates(
        3, n_templates, grid, masks="cells", padding=padding, n_patches=500
    ).fit(IMAGES)  # fmt: skip
    ids = np.random.default_rng(1).permutation(family.n_features_)[: family.n_features_ * 3 // 4]
    ids = np.append(ids, ids[:2])
    chosen = family.take(ids)
    assert serves(chosen.layout_, chosen.row_masks_, chosen.col_masks_)
    values = chosen.transform(IMAGES)
    assert_allclose(values, family.transform(IMAGES)[:, ids], rtol=1e-4, atol=1e-5)
    parts = chosen.templates_, chosen.row_masks_, chosen.col_masks_, chosen.layout_
    raster = (IMAGES / np.float32(255)).astype(np.float32)
    for images in (IMAGES, raster):
        found, positions = CellPlan(*parts).transform_with_positions(images)
        expected, places = RestrictedPlan(*parts).transform_with_positions(images)
        assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert (positions == places).mean() > 0.999
        assert_array_equal(positions < 0, found == 0)
    assert_array_equal(chosen.transform(IMAGES, n_jobs=2), values)
    for step in (1, 7):
        parts = [chosen.transform(IMAGES[i : i + step]) for i in range(0, 30, step)]
        assert_array_equal(np.concatenate(parts), values)


def test_few_cells_of_many_are_computed_one_by_one():
    family = PatchTemplates(3, 20, 3, masks="cells", n_patches=500).fit(IMAGES)
    masks = family.row_masks_, family.col_masks_
    sparse = family.take(np.arange(20) * 9 + np.arange(20) % 9)
    assert not serves(sparse.layout_, *masks)
    assert not serves(family.take(np.arange(36)).layout_, *masks)
    assert not serves(family.layout_[:0], *masks)
    holes = masks[0].copy()
    holes[0, 1] = 0
    assert not serves(family.layout_, holes, masks[1])


def test_cells_stay_where_templates_move():
    family = PatchTemplates(3, 4, 2, masks="cells", n_patches=500).fit(IMAGES).take([0, 7, 3])
    features = family.tunable()
    assert len(features.parameters) == 1
    values, seen = features.forward(IMAGES)
    (gradient,) = features.backward(IMAGES, values, seen, np.ones_like(values))
    assert gradient.shape == family.templates_.shape
    features.parameters[0] *= 2
    features.moved()
    assert_allclose(features.family().transform(IMAGES), 2 * values, rtol=1e-5)
    assert features.family().macs() == family.macs()


def test_weights_in_a_file_are_no_cells():
    with pytest.raises(InputError, match=r"^masks: got 'boxes'"):
        PatchTemplates(masks="boxes").check_parameters()
    family = PatchTemplates(3, 4, 2, masks="cells", n_patches=500).fit(IMAGES)
    state, arrays = family.to_state()
    for name in ("row_masks", "col_masks"):
        for factor in (0.5, 2):
            with pytest.raises(InputError, match=rf"^{name}: got 'weights'.*ones"):
                family_from_state(state, {**arrays, name: arrays[name] * np.float32(factor)})


@pytest.mark.parametrize("masks", ["gaussian", "cells"])
@pytest.mark.parametrize("padding", [0, 2])
def test_templates_are_added_where_maxima_are(masks, padding):
    family = PatchTemplates(
        3, 4, 2, (2.0,), 0.3, masks=masks, padding=padding, n_patches=500
    ).fit(IMAGES)  # fmt: skip
    family = family.take(np.array([0, 7, 3, 12, 5]))
    _, seen = family.tunable().forward(IMAGES)
    assert (seen >= 0).any()
    G = np.random.default_rng(1).normal(size=seen.shape).astype(np.float32)
    expected = np.zeros((len(IMAGES), 9 + 2 * padding, 8 + 2 * padding, 2))
    for i, f in np.ndindex(seen.shape):
        if seen[i, f] >= 0:
            row, col = divmod(int(seen[i, f]), family.positions_[1])
            t, a, b = family.layout_[f]
            weight = G[i, f] * family.row_masks_[a, row] * family.col_masks_[b, col]
            expected[i, row : row + 3, col : col + 3] += weight * family.templates_[t]
    out = np.empty((len(IMAGES), 9, 16), np.float32)
    flat = family.templates_.reshape(-1, 3, 6)
    add_templates(seen, G, flat, family.layout_, family.row_masks_, family.col_masks_, out)
    inside = expected[:, padding : padding + 9, padding : padding + 8]
    assert_allclose(out.reshape(IMAGES.shape), inside, rtol=1e-4, atol=1e-5)
