"""Random copies of images: each step against its plain form, streams, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.datasets import Augmentation, augmented_copies
from visionshare.errors import InputError, RecipeError
from visionshare.recipes import load_recipe
from visionshare.recipes.stages.images import copies_of

STILL = {"alpha": 0, "rotation": 0, "scale": 0, "shear": 0}
COLORS = {"brightness": 0.4, "contrast": 0.7, "saturation": 0.5}
ALL = {**COLORS, "flip": 0.5, "shift": 3, "border": "reflect", "cut_out": 4}


def draws(n, seed=0, copy=0):
    """Return the numbers of n images: mirror, down, right, three of colors, row and column."""
    blocks = range(-(-n // 64))
    parts = [np.random.default_rng([seed, copy, b, 1]).random((8, 64)) for b in blocks]
    return np.concatenate(parts, axis=1)[:, :n].T


def copies(images, n=1, **settings):
    parts = list(augmented_copies(images, Augmentation(**settings), n))
    return np.concatenate([part for _, _, part in parts])


def plain_crops(images, flip, shift, border):
    """Return mirrored crops of padded images, one by one."""
    H, W = images.shape[1:3]
    around = [(shift, shift), (shift, shift), *[(0, 0)] * (images.ndim - 3)]
    mode = "constant" if border == "zero" else "reflect"
    out = []
    for image, (mirrored, down, right, *_) in zip(images, draws(len(images)), strict=True):
        padded = np.pad(image[:, ::-1] if mirrored < flip else image, around, mode=mode)
        top, left = (2 * shift - int(u * (2 * shift + 1)) for u in (down, right))
        out.append(padded[top : top + H, left : left + W])
    return np.array(out)


@pytest.mark.parametrize("border", ["zero", "reflect"])
@pytest.mark.parametrize("shape", [(70, 6, 5), (70, 6, 5, 3), (3, 9, 1, 2)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_mirrors_and_shifts_are_crops_of_padded_images(shape, border, dtype):
    images = (np.random.default_rng(0).random(shape) * 255).astype(dtype)
    made = copies(images, **STILL, flip=0.4, shift=7, border=border)
    assert_array_equal(made, plain_crops(images, 0.4, 7, border))
    # Without mirrors each image is shifted as before.
    straight = copies(images, **STILL, shift=7, border=border)
    assert_array_equal(straight, plain_crops(images, 0, 7, border))


@pytest.mark.parametrize("border", ["zero", "reflect"])
def test_a_deformation_interpolates_no_more_where_images_move(border):
    # A ramp is resampled without error: what it shows are the coordinates themselves.
    n, side, inner = 70, 33, np.s_[:, 12:-12, 12:-12]
    ramps = np.broadcast_to(np.mgrid[:side, :side].astype(np.float32), (n, 2, side, side))
    ramp_x, ramp_y = (np.ascontiguousarray(ramps[:, k]) for k in (1, 0))
    sizes = {"alpha": 0.5, "rotation": 5, "scale": 0.02, "shear": 0.02}
    moves = {"flip": 0.5, "shift": 3, "border": border}
    (x, y), (moved_x, moved_y) = (
        [copies(ramp, **sizes, **how)[inner] for ramp in (ramp_x, ramp_y)] for how in ({}, moves)
    )
    mirrored, down, right = draws(n)[:, :3].T[..., None, None]
    right, down = (np.floor(7 * u) - 3 for u in (right, down))
    expected_x = np.where(mirrored < 0.5, side - 1 - (x - right), x - right)
    assert_allclose(moved_x, expected_x, atol=0.05)
    assert_allclose(moved_y, y - down, atol=0.05)


def test_what_a_deformation_brings_in_is_the_reflection():
    rng = np.random.default_rng(0)
    images = np.repeat(rng.random((1, 12, 9)), 64, axis=0).astype(np.float32)
    turned = {"alpha": 0, "scale": 0.5, "border": "reflect"}
    pad = [(0, 0), (12, 12), (12, 12)]
    wide = np.pad(images, [pad[0], (11, 11), (8, 8)], mode="reflect")
    made, expected = copies(images, **turned), copies(wide, **turned)
    assert_allclose(made, expected[:, 11:-11, 8:-8], atol=0.05)
    assert copies(np.ones_like(images), **turned).min() == 1
    assert copies(np.ones_like(images), alpha=0, scale=0.5).min() == 0


def plain_colors(images, brightness, contrast, saturation):
    """Return images in [0, 1] whose colors changed one after the other, in float64."""
    out = []
    for image, u in zip(images.astype(np.float64), draws(len(images)), strict=True):
        b, c, s = 1 + (2 * u[3:6] - 1) * [brightness, contrast, saturation]
        gray = (image @ [0.299, 0.587, 0.114])[..., None] if image.shape[-1] == 3 else image
        gray = gray.mean(axis=-1, keepdims=True) if image.shape[-1] == 2 else gray
        image = gray + s * (image - gray) if image.shape[-1] == 3 else image
        out.append(np.clip(b * (gray.mean() + c * (image - gray.mean())), 0, 1))
    return np.array(out)


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_colors_change_as_one_step_after_the_other(channels):
    images = np.random.default_rng(0).random((70, 6, 5, channels))
    settings = {**COLORS, "saturation": 0.5 if channels == 3 else 0}
    made = copies(images.astype(np.float32), **STILL, **COLORS)
    assert_allclose(made, plain_colors(images, **settings), atol=1e-5)
    assert made.min() == 0
    assert made.max() == 1
    bytes_of = (images * 255).round().astype(np.uint8)
    expected = 255 * plain_colors(bytes_of / 255, **settings)
    assert np.abs(copies(bytes_of, **STILL, **COLORS) - expected).max() < 0.51
    if channels == 1:
        gray = copies(bytes_of[..., 0], **STILL, **COLORS)
        assert_array_equal(gray, copies(bytes_of, **STILL, **COLORS)[..., 0])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_square_around_any_pixel_is_hidden(dtype):
    white = 255 if dtype is np.uint8 else 1
    images = (np.random.default_rng(0).random((70, 8, 6, 3)) * white).astype(dtype)
    expected, mask = images.copy(), np.zeros((70, 8, 6), bool)
    for i, u in enumerate(draws(70)):
        row, column = int(u[6] * 8), int(u[7] * 6)
        mask[i, max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3] = True
    colors = images.mean(axis=(1, 2), dtype=float)
    colors = np.floor(colors + 0.5) if dtype is np.uint8 else colors
    expected = np.where(mask[..., None], colors[:, None, None], images)
    made = copies(images, **STILL, cut_out=5)
    assert_allclose(made, expected, rtol=1e-6)


@pytest.mark.parametrize("sizes", [{}, STILL])
def test_copies_depend_on_seed_image_and_copy_alone(sizes):
    images = np.random.default_rng(1).integers(0, 256, (150, 8, 9, 3), np.uint8)
    settings = Augmentation(**ALL, **sizes)

    def made(n_copies=1, **options):
        out = np.zeros((3, *images.shape), np.uint8)
        for copy, rows, part in augmented_copies(images, settings, n_copies, **options):
            out[copy, rows] = part
        return out

    once, before = made(3), images.copy()
    assert_array_equal(made(3, batch=1, n_jobs=2), once)
    assert_array_equal(made(1, first_copy=2)[2], once[2])
    assert not np.array_equal(once[0], once[1])
    assert not np.array_equal(made(3, random_state=1)[0], once[0])
    _, _, few = next(augmented_copies(images[:70], settings))
    assert_array_equal(few, once[0, :70])
    assert_array_equal(images, before)


def test_other_settings_draw_nothing_from_deformations():
    images = np.random.default_rng(1).integers(0, 256, (70, 8, 9), np.uint8)
    (_, _, plain), (_, _, hidden) = (
        next(augmented_copies(images, Augmentation(cut_out=n))) for n in (0, 2)
    )
    assert 0.9 < np.mean(plain == hidden) < 1
    _, _, elastic = next(augmented_copies(images, Augmentation(), 1))
    assert_array_equal(plain, elastic)


def test_images_that_share_memory_stay_as_they_are():
    images = np.random.default_rng(1).integers(0, 256, (5, 8, 9, 3), np.uint8)
    strided, before = images.transpose(0, 2, 1, 3)[:, ::2], images.copy()
    for settings in (STILL | ALL, STILL | COLORS, ALL):
        expected = copies(np.ascontiguousarray(strided), **settings)
        assert_array_equal(copies(strided, **settings), expected)
    assert_array_equal(images, before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flip", 1.5), ("flip", True), ("shift", -1), ("shift", 1.5), ("shift", 10**6),
        ("border", "wrap"), ("brightness", -0.1), ("contrast", np.nan), ("saturation", 2),
        ("cut_out", 2.0), ("sigma", 0), ("rotation", "far"),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got {value!r}; accepted"):
        Augmentation(**{name: value})


def test_images_that_have_no_colors_are_refused():
    images = np.zeros((2, 4, 4), np.int16)
    for setting in ({"brightness": 0.1}, {"cut_out": 1}):
        with pytest.raises(InputError, match=r"^images: got 'int16'"):
            copies(images, **STILL, **setting)
    assert copies(images, **STILL, flip=1).dtype == np.int16
    with pytest.raises(InputError, match=r"^images: got \(2, 4\)"):
        copies(images[:, 0])


def test_a_recipe_says_how_copies_are_made():
    said = [f"deformations.{name}={value!r}" for name, value in {**STILL, **ALL}.items()]
    recipe = load_recipe("digits", ["deformations.copies=1", *said])
    assert recipe.deformations.build() == Augmentation(**STILL, **ALL)
    images = np.random.default_rng(0).integers(0, 256, (70, 8, 8), np.uint8)
    made = copies_of(images, recipe.deformations.build(), recipe.seed, 0, 1)
    assert_array_equal(made, copies(images, **STILL, **ALL))
    for wrong in ("flip=2.0", "border='wrap'", "shift=1.5"):
        with pytest.raises(RecipeError, match=rf"deformations\.{wrong.split('=')[0]}"):
            load_recipe("digits", ["deformations.copies=1", f"deformations.{wrong}"])
    with pytest.raises(RecipeError, match=r"unknown key 'deformations\.flips'.*flip"):
        load_recipe("digits", ["deformations.copies=1", "deformations.flips=0.5"])
