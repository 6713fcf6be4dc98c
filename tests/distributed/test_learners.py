"""Learners on columns whose examples lie in partitions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from visionshare import (
    ForwardGreedyClassifier,
    ForwardGreedyRegressor,
    GreedyTL,
    GroupFeatureClassifier,
    GroupFeatureRegressor,
    MixedNormClassifier,
    StructuralBoostingClassifier,
    StructuralBoostingRegressor,
)
from visionshare.columns import ArrayColumns
from visionshare.distributed import DistributedColumns, PartitionedColumns
from visionshare.errors import InputError

LEARNERS = {
    "forward greedy": ForwardGreedyClassifier(rounds=4),
    "greedytl": GreedyTL(rounds=3),
    "greedytl auto": GreedyTL(rounds=2, alpha="auto"),
    "group features": GroupFeatureClassifier(alpha=1.0, max_features=4),
    "multinomial": GroupFeatureClassifier(alpha=1.0, max_features=3, loss="multinomial"),
    "fista": GroupFeatureClassifier(alpha=1.0, max_features=3, solver="fista", loss="logistic"),
    "mixed norm": MixedNormClassifier(2, alpha=5.0),
    "gradboost": StructuralBoostingClassifier(alpha=4.0, rounds=2, n_entering=2),
    "adaboost": StructuralBoostingClassifier(
        alpha=4.0, rounds=3, solver="adaboost", penalty="l1/linf", corrective=False
    ),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 8)).astype(np.float32)
    X[:, :3] += 1.5 * np.eye(3, dtype=np.float32)[y]
    return X, y


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_learns_in_partitions_what_it_learns_in_one_place(data, name):
    X, y = data
    omega = np.where(np.arange(len(y)) < 30, 0.0, 1.0 + np.arange(len(y)) % 2)
    labels = y > 0 if "auto" in name else y
    whole = clone(LEARNERS[name]).fit(ArrayColumns(X), labels, omega)
    # The first partition has no example that counts.
    apart = clone(LEARNERS[name])
    columns = PartitionedColumns.from_array(X, partitions=4)
    apart.fit(columns, labels, omega)
    assert apart.support_.tolist() == whole.support_.tolist()
    np.testing.assert_allclose(apart.coef_, whole.coef_, atol=1e-5)
    np.testing.assert_allclose(apart.temperature_, whole.temperature_, rtol=1e-4)
    assert [s.train_error for s in apart.path_] == pytest.approx(
        [s.train_error for s in whole.path_]
    )
    assert np.array_equal(pickle.loads(pickle.dumps(apart)).coef_, apart.coef_)
    assert np.array_equal(apart.predict(columns), apart.predict(X))


@pytest.mark.parametrize(
    "learner",
    [
        ForwardGreedyRegressor(rounds=4),
        GroupFeatureRegressor(),
        StructuralBoostingRegressor(alpha=5.0),
    ],
)
def test_numbers_are_learned_in_partitions(data, learner):
    X, _ = data
    target = X[:, 3] - 2 * X[:, 5]
    whole = clone(learner).fit(X, target)
    apart = learner.fit(PartitionedColumns.from_array(X, partitions=3), target)
    assert apart.support_.tolist() == whole.support_.tolist()
    np.testing.assert_allclose(apart.coef_, whole.coef_, atol=1e-5)


def test_several_labels_are_learned_in_partitions(data):
    X, y = data
    labels = np.stack([y == 0, y > 0], axis=1).astype(float)
    labels[::7, 1] = np.nan
    whole = GroupFeatureClassifier(alpha=1.0, max_features=3).fit(X, labels)
    columns = PartitionedColumns.from_array(X, partitions=3)
    apart = GroupFeatureClassifier(alpha=1.0, max_features=3).fit(columns, labels)
    assert apart.support_.tolist() == whole.support_.tolist()
    np.testing.assert_allclose(apart.coef_, whole.coef_, atol=1e-5)


def test_what_needs_examples_in_one_place_is_refused(data):
    X, y = data
    columns = PartitionedColumns.from_array(X, partitions=3)
    with pytest.raises(InputError, match="solver"):
        GroupFeatureClassifier(solver="admm").fit(columns, y)
    with pytest.raises(InputError, match="search"):
        GreedyTL(search="screened").fit(columns, y)


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_a_cluster_learns_the_bits_of_one_process(data):
    distributed = pytest.importorskip("distributed", reason="needs the extra [dask]")
    X, y = data
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        for learner in (
            ForwardGreedyClassifier(rounds=1),
            GreedyTL(rounds=1),
            GroupFeatureClassifier(alpha=1.0, max_features=1, loss="multinomial"),
        ):
            one = clone(learner).fit(PartitionedColumns.from_array(X, partitions=4), y)
            with DistributedColumns.from_array(X, client, partitions=4) as columns:
                other = clone(learner).fit(columns, y)
            assert np.array_equal(one.coef_, other.coef_)
            assert one.temperature_ == other.temperature_
