"""A small classifier of every family, on real images."""

from dataclasses import replace

import numpy as np
import pytest

from tests.generators.examples import family_examples
from visionshare import Channels, CompactClassifier, Features, Network, PatchTemplates
from visionshare.classifier import ExitRule, PathStep
from visionshare.classifier.exit_rule import score_margins
from visionshare.cli.main import main
from visionshare.datasets import load_dataset
from visionshare.generators import family_names

FAMILIES = {label: make for name in family_names() for label, make in family_examples(name).items()}
PATCHES = PatchTemplates(4, 20, 2, (2.0,), n_patches=1000)
OF_COLOR = {
    "color": PATCHES,
    "color-channels": Network([Channels(("opponent", "orientations", "gray")), Features(PATCHES)]),
    "color-channels-normalized": Network(
        [Channels(("magnitude", "ycbcr", "orientations"), 3, 2, "local", 7), Features(PATCHES)]
    ),
}


@pytest.fixture(scope="session")
def images():
    """Return training and test digits, bytes of 8x8."""
    return load_dataset("digits", "train").images[:300], load_dataset("digits", "test").images[:80]


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return the file of a classifier of 6 rounds that the command line trained."""
    out = tmp_path_factory.mktemp("trained")
    settings = ["--set", "features.parameters.n_templates=20", "--set", "data.limit=400"]
    settings += ["--set", "features.parameters.n_patches=1000"]
    assert main(["train", "digits", "--out", str(out), "--rounds", "6", *settings]) == 0
    return out / "classifier.safetensors"


@pytest.fixture(scope="session")
def classifier(images):
    """Return a function that gives the classifier of a family, with weights drawn at random."""
    made = {}

    def make(kind):
        if kind not in made:
            made[kind] = _classifier(kind, images[0])
        return made[kind]

    return make


@pytest.fixture(scope="session")
def stopping(classifier, images):
    """Return a function that gives a classifier whose images stop at three stages, some at each."""

    def make(kind):
        model = classifier(kind)
        rng = np.random.default_rng(3)
        n, steps = model.n_features, []
        for t, width in enumerate((max(1, n // 4), max(2, n // 2), n), 1):
            known = (range(width), width, model.weights[:, :width])
            others = (0.0, 0.0, None, None, 0.0, 0, 0.0)
            steps.append(PathStep(t, tuple(known[0]), *known[1:], model.intercept, *others))
        model = replace(model, path=steps)
        test = (
            images[1]
            if model.image_shape == images[1].shape[1:]
            else rng.integers(0, 256, (40, *model.image_shape), np.uint8)
        )
        margins = [
            float(np.median(score_margins(model.at(t).decision_function(test)))) for t in (1, 2)
        ]
        return replace(model, exit_rule=ExitRule((1, 2), tuple(margins))), test

    return make


def _classifier(kind, images):
    rng = np.random.default_rng(7)
    if kind in OF_COLOR:
        images, family = rng.integers(0, 256, (40, 9, 6, 3), np.uint8), OF_COLOR[kind]
    else:
        family = FAMILIES[kind]()
    family = family.fit(images)
    chosen = family.take(rng.permutation(family.n_features_)[:25])
    features = chosen.transform(images)
    size = np.abs(features).max(axis=0)
    weights = rng.normal(size=(4, chosen.n_features_)) / np.maximum(size, 1e-3)
    # Scores around 0: all classes are somewhere the best.
    intercept = rng.normal(size=4) - (features @ weights.T).mean(axis=0)
    classes = np.array(["one", "two", 'th"ree\\', "café"])
    return CompactClassifier(
        chosen, weights.astype(np.float32), intercept.astype(np.float32), classes, 1.7
    )
