"""Integers in place of floats, without learning anew."""

import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from visionshare import (
    CompactClassifier,
    Deslant,
    Network,
    Pixels,
    ShareBoost,
    Templates,
    load,
)
from visionshare.classifier import averaged, can_be_quantized, quantize
from visionshare.datasets import load_dataset
from visionshare.errors import InputError
from visionshare.export import c_program, compile_classifier, onnx_program, run_onnx
from visionshare.learners import FineTuning, fine_tune

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler on this machine"
)
needs_onnx = pytest.mark.skipif(
    not all(map(find_spec, ("onnx", "onnxruntime"))), reason="onnx or onnxruntime is missing"
)


def _layers(*before):
    """Return templates in cells after other layers."""
    return Network([*before, Templates(12, 2, grid=2, padding=2, n_patches=900)])


def _maps(n=4):
    return Templates(n, 3, pool=2, padding=1, n_patches=900)


FAMILIES = {
    "patches": _layers,
    "maps": lambda: _layers(_maps()),
    "deslanted": lambda: _layers(Deslant(), _maps()),
    "units": lambda: _layers(_maps()),
    "mean": lambda: _layers(_maps(5)),
}
# Units are learned: random ones make poor classifiers, whose labels any rounding changes.
HIDDEN = FineTuning(epochs=30, head="hidden", n_units=24, validation_fraction=0.0)


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits", "train"), load_dataset("digits", "test")


@pytest.fixture(scope="module")
def learned(digits):
    """Return a function that gives a classifier of floats of a family."""
    made = {}

    def make(name):
        if name not in made:
            train = digits[0]
            family = FAMILIES[name]().fit(train.images)
            learner = ShareBoost(rounds=24).fit(family.transform(train.images), train.labels)
            weights = learner.coef_
            model = CompactClassifier(
                family.take(learner.support_), weights, learner.intercept_, learner.classes_, 0.7
            )
            if name == "units":
                model = fine_tune(model, train.images, train.labels, HIDDEN)
            if name == "mean":
                model = averaged([model, make("deslanted"), make("patches")])
            made[name] = model
        return made[name]

    return make


@pytest.mark.parametrize("name", FAMILIES)
def test_it_says_what_the_floats_say(name, learned, digits):
    model, (train, test) = learned(name), digits
    assert can_be_quantized(model)
    integers = quantize(model, train.images)
    features = integers.family.transform(test.images)
    assert np.array_equal(features, np.clip(np.rint(features), 0, 255))
    assert np.array_equal(integers.weights, np.clip(np.rint(integers.weights), -127, 127))
    assert np.array_equal(integers.intercept, np.rint(integers.intercept))
    assert (integers.predict(test.images) == model.predict(test.images)).mean() > 0.93
    ours, floats = integers.predict_proba(test.images), model.predict_proba(test.images)
    assert np.abs(ours - floats).mean() < 0.02
    # The scores of the images that it was rounded on keep their means, to half a unit.
    unit = model.temperature / integers.temperature
    sample = train.images[:1000]
    same = quantize(model, sample)
    means = [m.decision_function(sample).mean(axis=0, dtype=float) for m in (same, model)]
    assert np.abs(means[0] - means[1] / unit).max() < 0.5 + 1e-3 * np.abs(means[0]).max()
    assert len(integers.path) == 0


def test_fewer_bits_err_more(learned, digits):
    model, (train, test) = learned("maps"), digits
    floats = model.decision_function(test.images)
    distances = []
    for bits in (8, 4):
        integers = quantize(model, train.images, bits)
        scores = integers.decision_function(test.images) * model.temperature / integers.temperature
        # Of the images' differences: a score that all share decides nothing.
        difference = (scores - floats) - (scores - floats).mean(axis=1, keepdims=True)
        distances.append(difference.std() / floats.std())
    assert distances[0] < distances[1]
    assert distances[0] < 2 / 2**4


def test_weights_make_good_what_rounding_takes(learned, digits):
    model, train = learned("maps"), digits[0]
    images = train.images[:1000]
    floats = model.decision_function(images)
    integers = quantize(model, images, 4)
    features = integers.family.transform(images).astype(np.float64)
    scale = integers.temperature / model.temperature
    error = np.square(features @ integers.weights.T + integers.intercept - floats * scale).mean()
    # Each weight rounded by itself, to the nearest, with the same exponent.
    unrounded, *_ = np.linalg.lstsq(features - features.mean(axis=0), floats * scale, rcond=None)
    nearest = np.clip(np.rint(unrounded), -7, 7)
    offsets = (floats * scale - features @ nearest).mean(axis=0)
    assert error < np.square(features @ nearest + offsets - floats * scale).mean()


def test_threads_change_nothing(learned, digits):
    one, two = (quantize(learned("units"), digits[0].images, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.weights, two.weights)
    assert np.array_equal(one.intercept, two.intercept)


def test_many_images_are_drawn_evenly(learned, digits):
    model, images = learned("patches"), digits[0].images
    chosen = np.linspace(0, len(images) - 1, 1000).astype(int)
    every, drawn = quantize(model, images), quantize(model, images[chosen])
    assert len(images) > 1000
    assert np.array_equal(every.intercept, drawn.intercept)


def test_it_is_saved_and_loaded(learned, digits, tmp_path):
    integers = quantize(learned("units"), digits[0].images)
    integers.save(tmp_path / "c.safetensors")
    again = load(tmp_path / "c.safetensors")
    images = digits[1].images[:50]
    assert np.array_equal(again.decision_function(images), integers.decision_function(images))
    assert again.metadata["quantized_bits"] == 8


@needs_compiler
@pytest.mark.parametrize("name", FAMILIES)
def test_c_gives_the_same_integers(name, learned, digits):
    integers = quantize(learned(name), digits[0].images)
    images = digits[1].images
    assert c_program(integers).score == "int32"
    compiled = compile_classifier(integers)
    assert np.array_equal(compiled.decision_function(images), integers.decision_function(images))


@needs_onnx
def test_onnx_gives_the_same_integers(learned, digits):
    integers = quantize(learned("units"), digits[0].images)
    images = digits[1].images[:100]
    scores = run_onnx(onnx_program(integers), images).scores
    assert np.array_equal(scores, integers.decision_function(images))


def test_colors_have_integers_too():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 9, 8, 3), np.uint8)
    family = _layers(_maps(3)).fit(images)
    weights = rng.standard_normal((3, family.n_features_))
    model = CompactClassifier(family, weights, np.zeros(3), np.arange(3))
    integers = quantize(model, images)
    assert (integers.predict(images) == model.predict(images)).mean() > 0.9


def test_wrong_arguments(learned, digits):
    images = digits[0].images
    pixels = Pixels().fit(images)
    other = CompactClassifier(pixels.take([0, 1]), np.eye(2), np.zeros(2), np.arange(2))
    assert not can_be_quantized(other)
    with pytest.raises(InputError, match="classifier: got 'pixels'"):
        quantize(other, images)
    model = learned("patches")
    for wrong in (images / 255.0, images[:0]):
        with pytest.raises(InputError, match=r"images: got .*training images of shape \(n, 8, 8\)"):
            quantize(model, wrong)
    with pytest.raises(InputError, match="bits"):
        quantize(model, images, 2)
    nothing = CompactClassifier(model.family.take([]), np.zeros((2, 0)), np.zeros(2), np.arange(2))
    with pytest.raises(InputError, match="no features"):
        quantize(nothing, images)
