"""The checks pass what is right and catch what is wrong."""

import numpy as np
import pytest

from visionshare import PatchTemplates, Pixels, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.store import create_store
from visionshare.testing import check_columns, check_family
from visionshare.testing.learners import check_learner_on_columns

rng = np.random.default_rng(0)
IMAGES = {
    "gray": rng.integers(0, 256, (30, 9, 8), np.uint8),
    "color": rng.integers(0, 256, (30, 7, 6, 3), np.uint8),
    "float": rng.random((30, 6, 6), np.float32),
    "vectors": rng.random((30, 12), np.float32),
    "smaller than a patch": rng.integers(0, 256, (30, 2, 3), np.uint8),
}
FAMILIES = {
    "pixels": Pixels(),
    "patches": PatchTemplates(3, 5, 2, (2.0,), n_patches=800),
    "two widths": PatchTemplates(4, 18, 2, (1.5, 3.0), 0.4, 1, "mean", n_patches=800),
}


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("family", FAMILIES)
def test_our_families(family, images):
    check_family(FAMILIES[family], IMAGES[images])


def _wrong(method, change):
    """Return pixels with one method put wrong, and nothing else."""

    def changed(self, *arguments, **options):
        return change(getattr(super(family, self), method)(*arguments, **options))

    family = type("Wrong", (Pixels,), {method: changed})
    return family()


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("transform", lambda v: v.astype(np.float64)),
        ("transform", lambda v: v[:, ::-1]),
        ("transform", lambda v: v + np.random.default_rng().random()),
        ("transform_columns", lambda v: v[::-1]),
        ("transform_columns", lambda v: v.astype(np.float32)),
        ("macs", float),
        ("macs", lambda v: -1),
        ("sample", lambda v: v * 0),
        ("block_ids", lambda v: v[:-1]),
        ("describe", lambda v: {}),
        ("to_state", lambda v: (v[0], {"x": np.zeros(3)})),
    ],
)
def test_a_family_that_breaks_a_rule_is_caught(method, change):
    with pytest.raises(AssertionError):
        check_family(_wrong(method, change), IMAGES["gray"])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_our_columns_in_memory(dtype):
    X = rng.normal(size=(2100, 13)).astype(dtype)
    X[:, 4] = 2
    check_columns(ArrayColumns(X, dtype=dtype), X)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_our_columns_in_a_store(dtype, tmp_path):
    images = IMAGES["gray"]
    family = FAMILIES["patches"].fit(images)
    columns = create_store(tmp_path / "s", family, images, dtype, memory="4kB")
    check_columns(columns, family.transform_columns(images, dtype=dtype).T)


class _Shuffled(ArrayColumns):
    def columns_of(self, ids=None, scaled=True):
        return super().columns_of(ids, scaled)[::-1]


class _Unscaled(ArrayColumns):
    def correlate(self, R, ids=None):
        return super().correlate(R, ids) + 0.1


@pytest.mark.parametrize("kind", [_Shuffled, _Unscaled])
def test_columns_that_break_a_rule_are_caught(kind):
    X = rng.normal(size=(50, 6)).astype(np.float32)
    with pytest.raises(AssertionError):
        check_columns(kind(X), X)


@pytest.mark.parametrize("settings", [{}, {"n_backward": 3}, {"criterion": "orthogonal"}])
def test_our_learner(settings):
    check_learner_on_columns(ShareBoost(rounds=5, **settings))


class _Forgetful(ShareBoost):
    def fit(self, X, y, sample_weight=None, *, validation=None):
        super().fit(X, y, sample_weight, validation=validation)
        self.coef_ = self.coef_ + np.random.default_rng().random()
        return self


def test_a_learner_that_breaks_a_rule_is_caught():
    with pytest.raises(AssertionError):
        check_learner_on_columns(_Forgetful(rounds=3))
