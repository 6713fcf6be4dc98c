"""Fine-tuning where workers hold the images."""

import os
import pickle
import signal
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare import FineTuning, PatchTemplates, ShareBoost, fine_tune
from visionshare.errors import InputError
from visionshare.recipes import load_recipe, train

pytest.importorskip("distributed", reason="needs the extra [dask]")

# Dask leaves some of its own sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)

SETTINGS = FineTuning(epochs=3, batch=60, rate=0.01, validation_fraction=0.1)


@pytest.fixture(scope="module")
def digits():
    images, y = (load_digits().images * 15).astype(np.uint8)[:600], load_digits().target[:600]
    pool = PatchTemplates(3, 20, grid=3, widths=(2.0,), n_patches=500).fit(images)
    greedy = ShareBoost(rounds=5).fit(pool.transform(images), y).to_classifier(pool)
    bounds = (0, 150, 350, 600)
    rows = [slice(a, b) for a, b in pairwise(bounds)]
    return greedy, [images[part] for part in rows], [y[part] for part in rows]


@pytest.fixture(scope="module")
def local(digits):
    return fine_tune(*digits, SETTINGS)


def _same(a, b):
    for one, other in ((a.family.to_state()[1], b.family.to_state()[1]),):
        assert all(np.array_equal(one[key], other[key]) for key in one)
    assert np.array_equal(a.weights, b.weights)
    assert np.array_equal(a.intercept, b.intercept)
    assert (a.temperature, a.path[0].loss) == (b.temperature, b.path[0].loss)
    assert a.path[0].validation_error == b.path[0].validation_error


@pytest.mark.parametrize(
    "changes",
    [{}, {"head": "low-rank", "n_units": 4, "averaging": 0.9, "validation_fraction": 0.0}],
)
def test_workers_fine_tune_the_bits_of_one_process(client, digits, local, changes, tmp_path):
    settings = FineTuning(**{**vars(SETTINGS), **changes})
    expected = fine_tune(*digits, settings) if changes else local
    _same(fine_tune(*digits, settings, client=client, checkpoint=tmp_path), expected)
    # All epochs are there: what is left is to put the classifier together.
    _same(fine_tune(*digits, settings, client=client, checkpoint=tmp_path), expected)
    for path in tmp_path.glob("round-0000[23]*"):
        path.unlink()
    _same(fine_tune(*digits, settings, checkpoint=tmp_path), expected)


def test_parts_learn_as_well_as_all_images(digits, local):
    greedy, images, y = digits
    whole = fine_tune(greedy, np.concatenate(images), np.concatenate(y), SETTINGS)
    errors = [
        np.mean(c.predict(np.concatenate(images)) != np.concatenate(y))
        for c in (whole, local, greedy)
    ]
    assert max(errors[:2]) < 0.8 * errors[2]
    assert abs(errors[0] - errors[1]) < 0.05


@dataclass
class Killing:
    """Images of a part; a worker that is asked for those of the second epoch dies, once."""

    values: np.ndarray
    mark: str

    def __call__(self, epoch):
        if epoch == 1 and not os.path.exists(self.mark):
            with open(self.mark, "x"):
                os.kill(os.getpid(), signal.SIGKILL)
        return self.values


def test_a_killed_worker_costs_no_bit(client, digits, local, tmp_path):
    greedy, images, y = digits
    client.wait_for_workers(2, timeout=60)
    parts = [*images[:2], Killing(images[2], str(tmp_path / "killed"))]
    _same(fine_tune(greedy, parts, y, SETTINGS, client=client), local)
    assert (tmp_path / "killed").exists()


def test_a_recipe_is_fine_tuned_on_workers(client, tmp_path):
    settings = ["deformations.copies=0", "fine_tuning.epochs=2", "fine_tuning.batch=100"]
    settings += ["fine_tuning.deformed=true", "learner.rounds=3", "data.limit=200"]
    recipe = load_recipe("digits", [*settings, "store.partitions=4"])
    client.wait_for_workers(2, timeout=60)
    one, other = (train(recipe, tmp_path / f"{c is None}", client=c) for c in (None, client))
    _same(one.classifier, other.classifier)
    assert "fine-tuning" in one.metrics["seconds"]


def _unreadable(epoch):
    raise ValueError("of a worker")


def test_an_error_of_one_worker_ends_all(client, digits):
    greedy, images, y = digits
    with pytest.raises(ValueError, match="of a worker"):
        fine_tune(greedy, [*images[:2], _unreadable], y, SETTINGS, client=client)
    with pytest.raises(InputError, match=r"^images.*250"):
        fine_tune(greedy, [*images[:2], images[2][1:]], y, SETTINGS, client=client)


def test_labels_come_in_as_many_lists_as_parts(digits):
    greedy, images, y = digits
    with pytest.raises(InputError, match="labels"):
        fine_tune(greedy, images, y[:2])
    assert pickle.loads(pickle.dumps(SETTINGS)) == SETTINGS
