"""Fine-tuning in few bits: what is learned is what the whole numbers compute."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare import CompactClassifier, Deslant, Network, PatchTemplates, ShareBoost, Templates
from visionshare.errors import InputError
from visionshare.export import compile_classifier
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.tuning import ByteNetwork
from visionshare.learners import FineTuning, Quantization, fine_tune
from visionshare.learners.fine_tuning.averaging import Averages
from visionshare.learners.fine_tuning.standardized_templates import StandardizedTemplates

QUICK = FineTuning(
    epochs=4, batch=50, rate=0.01, head="linear", weight_standardization=True,
    averaging=0.9, validation_fraction=0.0, quantization=Quantization(),
)  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    digits = load_digits()
    return (digits.images * 15).astype(np.uint8), digits.target


@pytest.fixture(scope="module")
def greedy(digits):
    images, y = digits[0][:600], digits[1][:600]
    layers = [Deslant(), Templates(4, 3, n_patches=2000), Templates(12, 3, grid=2, n_patches=2000)]
    pool = Network(layers).fit(images)
    return ShareBoost(rounds=8).fit(pool.transform(images), y).to_classifier(pool)


@pytest.mark.parametrize("head", ["linear", "hidden", "low-rank"])
@pytest.mark.parametrize("bits", [8, 4, 2, "ternary"])
def test_scores_are_whole_and_those_of_the_last_epoch(greedy, digits, head, bits, tmp_path):
    images, y = digits
    settings = replace(QUICK, head=head, n_units=9, quantization=Quantization(bits, 4))
    tuned = fine_tune(greedy, images[:600], y[:600], settings)
    scores = tuned.decision_function(images)
    assert np.array_equal(scores, np.round(scores))
    assert np.array_equal(tuned.weights, np.clip(np.round(tuned.weights), -7, 7))
    tuned.save(tmp_path / "tuned.safetensors")
    again = CompactClassifier.load(tmp_path / "tuned.safetensors")
    assert np.array_equal(again.decision_function(images), scores)
    assert again.metadata["fine_tuning"]["quantization"]["template_bits"] == bits


def test_first_layer_and_scores_have_bits_of_their_own(greedy, digits):
    images, y = digits
    quantization = Quantization(2, 4, first_bits=8, score_bits=8)
    settings = replace(QUICK, head="hidden", n_units=9, quantization=quantization)
    tuned = fine_tune(greedy, images[:600], y[:600], settings)
    assert [layer.bits for layer in tuned.family.layers_[1:]] == [8, 2, 4]
    assert 7 < np.abs(tuned.weights).max() <= 127
    compiled = compile_classifier(tuned)
    assert np.array_equal(compiled.decision_function(images), tuned.decision_function(images))


def test_averages_that_fit_worse_than_the_last_step_are_given_up(greedy, digits, monkeypatch):
    images, y = digits[0][:600], digits[1][:600]
    settings = replace(QUICK, quantization=Quantization(from_fraction=0.0))
    last = fine_tune(greedy, images, y, replace(settings, averaging=0.0))
    # They stay what the parameters were before the first step.
    monkeypatch.setattr(Averages, "update", lambda self, steps: None)
    chosen = fine_tune(greedy, images, y, settings)
    assert np.array_equal(chosen.weights, last.weights)
    assert np.array_equal(chosen.decision_function(images), last.decision_function(images))


def test_few_bits_are_learned(greedy, digits):
    images, y = digits
    quantization = Quantization(4, 4)
    settings = replace(QUICK, epochs=12, batch=25, averaging=0.98, quantization=quantization)
    tuned = fine_tune(greedy, images[:1200], y[:1200], settings)
    plain = fine_tune(greedy, images[:1200], y[:1200], replace(settings, quantization=None))
    errors = [float(np.mean(c.predict(images[1200:]) != y[1200:])) for c in (greedy, plain, tuned)]
    assert errors[2] < 0.9 * errors[0]
    assert errors[2] < errors[1] + 0.03
    probabilities = tuned.predict_proba(images[1200:])
    true = probabilities[np.arange(len(probabilities)), y[1200:]]
    assert np.mean(-np.log(true)) < 0.9


@pytest.mark.parametrize("wrap", [None, StandardizedTemplates])
def test_training_computes_what_the_layers_compute(greedy, digits, wrap):
    images = digits[0][:200]
    features = ByteNetwork(greedy.family, wrap)
    features.quantize(Bits(4, 4), images)
    rng = np.random.default_rng(0)
    for parameter in features.parameters:
        parameter += rng.normal(0, 0.05, parameter.shape).astype(np.float32)
    features.moved()
    values, _ = features.forward(images)
    whole = features.family().transform(images)
    assert np.array_equal(np.ldexp(whole, features.exponents), values)


def test_gradients_pass_roundings_unchanged(greedy, digits):
    images = digits[0][:50]
    features = ByteNetwork(greedy.family)
    features.quantize(Bits(8, 8), images)
    rng = np.random.default_rng(1)
    G = rng.normal(size=(len(images), greedy.n_features)).astype(np.float32)

    def total():
        return float((features.forward(images)[0].astype(np.float64) * G).sum())

    values, seen = features.forward(images)
    gradients = features.backward(images, values, seen, G)
    # With eight bits a step that is large beside a unit changes sums as gradients say.
    for parameter, gradient in zip(features.parameters, gradients, strict=True):
        direction = np.sign(gradient) * np.float32(0.02)
        parameter += direction
        features.moved()
        above = total()
        parameter -= 2 * direction
        features.moved()
        below = total()
        parameter += direction
        features.moved()
        expected = 2 * float((gradient * direction).sum())
        assert 0.6 < (above - below) / expected < 1.4


@pytest.mark.parametrize("stop", [1, 3])
def test_a_run_that_was_stopped_ends_the_same(greedy, digits, tmp_path, stop, monkeypatch):
    images, y = digits[0][:300], digits[1][:300]
    whole = fine_tune(greedy, images, y, QUICK)
    calls = []

    def copies(epoch):
        if epoch == stop and not calls:
            calls.append(epoch)
            raise KeyboardInterrupt
        return images

    with pytest.raises(KeyboardInterrupt):
        fine_tune(greedy, copies, y, QUICK, checkpoint=tmp_path)
    resumed = fine_tune(greedy, copies, y, QUICK, checkpoint=tmp_path)
    assert np.array_equal(resumed.weights, whole.weights)
    assert np.array_equal(resumed.decision_function(images), whole.decision_function(images))


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        (lambda: Quantization(template_bits=3), "template_bits"),
        (lambda: Quantization(weight_bits="two"), "weight_bits"),
        (lambda: Quantization(from_fraction=1.0), "from_fraction"),
        (lambda: Quantization(first_bits=1), "first_bits"),
        (lambda: replace(QUICK, head="products"), "head"),
        (
            lambda: replace(QUICK, max_features=4, quantization=Quantization(from_fraction=0.2)),
            "from_fraction",
        ),
    ],
)
def test_settings_are_checked(settings, argument):
    with pytest.raises(InputError, match=argument):
        settings()


def test_features_that_cannot_be_whole_are_refused(digits):
    images, y = digits[0][:300], digits[1][:300]
    pool = PatchTemplates(3, 12, 2, (2.0,), n_patches=2000).fit(images)
    greedy = ShareBoost(rounds=3).fit(pool.transform(images), y).to_classifier(pool)
    with pytest.raises(InputError, match="layers of templates"):
        fine_tune(greedy, images, y, QUICK)
