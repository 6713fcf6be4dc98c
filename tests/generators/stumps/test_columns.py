"""Columns of stumps: what the same columns in memory answer, and little memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Pixels, Stumps
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators.stumps import StumpColumns
from visionshare.testing import check_columns

rng = np.random.default_rng(0)
IMAGES = {
    "numbers": rng.normal(size=(300, 4)),
    "ties": rng.integers(0, 5, (300, 6)).astype(np.float32),
    "gray": rng.integers(0, 256, (200, 3, 2), np.uint8),
    "constant": np.column_stack([np.zeros(300), rng.normal(size=300), np.ones(300)]),
}


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("n_thresholds", [None, 3])
def test_every_rule_of_columns(images, n_thresholds):
    inputs = IMAGES[images]
    columns = StumpColumns.from_images(inputs, n_thresholds)
    check_columns(columns, columns.family.transform(inputs))


@pytest.mark.parametrize("weights", ["equal", "some", "none of the lowest"])
@pytest.mark.parametrize("kind", ["none", "unit_variance", "max_abs"])
@pytest.mark.parametrize("images", IMAGES)
def test_answers_are_those_of_columns_in_memory(images, kind, weights):
    inputs = IMAGES[images]
    columns = StumpColumns.from_images(inputs)
    memory = ArrayColumns.from_family(columns.family, inputs)
    m, d = memory.shape
    omega = np.random.default_rng(1).random(m) * (np.arange(m) % 3 > 0)
    if weights == "none of the lowest":
        # Stumps at either end of the first input become constant.
        omega[columns.order[0][: m // 3]] = omega[columns.order[0][-m // 3 :]] = 0
    for one in (columns, memory):
        one.fit_scaling(kind, None if weights == "equal" else omega)
    assert columns.shape == (m, d)
    assert_allclose(columns.offset, memory.offset, rtol=1e-12, atol=1e-14)
    assert_allclose(columns.scale, memory.scale, rtol=1e-9)
    assert_allclose(columns.variance, memory.variance, rtol=1e-9, atol=1e-12)
    assert_array_equal(columns.flat(), memory.flat())
    ids = np.random.default_rng(2).integers(d, size=40)
    for asked in (None, ids):
        for computed, stored in zip(
            columns.scaling_of(asked), memory.scaling_of(asked), strict=True
        ):
            assert_allclose(computed, stored, rtol=1e-9, atol=1e-14)
        assert_array_equal(columns.columns_of(asked, False), memory.columns_of(asked, False))
        assert_allclose(columns.columns_of(asked), memory.columns_of(asked), rtol=2e-6)
    R = np.random.default_rng(3).normal(size=(m, 3)).astype(np.float32)
    size = 1e-5 * m * np.abs(memory.columns_of()).max()
    assert_allclose(columns.correlate(R), memory.correlate(R), rtol=1e-5, atol=size)
    assert_array_equal(columns.correlate(R, ids), columns.correlate(R)[ids])


def test_images_need_not_be_those_that_taught_the_thresholds():
    family = Stumps().fit(IMAGES["numbers"][:100])
    others = IMAGES["numbers"][100:] / 2
    columns = StumpColumns(family, others)
    assert_array_equal(columns.take(scaled=False), family.transform(others))
    columns.fit_scaling("unit_variance")
    outside = columns.take(scaled=False).std(axis=0) == 0
    assert outside.any()
    assert_array_equal(columns.flat(), outside)
    assert_array_equal(columns.take()[:, outside], 0)


def test_a_part_of_the_stumps():
    family = Stumps().fit(IMAGES["ties"])
    ids = np.array([1, 2, 8, 20, 21])
    columns = StumpColumns(family.take(ids), IMAGES["ties"])
    assert_array_equal(columns.take(scaled=False), family.transform(IMAGES["ties"], ids))
    assert columns.order.shape == (3, 300)
    assert columns.macs(np.arange(5)) == 0


def test_all_columns_come_in_batches():
    whole = StumpColumns.from_images(IMAGES["numbers"]).columns_of()
    family = Stumps().fit(IMAGES["numbers"])
    columns = StumpColumns(family, IMAGES["numbers"], span_bytes=4 * 300 * 7)
    assert max(len(span.offsets) for span in columns.spans(None)) == 7
    assert_array_equal(columns.columns_of(), whole)
    ids = np.arange(30)[::-1]
    assert_array_equal(columns.columns_of(ids), whole[ids])


def test_threads_give_the_same_bits():
    one, two = (StumpColumns.from_images(IMAGES["gray"], n_jobs=n) for n in (1, 2))
    for columns in (one, two):
        columns.fit_scaling("unit_variance", np.arange(200.0))
    assert_array_equal(one.order, two.order)
    assert_array_equal(one.share, two.share)
    assert one.fingerprint == two.fingerprint


def test_the_fingerprint_knows_the_examples_and_the_scaling():
    columns = StumpColumns.from_images(IMAGES["numbers"])
    seen = {columns.fingerprint}
    columns.fit_scaling("unit_variance")
    seen.add(columns.fingerprint)
    columns.fit_scaling("unit_variance", np.arange(300.0))
    seen.add(columns.fingerprint)
    seen.add(StumpColumns.from_images(IMAGES["numbers"][::-1]).fingerprint)
    assert len(seen) == 4
    assert columns.fingerprint in seen


def test_other_families_orders_and_scalings_are_refused():
    images = IMAGES["numbers"]
    family = Stumps().fit(images)
    for other in (Pixels().fit(images), Stumps()):
        with pytest.raises(InputError, match="fitted Stumps"):
            StumpColumns(other, images)
    for ids in ([5, 4], [400, 3], [4, 4], []):
        with pytest.raises(InputError, match="as fit numbers them"):
            StumpColumns(family.take(np.array(ids, int)), images)
    with pytest.raises(InputError, match="images"):
        StumpColumns(family, images[:, 1:])
    columns = StumpColumns(family, images)
    with pytest.raises(InputError, match="scaling"):
        columns.fit_scaling("mean")
    with pytest.raises(InputError, match="R: got"):
        columns.correlate(np.zeros((5, 2)))
