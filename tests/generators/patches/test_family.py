"""Patch features against plain loops, in every shape, on any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.errors import InputError
from visionshare.generators import family_from_state
from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.patches.masks import axis_masks, mask_spans

CASES = [
    ((9, 11), {"patch_size": 3, "widths": (1.5, 3.0), "grid": 3}),
    ((6, 7, 3), {"patch_size": 4, "grid": 2, "cut": 0.4}),
    ((2, 2), {"patch_size": 5, "grid": 2}),
    ((10,), {"patch_size": 3, "grid": 2, "contrast": "mean"}),
    ((12, 8), {"patch_size": 7, "grid": 4, "contrast": "none", "padding": 0}),
    ((10, 11), {"patch_size": 9, "grid": 2, "cut": 0.3}),
]


def _images(shape, dtype, n=19, seed=0):
    values = np.random.default_rng(seed).random((n, *shape))
    return (values * 255).astype(np.uint8) if dtype == "uint8" else values.astype(np.float32)


def _fitted(shape, dtype, options):
    images = _images(shape, dtype)
    return images, PatchTemplates(n_templates=5, n_patches=500, **options).fit(images)


def _by_loops(family, images):
    q, (pad_y, pad_x) = family.patch_size, family.pads_
    unit = 255 if images.dtype == np.uint8 else 1
    images = images.astype(np.float64) / unit
    if images.ndim == 2:
        images = images[:, None, :]
    if images.ndim == 3:
        images = images[..., None]
    images = np.pad(images, ((0, 0), (pad_y, pad_y), (pad_x, pad_x), (0, 0)))
    out = np.zeros((len(images), family.n_features_))
    for j, (t, r, c) in enumerate(family.layout_):
        mask = np.outer(family.row_masks_[r], family.col_masks_[c])
        for i in range(len(images)):
            for y, x in np.argwhere(mask > 0):
                response = np.sum(images[i, y : y + q, x : x + q] * family.templates_[t])
                out[i, j] = max(out[i, j], response * mask[y, x])
    return out


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(("shape", "options"), CASES)
def test_all_kernels_agree_with_loops(shape, options, dtype):
    images, family = _fitted(shape, dtype, options)
    expected = _by_loops(family, images)
    assert_allclose(family.transform(images), expected, rtol=2e-6, atol=2e-6)
    ids = np.random.default_rng(1).permutation(family.n_features_)[:9]
    assert_allclose(family.take(ids).transform(images), expected[:, ids], rtol=2e-6, atol=2e-6)
    together = family.take(ids).transform(images)
    for few in (slice(3, 4), slice(2, 7), slice(1, 19)):
        assert_array_equal(family.take(ids).transform(images[few]), together[few])


@pytest.mark.parametrize(("shape", "options"), CASES)
def test_bits_depend_on_nothing_else(shape, options):
    images, family = _fitted(shape, "uint8", options)
    columns = family.transform_columns(images)
    ids = np.random.default_rng(2).permutation(family.n_features_)[:7]
    assert_array_equal(family.transform_columns(images, ids), columns[ids])
    assert_array_equal(family.transform_columns(images, n_jobs=2), columns)
    assert_array_equal(family.transform_columns(images[5:9]), columns[:, 5:9])
    half = family.transform_columns(images, dtype="float16")
    assert_array_equal(half, columns.astype(np.float16))
    chosen = family.take(ids)
    assert_array_equal(chosen.transform(images, n_jobs=2), columns[ids].T)


def test_float16_rounds_as_numpy_does():
    from visionshare.generators.patches.kernels import to_half

    rng = np.random.default_rng(3)
    values = np.concatenate([
        rng.random(3000) * 10.0 ** rng.integers(-9, 5, 3000),
        [0, 65504, 65519, 65520, 1e9, 2.0**-14, 2.0**-24, 2.0**-25, 2.0**-25 * 1.01, 6.1e-5],
    ]).astype(np.float32)  # fmt: skip
    halves = np.empty(len(values), np.uint16)
    to_half(values, np.empty_like(values), halves)
    with np.errstate(over="ignore"):
        assert_array_equal(halves, values.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize(("shape", "options"), CASES)
def test_macs_count_what_the_restricted_kernel_computes(shape, options):
    _, family = _fitted(shape, "uint8", options)
    ids = np.random.default_rng(4).permutation(family.n_features_)[:6]
    rows, cols = mask_spans(family.row_masks_), mask_spans(family.col_masks_)
    total = 0
    for t in np.unique(family.layout_[ids, 0]):
        of_template = [j for j in ids if family.layout_[j, 0] == t]
        reach = np.array(
            [[*rows[family.layout_[j, 1]], *cols[family.layout_[j, 2]]] for j in of_template]
        )
        height = reach[:, 1].max() - reach[:, 0].min()
        width = reach[:, 3].max() - reach[:, 2].min()
        total += height * width * family.templates_[0].size
        for y0, y1, x0, x1 in reach:
            total += (y1 - y0) * (x1 - x0) + (x1 - x0)
    assert family.macs(ids) == total
    assert family.take(ids).macs() == total
    assert family.macs() >= total


def test_masks_are_cut_gaussians():
    masks = axis_masks(26, 4, [4.9, 2.0], 0.2)
    assert masks.shape == (8, 26)
    positive = masks[masks > 0]
    assert positive.min() >= 0.2
    assert_allclose(masks[0], masks[3][::-1])
    for mask, (start, stop) in zip(masks, mask_spans(masks), strict=True):
        assert (mask[start:stop] > 0).all()
        assert (mask[:start] == 0).all()
        assert (mask[stop:] == 0).all()
    assert (axis_masks(1, 4, [0.1], 0.9) > 0).all()


def test_fit_is_seeded_and_templates_have_unit_norm():
    images = _images((9, 9), "uint8")
    one = PatchTemplates(3, 6, n_patches=400).fit(images)
    two = PatchTemplates(3, 6, n_patches=400).fit(images)
    assert_array_equal(one.templates_, two.templates_)
    other = PatchTemplates(3, 6, n_patches=400, random_state=1).fit(images)
    assert not np.array_equal(one.templates_, other.templates_)
    flat = one.templates_.reshape(6, -1)
    assert_allclose(np.linalg.norm(flat, axis=1), 1, rtol=1e-5)
    assert_allclose(flat.sum(axis=1), 0, atol=1e-5)


def test_blocks_cover_each_feature_once():
    _, family = _fitted((9, 9), "uint8", {"patch_size": 3, "grid": 2})
    blocks = family.block_ids(np.arange(family.n_features_))
    assert sorted(np.concatenate(blocks).tolist()) == list(range(family.n_features_))
    drawn = family.sample(8, np.random.default_rng(0))
    assert len(set(drawn.tolist())) == 8


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"patch_size": 0}, "patch_size"), ({"n_templates": 1.5}, "n_templates"),
        ({"cut": 1.0}, "cut"), ({"widths": ()}, "widths"), ({"widths": (0.0,)}, "widths"),
        ({"contrast": "high"}, "contrast"), ({"padding": -1}, "padding"),
        ({"n_templates": 10_000, "n_patches": 100}, "n_templates"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(options, named):
    with pytest.raises(InputError, match=rf"^{named}: got"):
        PatchTemplates(**{"patch_size": 3, "n_templates": 4, **options}).fit(
            _images((6, 6), "uint8")
        )


def test_bad_images_are_named():
    images, family = _fitted((9, 9), "float32", {"patch_size": 3})
    for bad in (images[:, :5], images[0], np.full_like(images, np.nan), images.astype(complex)):
        with pytest.raises(InputError, match="images"):
            family.transform(bad)
    for bad in ([family.n_features_], [-1], [0.5], [[0]]):
        with pytest.raises(InputError, match="features"):
            family.transform(images, bad)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"image_shape": [10**9, 10**9]}, {"image_shape": "9x9"},
        {"parameters": {}}, {"layout": np.full((3, 3), 99)}, {"layout": np.full((3, 3), -1)},
        {"templates": np.zeros((2, 3, 3, 2), np.float32)}, {"templates": None},
        {"row_masks": np.zeros((4, 11), np.float32)}, {"col_masks": np.full((4, 5), np.nan)},
        {"whole_pool": True},
    ],
    ids=str,
)  # fmt: skip
def test_hostile_states_are_refused(change):
    _, family = _fitted((9, 9), "uint8", {"patch_size": 3})
    state, arrays = family.take([1, 2, 3]).to_state()
    for key, value in change.items():
        (arrays if key in arrays else state)[key] = value
    with pytest.raises(InputError):
        family_from_state(state, arrays)
