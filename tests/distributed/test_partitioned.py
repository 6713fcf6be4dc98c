import gc
import tempfile

import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare import JointBoost, PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import survey_shards
from visionshare.distributed import PartitionedColumns
from visionshare.distributed.blocks import ColumnSettings
from visionshare.distributed.input_blocks import blocks_of
from visionshare.errors import InputError

SETTINGS = [
    {"criterion": "orthogonal"},
    {"n_backward": 2},
    {"criterion": "line", "search": "random", "search_options": {"n": 3}},
    {"criterion": "column", "search": "random", "search_options": {"n": 3}},
    {"criterion": "full", "search": "random", "search_options": {"n": 3}},
    {"validation_fraction": 0.2, "patience": 2},
]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float32), y[:600]


def _same(a, b):
    assert a.support_.tolist() == b.support_.tolist()
    assert np.array_equal(a.coef_, b.coef_)
    assert np.array_equal(a.intercept_, b.intercept_)
    assert a.temperature_ == b.temperature_
    errors = [[step.train_error, step.loss, step.macs] for step in a.path_]
    assert errors == [[step.train_error, step.loss, step.macs] for step in b.path_]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_one_partition_learns_the_bits_of_whole_columns(digits, settings):
    X, y = digits
    whole = ShareBoost(4, **settings).fit(ArrayColumns(X), y)
    _same(ShareBoost(4, **settings).fit(PartitionedColumns.from_array(X, partitions=1), y), whole)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_threads_leave_the_bits_of_partitions(digits, settings):
    X, y = digits
    one, two = (
        ShareBoost(4, n_jobs=n, **settings).fit(PartitionedColumns.from_array(X, partitions=3), y)
        for n in (1, 2)
    )
    _same(one, two)
    whole = ShareBoost(4, **settings).fit(ArrayColumns(X), y)
    assert one.support_.tolist() == whole.support_.tolist()
    assert np.allclose(one.coef_, whole.coef_, atol=1e-3)


def test_columns_are_those_of_an_array(digits):
    X, _ = digits
    R = np.random.default_rng(0).normal(size=(len(X), 3)).astype(np.float32)
    omega = np.random.default_rng(1).random(len(X))
    whole, parts = ArrayColumns(X), PartitionedColumns.from_array(X, partitions=4)
    for columns in (whole, parts):
        columns.fit_scaling("unit_variance", omega)
    assert parts.shape == whole.shape
    assert np.allclose(parts.scale, whole.scale)
    assert np.array_equal(parts.flat(), whole.flat())
    assert np.allclose(parts.correlate(R), whole.correlate(R), atol=1e-3)
    assert np.allclose(
        parts.correlate(R, np.array([9, 2])), whole.correlate(R, np.array([9, 2])), atol=1e-3
    )
    assert np.allclose(parts.take(np.array([9, 2])), whole.take(np.array([9, 2])), atol=1e-6)


def test_families_are_evaluated_by_partitions():
    images = np.random.default_rng(0).integers(0, 255, (40, 8, 8), np.uint8)
    family = PatchTemplates(3, 5, 2, (2.0,), n_patches=100).fit(images)
    parts = PartitionedColumns.from_family(family, images, partitions=3)
    assert np.array_equal(parts.take(), ArrayColumns.from_family(family, images).take())
    ids = np.array([0, 3])
    assert parts.macs(ids) == family.macs(ids)


def test_a_run_resumes_to_the_same_bits(digits, tmp_path):
    X, y = digits
    columns = [PartitionedColumns.from_array(X, partitions=3) for _ in range(3)]
    whole = ShareBoost(5, criterion="orthogonal").fit(columns[0], y)
    ShareBoost(2, criterion="orthogonal", checkpoint=tmp_path / "run").fit(columns[1], y)
    resumed = ShareBoost(5, criterion="orthogonal", checkpoint=tmp_path / "run").fit(columns[2], y)
    _same(resumed, whole)


