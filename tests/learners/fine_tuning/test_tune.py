"""Fine-tuning: features and weights that move together."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare import PatchTemplates, Pixels, ShareBoost
from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError
from visionshare.learners.fine_tuning import FineTuning, fine_tune

QUICK = {"epochs": 2, "batch": 50, "rate": 0.01}


@pytest.fixture(scope="module")
def digits():
    digits = load_digits()
    return (digits.images * 15).astype(np.uint8), np.array([f"n{c}" for c in digits.target])


@pytest.fixture(scope="module")
def greedy(digits):
    images, y = digits[0][:600], digits[1][:600]
    pool = PatchTemplates(3, 20, grid=3, widths=(2.0,), n_patches=2000).fit(images)
    return ShareBoost(rounds=8).fit(pool.transform(images), y).to_classifier(pool)


@pytest.mark.parametrize(("products", "most"), [(False, None), (True, None), (True, 20)])
def test_a_tuned_classifier_is_better_and_whole(greedy, digits, products, most, tmp_path):
    images, y = digits
    head = "products" if products else "linear"
    settings = FineTuning(
        epochs=40, batch=32, rate=0.03, head=head, max_products=most,
        product_rate=0.003, validation_fraction=0.1,
    )  # fmt: skip
    tuned = fine_tune(greedy, images[:1200], y[:1200], settings)
    errors = [float(np.mean(c.predict(images[1200:]) != y[1200:])) for c in (greedy, tuned)]
    assert errors[1] < (0.7 if products else 0.9) * errors[0]
    assert abs(tuned.path[0].validation_error - errors[1]) < 0.1
    pairs = (most or 36) if products else 0
    assert tuned.n_features == 8 + pairs
    assert tuned.macs == greedy.macs + pairs * 11
    assert tuned.path[0].macs == tuned.macs
    tuned.save(tmp_path / "tuned.safetensors")
    again = CompactClassifier.load(tmp_path / "tuned.safetensors")
    scores = tuned.decision_function(images)
    assert np.array_equal(again.decision_function(images), scores)
    assert again.metadata["fine_tuning"]["head"] == settings.head
    # Guessing costs log(10) = 2.3 an image.
    probabilities = tuned.predict_proba(images[1200:])
    true = probabilities[np.arange(len(probabilities)), np.searchsorted(tuned.classes_, y[1200:])]
    assert np.mean(-np.log(true)) < 0.6


def test_no_rate_changes_nothing(greedy, digits):
    images, y = digits[0][:600], digits[1][:600]
    settings = FineTuning(epochs=1, rate=0.0, product_rate=0.0)
    same = fine_tune(greedy, images, y, settings)
    expected = greedy.decision_function(images)
    scores = same.decision_function(images)
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def _same(first, second):
    """Whether two classifiers are the same to the bit."""
    both = ([*c.family.to_state()[1].values(), c.weights] for c in (first, second))
    return all(np.array_equal(p, q) for p, q in zip(*both, strict=True))


@pytest.mark.parametrize("products", [False, True])
def test_the_features_that_matter_stay(greedy, digits, products):
    images, y = digits[0][:1200], digits[1][:1200]
    settings = {
        "epochs": 20,
        "batch": 32,
        "rate": 0.02,
        "head": "products" if products else "linear",
    }
    tuned, first = (
        fine_tune(greedy, images, y, FineTuning(**settings, max_features=most)) for most in (5, 8)
    )
    assert _same(first, fine_tune(greedy, images, y, FineTuning(**settings)))
    n = {False: 5, True: 5 + 15}[products]
    assert tuned.n_features == n == len(tuned.path[0].weights.T)
    assert tuned.macs == tuned.path[0].macs < first.macs


def test_features_without_weight_go(greedy, digits):
    images, y = digits[0][:600], digits[1][:600]
    useful, useless = np.array([0, 2, 3, 4, 6, 7, 9, 10]), np.array([1, 5, 8])
    pool = PatchTemplates(3, 20, grid=3, widths=(2.0,), n_patches=2000).fit(images)
    others = np.setdiff1d(np.arange(pool.n_features_), greedy.path[-1].feature)[:3]
    order = np.empty(11, np.int64)
    chosen = np.array([step.feature for step in greedy.path]).ravel()
    order[useful], order[useless] = chosen, others
    weights = np.zeros((10, 11), np.float32)
    # What all classes share moves no score against another.
    weights[:, useful], weights[:, useless] = greedy.weights, 70.0
    wide = CompactClassifier(pool.take(order), weights, greedy.intercept, greedy.classes_)
    settings = FineTuning(epochs=2, rate=0.0, head="linear", max_features=8)
    narrow = fine_tune(wide, images, y, settings)
    assert narrow.macs == greedy.macs
    scores, expected = (
        Z - Z.mean(axis=1, keepdims=True)
        for Z in (c.decision_function(images).astype(np.float64) for c in (narrow, wide))
    )
    np.testing.assert_allclose(scores, expected, atol=1e-3 * np.abs(expected).max())


def test_a_run_resumes_after_features_went(greedy, digits, tmp_path):
    images, y = digits[0][:600], digits[1][:600]
    settings = FineTuning(epochs=5, batch=50, rate=0.01, max_features=5, max_products=9)

    def run(checkpoint=None, jobs=1):
        return fine_tune(greedy, images, y, settings, checkpoint=checkpoint, n_jobs=jobs)

    once = run(tmp_path)
    assert once.n_features == 5 + 9
    for last in (5, 4, 3, 2, 1):
        for later in range(last + 1, 6):
            (tmp_path / f"round-{later:05d}.safetensors").unlink()
        assert _same(once, run(tmp_path, jobs=2)), last


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_threads_and_stops_change_no_bit(greedy, digits, tmp_path, optimizer):
    images, y = digits[0][:600], digits[1][:600]
    settings = FineTuning(**QUICK, max_products=15, optimizer=optimizer)
    once = fine_tune(greedy, images, y, settings)
    assert once.n_features == 8 + 15
    assert _same(once, fine_tune(greedy, images, y, settings, n_jobs=2))
    fine_tune(greedy, images, y, settings, checkpoint=tmp_path)
    (tmp_path / "round-00002.safetensors").unlink()
    seen = []

    def of(epoch):
        seen.append(epoch)
        return images

    assert _same(once, fine_tune(greedy, of, y, settings, checkpoint=tmp_path))
    assert set(seen) == {0, 1}
    other = FineTuning(**QUICK, max_products=15, random_state=1)
    assert not _same(once, fine_tune(greedy, images, y, other))
    with pytest.raises(InputError, match=r"^checkpoint"):
        fine_tune(greedy, images, y, other, checkpoint=tmp_path)


def test_images_of_each_epoch_are_asked_for(greedy, digits):
    images, y = digits[0][:600], digits[1][:600]
    seen = []

    def of(epoch):
        seen.append(epoch)
        return images

    fine_tune(greedy, of, y, FineTuning(**QUICK))
    assert sorted(set(seen)) == [0, 1]


def test_what_cannot_be_tuned(greedy, digits):
    images, y = digits[0][:600], digits[1][:600]
    with pytest.raises(InputError, match=r"^labels.*'n11'"):
        fine_tune(greedy, images, np.where(y == "n3", "n11", y))
    with pytest.raises(InputError, match=r"^images.*600"):
        fine_tune(greedy, images[:30], y)
    with pytest.raises(InputError, match=r"^labels"):
        fine_tune(greedy, images, y[:, None])
    family = Pixels().fit(images).take(np.array([3, 9]))
    pixels = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["n0", "n1"]))
    with pytest.raises(InputError, match=r"^family"):
        fine_tune(pixels, images, y)


class Oracle:
    """Knows the answers, its classes in another order."""

    def __init__(self, images, y):
        self.classes_ = np.unique(y)[::-1]
        self.answers = {i.tobytes(): c for i, c in zip(images, y, strict=True)}
        self.asked = 0

    def decision_function(self, images, n_jobs=1):
        self.asked += 1
        answers = np.array([self.answers[i.tobytes()] for i in images])
        return 5 * (answers[:, None] == self.classes_).astype(np.float32)


def test_a_teacher_teaches_what_labels_do_not_say(greedy, digits):
    images, y = digits[0][:600], digits[1][:600]
    wrong = np.random.default_rng(0).permutation(y)
    teacher = Oracle(images, y)
    settings = FineTuning(**QUICK, validation_fraction=0, teacher_weight=1.0)
    tuned = fine_tune(greedy, images, wrong, settings, teacher=teacher)
    assert teacher.asked == 1
    assert np.mean(tuned.predict(images) == y) > 0.7
    unheard = fine_tune(greedy, images, y, FineTuning(**QUICK, teacher_weight=0), teacher=teacher)
    alone = fine_tune(greedy, images, y, FineTuning(**QUICK))
    np.testing.assert_array_equal(unheard.weights, alone.weights)


def test_a_teacher_of_images_that_change_is_asked_each_epoch(greedy, digits, tmp_path):
    images, y = digits[0][:600], digits[1][:600]
    teacher, settings = Oracle(images, y), FineTuning(**QUICK, head="linear")
    options = {"teacher": teacher, "checkpoint": tmp_path}
    once = fine_tune(greedy, lambda epoch: images.copy(), y, settings, **options)
    assert teacher.asked == QUICK["epochs"]
    (tmp_path / "round-00002.safetensors").unlink()
    again = fine_tune(greedy, images, y, settings, **options, n_jobs=2)
    np.testing.assert_array_equal(once.weights, again.weights)
    with pytest.raises(InputError, match=r"^checkpoint"):
        fine_tune(greedy, images, y, settings, checkpoint=tmp_path)


def test_a_teacher_of_other_classes_is_refused(greedy, digits):
    images, y = digits[0][:600], digits[1][:600]
    teacher = Oracle(images[y != "n0"], y[y != "n0"])
    with pytest.raises(InputError, match=r"^teacher.*classes 'n9', 'n8'"):
        fine_tune(greedy, images, y, teacher=teacher)


@pytest.mark.parametrize(
    "more",
    [
        {"averaging": 0.9, "max_features": 6, "max_products": 9},
        {"averaging": 0.5, "validation_fraction": 0},
        {"label_smoothing": 0.1, "head": "linear"},
    ],
)
def test_smoothed_and_averaged_runs_resume_to_the_same_bits(greedy, digits, tmp_path, more):
    images, y = digits[0][:600], digits[1][:600]
    settings = FineTuning(**{**QUICK, "epochs": 4, **more})
    taught = {"teacher": Oracle(images, y)} if "label_smoothing" in more else {}

    def run(checkpoint=None, jobs=1):
        return fine_tune(greedy, images, y, settings, checkpoint=checkpoint, n_jobs=jobs, **taught)

    once = run(tmp_path)
    assert np.mean(once.predict(images) == y) > 0.6
    for last in (4, 3, 2, 1):
        for later in range(last + 1, 5):
            (tmp_path / f"round-{later:05d}.safetensors").unlink()
        again = run(tmp_path, jobs=2)
        assert _same(once, again), last
        assert again.temperature == once.temperature
    other = fine_tune(greedy, images, y, FineTuning(**{**QUICK, "epochs": 4}), **taught)
    assert once.weights.shape != other.weights.shape or not _same(once, other)
    seeded = FineTuning(**{**QUICK, "epochs": 4, **more, "random_state": 1})
    assert not np.array_equal(fine_tune(greedy, images, y, seeded).weights, once.weights)


def test_an_average_of_one_step_is_the_step(greedy, digits):
    images, y = digits[0][:600], digits[1][:600]
    # Nothing moves: the averages are what they began with, and so is the classifier.
    still = {"epochs": 2, "rate": 0.0, "product_rate": 0.0}
    plain, averaged = (
        fine_tune(greedy, images, y, FineTuning(**still, averaging=a)) for a in (0.0, 0.99)
    )
    np.testing.assert_allclose(averaged.weights, plain.weights, rtol=1e-5, atol=1e-6)
    assert averaged.temperature == pytest.approx(plain.temperature, rel=1e-4)
    # Averages lag behind parameters that move.
    moved, lagging = (
        fine_tune(greedy, images, y, FineTuning(**QUICK, averaging=a)) for a in (0.0, 0.5)
    )
    distances = [np.linalg.norm(c.weights - plain.weights) for c in (moved, lagging)]
    assert 0 < distances[1] != distances[0]


def test_products_that_went_have_no_weight_in_the_averages(greedy, digits):
    images, y = digits[0][:600], digits[1][:600]
    settings = FineTuning(**QUICK, averaging=0.99, max_products=5)
    tuned = fine_tune(greedy, images, y, settings)
    assert tuned.n_features == 8 + 5
    errors = [tuned.path[0].validation_error, np.mean(tuned.predict(images) != y)]
    assert abs(errors[0] - errors[1]) < 0.1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("teacher_weight", 1.5),
        ("teacher_temperature", 0.0),
        ("epochs", 0),
        ("batch", 1.5),
        ("rate", -1),
        ("rate", float("nan")),
        ("optimizer", "sgd"),
        ("max_features", 0),
        ("max_features", 2.5),
        ("max_products", 0),
        ("product_rate", -0.1),
        ("warm_up", 1.0),
        ("alpha", float("inf")),
        ("margin", -1.0),
        ("label_smoothing", 1.0),
        ("label_smoothing", -0.1),
        ("averaging", 1.0),
        ("averaging", "0.9"),
        ("validation_fraction", 1.0),
        ("random_state", True),
        ("class_weight", "equal"),
    ],
)
def test_settings_are_checked(name, value):
    with pytest.raises(InputError, match=rf"^{name}"):
        FineTuning(**{name: value})


def test_some_images_are_left_to_train_on(greedy, digits):
    with pytest.raises(InputError, match=r"^validation_fraction: got 0.9"):
        fine_tune(greedy, digits[0][:1], digits[1][:1], FineTuning(validation_fraction=0.9))


@pytest.mark.parametrize("most", ["max_features", "max_products"])
def test_one_epoch_has_no_half(most):
    with pytest.raises(InputError, match=r"^epochs: got 1"):
        FineTuning(epochs=1, **{most: 5})


@pytest.mark.parametrize("head", ["hidden", "low-rank"])
def test_units_follow_the_features(greedy, digits, head):
    images, y = digits
    settings = FineTuning(epochs=40, batch=32, rate=0.03, head=head, n_units=20)
    tuned = fine_tune(greedy, images[:1200], y[:1200], settings)
    errors = [float(np.mean(c.predict(images[1200:]) != y[1200:])) for c in (greedy, tuned)]
    assert errors[1] < 0.8 * errors[0]
    assert tuned.family.layers_[-1].kind == "units"
    assert tuned.n_features == 20
    each = 8 + (head == "low-rank")
    assert tuned.macs == greedy.family.macs() + 20 * each + 20 * 10


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"head": "deep"}, "head"), ({"n_units": 0}, "n_units"),
     ({"head": "hidden", "max_features": 3}, "max_features")],
)  # fmt: skip
def test_heads_out_of_range_are_refused(settings, name):
    with pytest.raises(InputError, match=name):
        FineTuning(**settings)


def test_a_rare_class_is_found_where_classes_are_balanced(digits):
    images, y = digits
    rng = np.random.default_rng(0)
    # Of two classes that are hard to tell apart, one has a twentieth of the images.
    eights, ones = (np.flatnonzero(y == name) for name in ("n8", "n1"))
    training = np.concatenate([eights[:100], ones[:5]])
    rows = rng.permutation(training)
    pool = PatchTemplates(3, 10, grid=2, widths=(2.0,), n_patches=500).fit(images[rows])
    plain = ShareBoost(rounds=3).fit(pool.transform(images[rows]), y[rows]).to_classifier(pool)
    settings = {"epochs": 10, "batch": 32, "rate": 0.02, "head": "linear", "margin": 0.0}
    found = []
    same = {"n8": 105 / 200, "n1": 105 / 10}
    for weight in (None, "balanced", same):
        made = FineTuning(**settings, validation_fraction=0.0, class_weight=weight)
        tuned = fine_tune(plain, images[rows], y[rows], made)
        found.append(np.mean(tuned.predict(images[ones[5:]]) == "n1"))
    assert found[1] > found[0] + 0.1
    assert found[2] == found[1]
    with pytest.raises(InputError, match="class_weight"):
        fine_tune(plain, images[rows], y[rows], FineTuning(class_weight={"n9": 2.0}))
