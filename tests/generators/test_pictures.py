"""What a report draws of families: receptive fields and strongest responses, by plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import (
    Deslant,
    Monomials,
    Network,
    PatchTemplates,
    Templates,
    UnionOfFamilies,
    Units,
)
from visionshare.generators.largest_responses import LargestResponses
from visionshare.generators.layers.forward import Forward
from visionshare.generators.pictures import Field, Sample

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (40, 14, 12), np.uint8)
COLORED = RNG.integers(0, 256, (40, 14, 12, 3), np.uint8)


def _grid(n=5, size=3, **options):
    return Templates(n, size, grid=2, n_patches=400, **options)


def _maps(n=3, size=5, pool=2, **options):
    return Templates(n, size, pool=pool, n_patches=400, **options)


def _outputs(layer, images):
    """Return what the first layer makes of images."""
    raster = images if images.ndim == 4 else images[..., None]
    return Forward([layer]).outputs(raster, 1)


def _panels(family, images, n=None):
    numbers = range(1, (n or family.n_features_) + 1)
    return family.pictures(Sample(images, images)).panels(numbers)


@pytest.mark.parametrize("sizes", [[(3, 2, 0)], [(3, 2, 1), (2, 3, 0)], [(5, 1, 2), (3, 2, 1)]])
def test_a_field_is_what_a_position_depends_on(sizes):
    """Follow which pixels reach a position, layer by layer, with sets."""
    field, reached = Field(), [{i} for i in range(-50, 90)]
    for size, pool, padding in sizes:
        field = field.after(size, pool, padding)
        responses = [set().union(*reached[y : y + size]) for y in range(len(reached) - size)]
        reached = [set().union(*responses[y : y + pool]) for y in range(0, len(responses), pool)]
    i = 7
    # A list that begins 50 pixels early is only shifted.
    plain = Field()
    for size, pool, _ in sizes:
        plain = plain.after(size, pool)
    assert reached[i] == {plain.start - 50 + plain.stride * i + k for k in range(plain.side)}
    assert (field.stride, field.side) == (plain.stride, plain.side)
    shift = sum(
        p * int(np.prod([pool for _, pool, _ in sizes[:k]])) for k, (*_, p) in enumerate(sizes)
    )
    assert field.start == -shift


def strongest_responses(inputs, templates, pads):
    """Return the largest response of each template to each image, by products of all patches."""
    q = templates.shape[1]
    margins = ((0, 0), *((pad, pad) for pad in pads), (0, 0))
    padded = np.pad(inputs.astype(np.float32), margins)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (q, q), axis=(1, 2))
    return LargestResponses.of(np.einsum("nyxcab,mabc->nyxm", windows, templates))


@pytest.mark.parametrize("images", [IMAGES, COLORED, IMAGES.astype(np.float32) / 255])
def test_what_a_template_responds_to_is_in_its_field(images):
    """A response of maps of maps is the same where all that it does not see is noise."""
    family = Network([_maps(size=3), _maps(4, size=2, padding=1), _grid()]).fit(images)
    first, inner = family.layers_[:2]
    sample = Sample(images, images).through(3, (0, 0), 2).through(2, (1, 1))
    maps = _outputs(first, images)
    found = strongest_responses(maps, inner.templates, (1, 1))
    which = np.arange(len(images))
    fields = sample.patches(which, found.rows[:, 0], found.cols[:, 0])
    high = 255 if images.dtype == np.uint8 else images.max()
    low = 0 if images.dtype == np.uint8 else images.min()
    noise = RNG.permutation(images.reshape(-1)).reshape(images.shape)
    for i in which:
        y, x = (
            f.start + f.stride * p[i, 0]
            for f, p in ((sample.rows, found.rows), (sample.cols, found.cols))
        )
        changed = noise[i].copy()
        for k in range(sample.rows.side):
            for m in range(sample.cols.side):
                inside = 0 <= y + k < 14 and 0 <= x + m < 12
                if inside:
                    changed[y + k, x + m] = images[i, y + k, x + m]
                expected = (images[i, y + k, x + m] - low) / (high - low) if inside else 0
                assert_allclose(fields[i, k, m], expected, atol=1e-6)
        padded = np.pad(_outputs(first, changed[None])[0], ((1, 1), (1, 1), (0, 0)))
        part = padded[found.rows[i, 0] :, found.cols[i, 0] :][:2, :2]
        assert_allclose((part * inner.templates[0]).sum(), found.values[i, 0], rtol=1e-4)


def test_templates_of_pixels_are_drawn_and_those_of_maps_by_what_they_respond_to():
    for images, shape in ((IMAGES, (3, 3)), (COLORED, (3, 3, 3))):
        family = Network([_maps(size=3), _grid()]).fit(images)
        first, second = _panels(family, images)
        assert [stack.title for stack in first.stacks] == ["1", "2", "3"]
        for m, stack in enumerate(first.stacks):
            ((tile,),) = (row.tiles for row in stack.rows)
            assert tile.signed
            assert_array_equal(tile.values, family.layers_[0].templates[m].reshape(shape))
        assert "layer 2" in second.heading
        # 3 cells of 2 × 2 positions, each of 3 × 3 pixels.
        assert "8×8 pixels" in second.caption
        assert "40 images" in second.caption
        assert [stack.title for stack in second.stacks[:2]] == ["1–4", "5–8"]
        sizes = {row.tiles[0].values.shape[:2] for stack in second.stacks for row in stack.rows}
        assert sizes == {(8, 8)}


def test_the_mean_is_that_of_the_strongest_parts():
    family = Network([_maps(size=3), _grid()]).fit(IMAGES)
    pictures = family.pictures(Sample(IMAGES, IMAGES))
    panel = pictures.panels(range(1, 21))[1]
    first, last = family.layers_
    found = strongest_responses(_outputs(first, IMAGES), last.templates, (0, 0))
    best = np.argsort(-found.values[:, 0], kind="stable")[:25]
    sample = Sample(IMAGES, IMAGES).through(3, (0, 0), 2).through(3, (0, 0))
    parts = sample.patches(best, found.rows[best, 0], found.cols[best, 0])
    mean, strongest, second = (row.tiles[0].values for row in panel.stacks[0].rows)
    assert_allclose(mean, parts.mean(axis=0), rtol=1e-6)
    assert_array_equal(strongest, parts[0])
    assert_array_equal(second, parts[1])
    assert_allclose(pictures.tiles(2)[0].values, mean)
    assert pictures.tiles(2)[1].values.shape == (len(last.row_cells), len(last.col_cells))


def test_maps_of_maps_are_drawn_where_their_maxima_are():
    layers = [_maps(size=3), _maps(4, size=2, padding=1), _grid(3, 2)]
    family = Network(layers).fit(IMAGES)
    panel = _panels(family, IMAGES)[1]
    first, inner, _ = family.layers_
    found = strongest_responses(_outputs(first, IMAGES), inner.templates, (1, 1))
    # Responses of the last row and column are in no cell; where none of the strongest is there,
    # both ways give the same part.
    rows, cols, _ = (2 * side for side in inner.out_shape)
    sample = Sample(IMAGES, IMAGES).through(3, (0, 0), 2).through(2, (1, 1))
    compared = 0
    for m, stack in enumerate(panel.stacks):
        i = int(np.argmax(found.values[:, m]))
        if found.rows[i, m] < rows and found.cols[i, m] < cols:
            (part,) = sample.patches(np.array([i]), found.rows[[i], m], found.cols[[i], m])
            assert_array_equal(stack.rows[1].tiles[0].values, part)
            compared += 1
    assert compared


def test_templates_that_respond_to_nothing_are_left_out_and_counted():
    family = Network([_maps(size=3), _grid()]).fit(IMAGES)
    quiet = replace(family.layers_[0], biases=np.full(3, -1e6, np.float32))
    layers = [quiet, family.layers_[1]]
    silent = Network.of(layers, family.places_, family.image_shape_)
    panel = _panels(silent, IMAGES)[1]
    n = len(_panels(family, IMAGES)[1].stacks)
    assert panel.stacks == ()
    assert panel.caption.endswith(f"{n} more respond to no image.")
    assert silent.pictures(Sample(IMAGES, IMAGES)).tiles(0)[0].values.min() >= 0


def test_units_show_their_strongest_inputs():
    family = Network([_maps(size=3), _grid(), Units(7)]).fit(IMAGES)
    units = family.layers_[-1]
    before = Forward(family.layers_[:-1]).outputs(IMAGES[..., None], 1).reshape(40, -1)
    *layers, panel = _panels(family, IMAGES)
    assert len(layers) == 2
    assert len(panel.stacks) == 7
    spread = before.std(axis=0, dtype=np.float64)
    for unit, stack in enumerate(panel.stacks):
        strengths = units.directions[unit] * spread
        _, *inputs = stack.rows
        order = np.argsort(-np.abs(strengths))[:4]
        share = strengths[order] / np.abs(strengths).max()
        expected = [
            f"{i + 1}: {s:+.2f}".replace("-", "−") for i, s in zip(order, share, strict=True)
        ]
        assert [row.label for row in inputs] == expected
        excited = np.argsort(-family.transform(IMAGES)[:, unit], kind="stable")[:25]
        excited = excited[family.transform(IMAGES)[excited, unit] > 0]
        mean = IMAGES[excited].mean(axis=0) / 255
        assert_allclose(stack.rows[0].tiles[0].values, mean, atol=1e-6)


def test_deslanted_pictures_are_of_deslanted_images():
    family = Network([Deslant(), _maps(size=3), _grid()]).fit(IMAGES)
    first, second = _panels(family, IMAGES)
    assert first.stacks[0].rows[0].tiles[0].signed
    assert first.caption.endswith("Images are deslanted first.")
    assert second.caption.endswith("Images are deslanted first.")


def test_pictures_of_unions_and_monomials_have_the_numbers_of_features():
    gaussian = PatchTemplates(3, 4, grid=2, widths=(3.0,), n_patches=400)
    union = (
        UnionOfFamilies([gaussian, Network([_grid(2)])]).fit(IMAGES).take([16, 0, 17, 1, 18, 19])
    )
    first, second = _panels(union, IMAGES)
    assert [stack.title for stack in first.stacks] == ["2", "4"]
    assert [stack.title for stack in second.stacks] == ["1, 3, 5 …"]
    assert "cells" in second.caption
    assert [panel.heading[-15:] for panel in (first, second)] == [
        ", family 1 of 2",
        ", family 2 of 2",
    ]
    assert [layer.name for layer in union.layer_summaries()] == [
        "patches, family 1",
        "templates, family 2",
    ]
    pictures = union.pictures(Sample(IMAGES, IMAGES))
    assert_array_equal(pictures.tiles(3)[0].values, pictures._parts[0].tiles(1)[0].values)
    products = Monomials(gaussian, [(0,), (1, 2)]).fit(IMAGES)
    (panel,) = _panels(products, IMAGES)
    assert "Products" in panel.caption
    assert len(panel.stacks) == 3
    assert len(products.pictures(Sample(IMAGES, IMAGES)).tiles(1)) == 4


def test_at_most_thirty_are_shown():
    family = PatchTemplates(3, 40, grid=1, widths=(3.0,), n_patches=400).fit(IMAGES)
    assert [len(panel.stacks) for panel in _panels(family, IMAGES)] == [30]