def test_what_needs_whole_columns_is_refused(digits):
    X, y = digits
    columns = PartitionedColumns.from_array(X, partitions=3)
    with pytest.raises(InputError, match="JointBoost"):
        JointBoost().fit(columns, y)
    with pytest.raises(InputError, match="screened"):
        ShareBoost(search="screened").fit(columns, y)
    with pytest.raises(InputError, match="one place"):
        np.asarray(columns.columns_of(np.array([0])))


def test_what_is_not_used_any_more_is_freed(digits):
    X, y = digits
    columns = PartitionedColumns.from_array(X, partitions=2)
    ShareBoost(3).fit(columns, y)
    gc.collect()
    host = columns._engine.host
    columns.correlate(np.ones((len(X), 1), np.float32))
    assert [len(slots) for slots in host._slots.values()] == [1, 1]


def test_partitions_beyond_the_memory_lie_in_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng = np.random.default_rng(0)
    images, y = rng.integers(0, 255, (60, 8, 8), np.uint8), np.arange(60) % 3
    family = PatchTemplates(3, 10, 2, (2.0,), n_patches=100).fit(images)
    one_partition = 20 * family.n_features_ * 4
    whole = PartitionedColumns.from_family(family, images, partitions=3)
    tight = PartitionedColumns.from_family(
        family, images, partitions=3, memory=2 * one_partition + 8
    )
    # One of three is in memory; the others' columns are evaluated when they are asked for.
    assert len(list(tmp_path.iterdir())) == 2
    a, b = (ShareBoost(rounds=3).fit(columns, y) for columns in (whole, tight))
    assert np.array_equal(a.coef_, b.coef_)
    assert a.temperature_ == b.temperature_
    del tight, b
    # What partitions leave is freed first, and the partitions then.
    gc.collect()
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_stored_pictures_are_partitions(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (40, 8, 8), np.uint8)
    for i in range(2):
        part = slice(20 * i, 20 * i + 20)
        np.savez(tmp_path / f"{i}.npz", x=images[part], y=np.arange(20) % 3)
    stored = survey_shards(f"{tmp_path}/*.npz", (8, 8))
    family = PatchTemplates(3, 10, 2, (2.0,), n_patches=100).fit(stored.sample(30))
    blocks, bounds = blocks_of(stored, None, None, is_table=False)
    settings = ColumnSettings(family)
    columns = PartitionedColumns.from_blocks(blocks, bounds, settings)
    assert np.array_equal(columns.take(), family.transform(images))
    with pytest.raises(InputError, match="partitions"):
        blocks_of(stored, None, 3, is_table=False)


class _Failing:
    """Adds 1 to numbers, but for one call that fails."""

    def __init__(self, error, call):
        self.error, self.left = error, call

    def __call__(self, values):
        self.left -= 1
        if self.left == 0:
            raise self.error
        values += 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("call", [1, 3])
def test_what_is_pending_survives_an_interruption(error, call, digits):
    X = digits[0]
    engine = PartitionedColumns.from_array(X, partitions=4)._engine
    rows = engine.of_examples(np.arange(len(X)))
    copy = engine.rows(np.copy, rows)
    engine.change(rows, _Failing(error, call))
    later = engine.rows(np.copy, rows)
    with pytest.raises(error):
        engine.total(np.sum, copy)
    # Each partition has changed its rows once, and rows made before and after know it.
    for found, first in ((later, 1), (rows, 1), (copy, 0)):
        assert engine.gathered(np.copy, found).tolist() == list(range(first, len(X) + first))


def test_an_interrupted_total_keeps_the_scaling(digits):
    X, _ = digits
    parts, whole = (PartitionedColumns.from_array(X, partitions=4) for _ in range(2))
    for columns in (parts, whole):
        columns.fit_scaling("unit_variance")
    with pytest.raises(KeyboardInterrupt):
        parts.total(_interrupted, parts._engine.data)
    assert np.array_equal(parts.take(), whole.take())


def test_rows_that_fail_are_given_up_with_them(digits):
    parts = PartitionedColumns.from_array(digits[0], partitions=4)
    wrong = parts._engine.rows(_interrupted, parts._engine.data)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            parts._engine.total(np.sum, wrong)
    del wrong
    gc.collect()
    assert np.array_equal(parts.take(), digits[0])


def _interrupted(columns):
    raise KeyboardInterrupt
