"""Pictures of no class: the rule, its labels, its file."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from visionshare import CompactClassifier, Pixels, load
from visionshare.classifier import learn_unknown_rule
from visionshare.classifier.unknown import (
    appearance,
    checked_unknown_label,
    looks,
    looks_of_windows,
    view_matrix,
)
from visionshare.datasets.augmentation.strangers import pieces, strangers, turned
from visionshare.errors import ClassifierFileError, InputError
from visionshare.generators.windows import cut_windows


def pictures(n, seed, classes=3):
    """Return pictures with a bright bar whose place is the class, and their classes."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (n, 12, 12), np.uint8)
    labels = np.arange(n) % classes
    for image, label in zip(images, labels, strict=True):
        image[4 * label : 4 * label + 3, 2:10] += 150
    return images, labels


@pytest.fixture(scope="module")
def model():
    images, labels = pictures(300, 0)
    family = Pixels().fit(images)
    weights = np.stack([images[labels == c].mean(axis=0).ravel() for c in range(3)]) / 255
    weights -= weights.mean(axis=0)
    return CompactClassifier(family, weights, np.zeros(3), np.array(["top", "middle", "bottom"]))


@pytest.fixture(scope="module")
def rule(model):
    return learn_unknown_rule(model, pictures(400, 1)[0], pictures(400, 2)[0])


def test_as_many_known_pictures_are_refused_as_asked(model, rule):
    known, labels = pictures(3000, 3)
    refusing = replace(model, unknown=rule)
    shares = refusing.known(known)
    assert np.mean(shares < 0.01) < 0.025
    assert np.mean(shares < 0.1) == pytest.approx(0.1, abs=0.05)
    answered = shares >= 0.01
    assert_array_equal(refusing.predict(known)[answered], model.classes[labels[answered]])
    assert (refusing.predict(known)[~answered] == "unknown").all()


def test_other_pictures_are_refused_that_the_classifier_alone_is_sure_of(model, rule):
    rng = np.random.default_rng(4)
    blank = np.full((5, 12, 12), [[[v]] for v in (0, 60, 120, 180, 255)]).astype(np.uint8)
    noise = rng.integers(0, 256, (50, 12, 12), np.uint8)
    upright = pictures(60, 5)[0].transpose(0, 2, 1)
    refusing = replace(model, unknown=rule)
    for others in (blank, noise, upright):
        assert (refusing.predict(others) == "unknown").mean() > 0.9
        assert not (model.predict(others) == "unknown").any()


def test_known_falls_on_below_the_lowest_quantile(model, rule):
    refusing = replace(model, unknown=rule)
    shares = refusing.known(np.stack([np.full((12, 12), v, np.uint8) for v in (0, 255)]))
    assert (shares > 0).all()
    assert (shares < 0.001).all()


def test_unknown_pictures_are_used_where_there_are_any(model):
    known, held_out = pictures(400, 1)[0], pictures(400, 2)[0]
    # Bars a little thicker: nobody would make these up.
    others = pictures(400, 6)[0]
    others[:, :, 10:] = 210
    shares = {}
    for name, unknown in (("without", None), ("with", others[:200])):
        made = learn_unknown_rule(model, known, held_out, unknown=unknown)
        shares[name] = np.mean(replace(model, unknown=made).known(others[200:]) < 0.01)
    assert shares["with"] > 0.95
    assert shares["with"] >= shares["without"]


def test_half_of_the_pictures_calibrate_where_none_are_held_out(model):
    made = learn_unknown_rule(model, pictures(600, 7)[0], reject=0.05)
    shares = replace(model, unknown=made).known(pictures(2000, 8)[0])
    assert np.mean(shares < 0.05) == pytest.approx(0.05, abs=0.04)


def test_a_file_keeps_the_rule_and_files_without_one_load(model, rule, tmp_path):
    others = pictures(30, 9)[0]
    refusing = replace(model, unknown=rule)
    refusing.save(tmp_path / "c.safetensors")
    loaded = load(tmp_path / "c.safetensors")
    assert_array_equal(loaded.known(others), refusing.known(others))
    assert loaded.unknown.label == "unknown"
    model.save(tmp_path / "plain.safetensors")
    assert load(tmp_path / "plain.safetensors").unknown is None
    broken = replace(rule)
    object.__setattr__(broken, "quantiles", rule.quantiles[::-1].copy())
    object.__setattr__(refusing, "unknown", broken)
    refusing.save(tmp_path / "broken.safetensors")
    with pytest.raises(ClassifierFileError, match="quantiles"):
        load(tmp_path / "broken.safetensors")


