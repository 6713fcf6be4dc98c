"""Trials and members on the workers of a cluster: the same results as without one."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from visionshare import ImageClassifier
from visionshare.errors import InputError, MemoryLimitError
from visionshare.image_classifier.trials import Learned


def _results(model):
    return {name: column for name, column in model.search_results_.items() if name != "seconds"}


def test_a_cluster_changes_no_result(client, pictures, bars):
    here = ImageClassifier(budget=9000, size=9, augment=False, n_jobs=1)
    there = clone(here).set_params(cluster=client).fit(*pictures)
    here.fit(*pictures)
    # Members of a mean are among the trials.
    assert any(name.startswith("mean of 3") for name in here.search_results_["proposal"])
    assert _results(here) == _results(there)
    assert here.recipe_ == there.recipe_
    images, _ = bars(20, seed=2)
    np.testing.assert_array_equal(here.predict_proba(images), there.predict_proba(images))


def test_an_address_is_taken_and_a_pool(client, pictures):
    model = ImageClassifier("small-patches", budget=400, cluster=client.scheduler.address)
    there = clone(model).fit(*pictures)
    here = model.set_params(cluster=None).fit(*pictures)
    assert _results(here) == _results(there)


def test_what_workers_cannot_learn_is_told_here(client):
    dark = np.arange(60) % 2
    images = np.repeat((100 * dark + 40).astype(np.uint8), 81).reshape(60, 9, 9)
    model = ImageClassifier(cluster=client).fit(images, dark)
    # Templates need patches with contrast; pixels do not.
    assert "pixels" in model.search_results_["proposal"][0]


@pytest.mark.parametrize("error", [InputError("a", 1, "2"), MemoryLimitError("no room")])
def test_problems_travel(error):
    # Dask changes how errors are pickled.
    pytest.importorskip("distributed")
    problem = error.__reduce__()[:2]
    learned = pickle.loads(pickle.dumps(Learned(None, 1.0, problem=problem)))
    with pytest.raises(type(error), match=str(error)):
        learned.result()


def test_another_object_is_refused(pictures):
    with pytest.raises(InputError, match="cluster"):
        ImageClassifier(cluster=7).fit(*pictures)
