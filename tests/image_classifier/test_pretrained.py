"""A pretrained network in a search: tried on larger pictures, taken where it is better."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from visionshare import ImageClassifier
from visionshare.cli.main import main
from visionshare.datasets import ImageSet
from visionshare.errors import InputError
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.choice import choose
from visionshare.image_classifier.pictures import propose_intake
from visionshare.image_classifier.pretrained import Seen, _stays_ahead, asked_for, transfer_of
from visionshare.image_classifier.proposals import Data, Dense, Proposal
from visionshare.image_classifier.recipe_search import (
    CHOSEN,
    OfferedNetwork,
    kept_recipe,
    search_recipe,
)
from visionshare.image_classifier.state import SearchSettings, StructureSearch
from visionshare.image_classifier.structure import Structure
from visionshare.image_classifier.transfer import Transfer
from visionshare.image_classifier.trials import ProposalLearner, Trial, Trials
from visionshare.recipes import load_recipe, train
from visionshare.recipes.own_pictures import PictureOptions, recipe_for_pictures

FREE = Budget.of(None, None)
# A search of one trial; pixels leave it nothing to cluster.
QUICK = SearchSettings(features="pixels")


def _textures(n, side=32, seed=0):
    """Return pictures of fine and of coarse stripes of any color, alike once they are small."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(n) % 2
    stripes = np.stack([np.arange(side) // (1 + label) % 2 for label in labels])
    shifts = rng.integers(0, 4, n)
    stripes = np.stack([np.roll(row, s) for row, s in zip(stripes, shifts, strict=True)])
    images = stripes[:, None, :, None] * rng.integers(60, 200, (n, 1, 1, 3))
    noise = rng.integers(0, 40, (n, side, side, 3))
    return (images + noise).astype(np.uint8), labels


def _choice(network_file, own, larger, labels, budget=FREE, **options):
    training = ImageSet(own, labels, ("a", "b"), "made")
    parameters = asked_for(str(network_file))
    transfer = Transfer(parameters, budget, lambda rows, _: larger[rows], **options)
    settings = SearchSettings(features="pixels", transfer=transfer)
    return choose(ProposalLearner(Data.of(training), training), Budget(20_000), settings)


@pytest.mark.parametrize("n_sample", [8, 500])
def test_it_is_taken_where_it_sees_more(network_file, n_sample):
    larger, labels = _textures(60)
    noise = np.random.default_rng(1).integers(0, 256, (60, 9, 9), np.uint8)
    choice = _choice(network_file, noise, larger, labels, n_sample=n_sample)
    assert isinstance(choice.best.proposal.features, Dense)
    assert choice.learner.images.images.shape == larger.shape
    assert choice.error < 0.2
    # Both its trials were noted, and what it learns is what the recipe says.
    assert sum(isinstance(t.proposal.features, Dense) for t in choice.trials) == 2
    assert choice.recipe.data.height == 32
    assert choice.recipe.deformations.copies == 3


def test_it_is_left_where_it_sees_less(network_file, bars):
    images, names = bars(60)
    noise = np.random.default_rng(1).integers(0, 256, (60, 32, 32, 3), np.uint8)
    choice = _choice(network_file, images, noise, np.unique(names, return_inverse=True)[1])
    assert not isinstance(choice.best.proposal.features, Dense)
    assert choice.learner.images.images is images


@pytest.mark.parametrize(("n_sample", "reserved"), [(500, 15.0), (29, 0.0)])
def test_of_few_pictures_time_is_kept_for_it(n_sample, reserved):
    larger, labels = _textures(60)
    training = ImageSet(larger, labels, ("a", "b"), "made")
    learner = ProposalLearner(Data.of(training), training)
    transfer = Transfer({}, FREE, lambda rows, _: larger[rows], n_sample=n_sample, per_picture=0.1)
    settings = SearchSettings(seconds=80.0, begun=0.0, clock=lambda: 20.0, transfer=transfer)
    state = StructureSearch.of(learner.data, Trials(learner, training), FREE, settings)
    assert state.has_time(19.0)
    state.reserve()
    assert state.reserved == reserved
    assert state.has_time(19.0) == (reserved == 0)
    assert state.has_time(4.0)


@pytest.mark.parametrize("budget", [Budget(1000), Budget(None, nbytes=900), Budget(None, flash=1)])
def test_budgets_rule_it_out(network_file, budget):
    larger, labels = _textures(60)
    noise = np.random.default_rng(1).integers(0, 256, (60, 9, 9), np.uint8)
    choice = _choice(network_file, noise, larger, labels, budget)
    assert not any(isinstance(t.proposal.features, Dense) for t in choice.trials)


class _Trials:
    """Trials that each have a doubt, whatever the proposal."""

    def __init__(self, n, doubt):
        self.n, self.doubt = n, doubt
        self.kept = None
        self.held_out = SimpleNamespace(images=None)
        self.ran = 0

    def run(self, proposals, epochs):
        self.ran += 1
        return iter([_trial(proposal, self.doubt) for proposal in proposals])


def _trial(proposal, doubt):
    classifier = SimpleNamespace(temperature=1.0)
    return Trial(proposal, doubt, np.full(4, doubt), 1.0, classifier)


@pytest.mark.parametrize(
    ("own", "network", "n", "expected"),
    [
        # Of 5000 and of 20,000 pictures: own layers catch up before 80,000, not before 20,000.
        ((0.16, 0.12), (0.13, 0.11), 80_000, False),
        ((0.16, 0.12), (0.13, 0.11), 20_000, True),
        ((0.16, 0.15), (0.13, 0.12), 80_000, True),
        # Too far behind, and too few more pictures: neither is tried again.
        ((0.30, 0.01), (0.13, 0.11), 80_000, True),
    ],
)
def test_of_many_pictures_learning_curves_decide(own, network, n, expected):
    structure = Structure((), 3, 8, 2)
    longer = _Trials(20_000, own[1])
    state = StructureSearch(
        SearchSettings(), SimpleNamespace(n=n, epochs=9), FREE, _Trials(5000, 0), longer, 3
    )
    state.best = _trial(Proposal(structure), own[0])
    found = _trial(Proposal(Dense("efficientnet-lite0")), network[0])
    budget = SimpleNamespace(allows=lambda *_: True)
    transfer = SimpleNamespace(budget=budget, trials=lambda *_: _Trials(20_000, network[1]))
    assert _stays_ahead(state, found, transfer, None, None) is expected
    assert longer.ran == (own[0] < 0.3)


def test_what_users_say(network_file, tmp_path):
    assert asked_for(False) is None
    assert asked_for("auto", extra=False) is None
    assert asked_for("auto", extra=True) == asked_for(True, extra=True)
    found = asked_for(network_file)
    assert (found["places"], found["size"]) == (["low.up", "high.up"], 24)
    (tmp_path / "text.onnx").write_text("no network")
    for given in (3, tmp_path / "none.onnx", tmp_path / "text.onnx"):
        with pytest.raises(InputError, match=r"^(pretrained|network): got"):
            asked_for(given)
    with pytest.raises(InputError, match="pip install 'visionshare"):
        asked_for(True, extra=False)
    with pytest.raises(InputError, match=r"^network: got"):
        ImageClassifier(pretrained="none.onnx").fit(*_textures(8))


def test_pictures_are_read_again_at_a_size_for_the_network(network_file):
    images, _ = _textures(8, side=64)
    intake = propose_intake(list(images), 16)
    rasters = intake.apply(list(images))
    larger = transfer_of(network_file, Seen(list(images), rasters, intake, True), FREE)
    assert larger.read(np.array([3, 5]), False).shape == (2, 24, 24, 3)
    same = transfer_of(network_file, Seen(list(images), rasters, intake, False), FREE)
    np.testing.assert_array_equal(same.read(np.array([3]), False), rasters[[3]])
    small = Seen(rasters[:, :8, :8], rasters, intake, True)
    assert transfer_of("auto", small, FREE) is None


def test_the_estimator_tries_it(network_file):
    images, labels = _textures(24, side=24)
    model = ImageClassifier(
        budget=40_000, size=9, augment=False, n_jobs=1, pretrained=network_file
    ).fit(images, labels)
    assert "all features of network.onnx" in " ".join(model.search_results_["proposal"])
    assert model.cost_["macs"] <= 40_000
    assert model.predict(images).shape == (24,)


@pytest.fixture
def folder(tmp_path):
    for image, label in zip(*_textures(50, side=24), strict=True):
        path = tmp_path / "d" / "ab"[label]
        path.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path / f"{len(list(path.iterdir()))}.png")
    return tmp_path / "d"


def test_a_recipe_says_the_size_that_it_saw(tmp_path, folder, network_file):
    base = recipe_for_pictures(str(folder), PictureOptions(size=(9, 9), color=True)).recipe
    out = tmp_path / "out"
    network = OfferedNetwork(str(network_file), FREE)
    found = search_recipe(base, out, Budget(20_000), QUICK, network=network)
    assert (found.recipe.data.height, found.recipe.learner.kind) == (24, "dense")
    again = load_recipe(out / CHOSEN)
    assert again == found.recipe == kept_recipe(base, out, Budget(20_000))
    result = train(again, out)
    assert result.metrics["test_error_rate"] < 0.2
    assert result.classifier.image_shape == (24, 24, 3)


class _Stopped(Exception):
    """A search that was stopped."""


def test_trials_of_a_search_that_was_stopped_are_taken_as_they_are(tmp_path, folder, network_file):
    def stop(state):
        if isinstance(state.done[-1].proposal.features, Dense):
            raise _Stopped

    base = recipe_for_pictures(str(folder), PictureOptions(size=(9, 9), color=True)).recipe
    network = OfferedNetwork(str(network_file), FREE)
    whole = search_recipe(base, tmp_path / "whole", Budget(20_000), QUICK, network=network)
    out = tmp_path / "out"
    stopping = SearchSettings(features="pixels", tried=stop)
    with pytest.raises(_Stopped):
        search_recipe(base, out, Budget(20_000), stopping, network=network)
    kept = list((out / "trials").glob("*.safetensors"))
    assert len(kept) == 2
    again = search_recipe(base, out, Budget(20_000), QUICK, resume=True, network=network)
    np.testing.assert_array_equal(again.choice.best.doubts, whole.choice.best.doubts)
    assert again.recipe == whole.recipe


def test_the_command_refuses_a_file_that_is_no_network(folder, capsys):
    assert main(["train", str(folder), "--pretrained", "none.onnx"]) == 2
    assert "network: got" in capsys.readouterr().err