def test_a_distance_is_kept_where_fresh_strangers_show_that_it_helps(model, rule, tmp_path):
    # The sums vary by 1 about the mean of a class.
    known, labels = pictures(400, 1)
    values = model.family.transform(known) @ rule.directions.T
    assert np.std(values - rule.feature_means[labels], axis=0) == pytest.approx(1, abs=0.2)
    # Its twin: scores and sums one after the other.
    refusing = replace(model, unknown=rule)
    sums = np.hstack([model.decision_function(known), values])
    shares = rule.known(known, sums, model.temperature)
    assert_allclose(refusing.known(known), shares, rtol=1e-3)
    scores, judged = refusing.judged(known)
    assert_allclose(scores, model.decision_function(known), rtol=1e-5)
    assert_array_equal(judged, refusing.known(known, scores))
    # Files of former versions have none.
    weights = np.delete(rule.weights, -2, axis=1)
    former = replace(rule, weights=weights, directions=None, feature_means=None)
    replace(model, unknown=former).save(tmp_path / "former.safetensors")
    loaded = load(tmp_path / "former.safetensors")
    assert loaded.unknown.directions is None
    assert_array_equal(loaded.known(known), replace(model, unknown=former).known(known))
    with pytest.raises(InputError, match="directions"):
        replace(model, unknown=replace(rule, directions=rule.directions[:, 1:]))


def test_a_plain_classifier_says_how_to_get_one(model):
    with pytest.raises(InputError, match="reject"):
        model.known(pictures(3, 0)[0])


@pytest.mark.parametrize(
    ("classes", "label", "expected"),
    [
        (["a", "b"], None, "unknown"), (["a", "b"], "no", "no"), ([1, 2], -1, -1),
        ([0.5, 1.0], -1.0, -1.0), ([False, True], -1, -1),
        (np.array(["a", "b"], object), None, "unknown"),
    ],
)  # fmt: skip
def test_the_label_of_refused_pictures_is_of_the_type_of_the_classes(classes, label, expected):
    assert checked_unknown_label(label, np.array(classes)) == expected


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        (["a", "unknown"], None), (["a", "b"], 3), ([1, 2], None), ([1, 2], 2), ([1, 2], "x"),
        ([0.5, 1.0], None), ([0.5, 1.0], np.nan), ([False, True], None), ([False, True], True),
        ([False, True], 0),
    ],
)  # fmt: skip
def test_other_labels_are_refused(classes, label):
    with pytest.raises(InputError, match="unknown_label"):
        checked_unknown_label(label, np.array(classes))


def test_whole_numbers_and_booleans_get_their_label(model, rule):
    blank = np.zeros((1, 12, 12), np.uint8)
    numbers = replace(model, classes=np.array([3, 4, 5]), unknown=replace(rule, label=-1))
    assert numbers.predict(np.concatenate([blank, pictures(3, 0)[0]])).tolist() == [-1, 3, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reject": 0}, "reject"), ({"reject": True}, "reject"), ({"reject": 1.0}, "reject"),
        ({"images": np.zeros((3, 12, 12), np.uint8)}, "images"),
        ({"held_out": np.zeros((3, 12, 12), np.uint8)}, "held_out"),
        ({"unknown_label": "top"}, "unknown_label"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(model, arguments, message):
    given = {"images": pictures(100, 1)[0], "held_out": pictures(100, 2)[0], **arguments}
    with pytest.raises(InputError, match=message):
        learn_unknown_rule(model, **given)


def test_vectors_have_no_rule():
    family = Pixels().fit(np.zeros((1, 4)))
    vectors = CompactClassifier(family, np.ones((2, 4)), np.zeros(2), np.array(["a", "b"]))
    with pytest.raises(InputError, match="vectors"):
        learn_unknown_rule(vectors, np.zeros((100, 4)))


def test_the_view_is_the_cosine_transform_of_means():
    from scipy.fft import dctn

    images = np.random.default_rng(0).integers(0, 256, (2, 18, 24, 3), np.uint8)
    view, contrast = looks(images)
    gray = images.mean(axis=3) / 255
    cells = gray.reshape(2, 6, 3, 6, 4).mean(axis=(2, 4))
    assert_allclose(view, dctn(cells, axes=(1, 2), norm="ortho").reshape(2, -1), atol=1e-9)
    assert_allclose(contrast[:, 0], gray.std(axis=(1, 2)))
    assert view_matrix(5).shape == (6, 5)
    assert_allclose(view_matrix(5)[0].sum(), 6 / np.sqrt(6))


@pytest.mark.parametrize("color", [False, True])
def test_windows_of_a_picture_look_as_they_do_alone(color):
    picture = np.random.default_rng(0).integers(0, 256, (31, 26, 3), np.uint8)
    picture = picture if color else picture[..., 0]
    shape = (11, 9, *picture.shape[2:])
    ys, xs = np.array([0, 3, 20]), np.array([1, 17])
    alone = looks(cut_windows(picture, ys, xs, shape))
    for found, expected in zip(looks_of_windows(picture, ys, xs, shape), alone, strict=True):
        assert_allclose(found, expected, atol=1e-9)


def test_energy_is_the_logarithm_of_the_sum_of_exponentials():
    scores = np.random.default_rng(1).normal(0, 5, (7, 3)).astype(np.float32)
    seen = appearance(looks(np.zeros((7, 12, 12), np.uint8)), scores, 2.0)
    assert_allclose(seen[:, 0], logsumexp(scores / 2.0, axis=1), rtol=1e-6)


def test_strangers_keep_shape_and_seed():
    images = np.random.default_rng(0).integers(0, 256, (20, 9, 14, 3), np.uint8)
    made = strangers(images, np.arange(20) % 2, 4, seed=3)
    assert made.shape == (36, 9, 14, 3)
    assert made.dtype == np.uint8
    assert_array_equal(made, strangers(images, np.arange(20) % 2, 4, seed=3))


@pytest.mark.parametrize("shape", [(9, 14, 3), (9, 9)])
def test_turned_copies_are_those_of_their_pictures(shape):
    images = np.random.default_rng(0).integers(0, 256, (20, *shape), np.uint8)
    copies, rows = turned(images, 60, seed=3)
    is_square = shape[0] == shape[1]
    for copy, image in zip(copies, images[rows], strict=True):
        ways = [np.flip(image, axes) for axes in (0, 1, (0, 1))]
        ways += [np.rot90(image)] if is_square else []
        assert any(np.array_equal(copy, way) for way in ways)
    assert_array_equal(copies, turned(images, 60, seed=3)[0])


def test_pieces_are_of_two_classes_or_about_one_half():
    images = np.zeros((20, 8, 12), np.uint8)
    images[:, 2:-2, 2:-2] = np.repeat([100, 200], 10)[:, None, None]
    made = pieces(images, np.repeat([0, 1], 10), 50, seed=3)
    assert set(np.unique(made)) == {0, 100, 200}
    both = [len(np.unique(picture)) == 3 for picture in made]
    assert np.mean(both[:50]) > 0.8
    assert not any(both[50:])
    filled = (made[50:] > 0).mean() / (images > 0).mean()
    assert 0.35 < filled < 0.65


def test_letters_made_of_digits_are_refused():
    digits = load_digits()
    images = (digits.images * 15).astype(np.uint8)
    family = Pixels().fit(images[:1])
    values = family.transform(images[:700])
    fitted = LogisticRegression(max_iter=500).fit(values, digits.target[:700])
    model = CompactClassifier(family, fitted.coef_, fitted.intercept_, fitted.classes_)
    rule = learn_unknown_rule(model, images[:700], images[700:1200], unknown_label=-1)
    refusing = replace(model, unknown=rule)
    of_digits = np.mean(refusing.known(images[1200:]) < 0.01)
    # Mirrored twos, threes, fives, sixes, sevens and nines are no digits.
    mirrored = images[1200:][np.isin(digits.target[1200:], [2, 3, 5, 6, 7, 9])][:, :, ::-1]
    assert of_digits < 0.03
    assert np.mean(refusing.known(mirrored) < 0.01) > 5 * of_digits
