"""A classifier takes what its training took, whether it was just fitted or comes from a file."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

import visionshare
from visionshare import ImageClassifier, Pixels
from visionshare.classifier import EarlyExit, ExitRule, averaged
from visionshare.datasets import Augmentation
from visionshare.datasets.image_kinds import check_channels_last
from visionshare.datasets.intake import Rasters
from visionshare.datasets.training_values import TrainingValues
from visionshare.errors import InputError

N = 36
LABELS = np.array(["dark", "light", "spotted"])[np.arange(N) % 3]


def _gray(height=12, width=10):
    """Return bytes (n, height, width): dark, light and spotted images."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, (N, height, width), np.uint8)
    images[1::3] += 150
    images[2::3, 3:7, 3:7] += 190
    return images


def _color():
    gray = _gray()
    return np.stack([gray, 255 - gray, gray // 2], axis=3)


def _drawings():
    """Return ink on paper, which is cut out: lists and arrays of them are prepared alike."""
    rng = np.random.default_rng(1)
    images = np.full((N, 16, 16), 250, np.uint8)
    for i, image in enumerate(images):
        top, left = rng.integers(1, 8, 2)
        image[top : top + (2, 7, 5)[i % 3], left : left + (7, 2, 5)[i % 3]] = 20
    return images


def _cut(images):
    """Return a list of images of several sizes."""
    return [image[: 12 - i % 2, i % 3 :] for i, image in enumerate(images)]


def _pillow(images):
    return [Image.fromarray(image) for image in images]


def _written(images, folder):
    paths = [folder / f"{i}.png" for i in range(len(images))]
    for image, path in zip(images, paths, strict=True):
        Image.fromarray(image).save(path)
    return paths


# What trains, from the folder of its files; and other forms of the same images.
KINDS = {
    "bytes": (lambda _: _gray(), (list, _pillow, lambda x: x[..., None], lambda x: x.tolist())),
    "bytes of 8x8": (lambda _: _gray(8, 8), (list, _pillow)),
    "floats to 16": (lambda _: _gray() / 255 * 16, (list, np.float32)),
    "floats to 255": (lambda _: _gray().astype(float), (list, np.uint8, np.int64)),
    "fractions": (lambda _: _gray() / 255, (list, np.float32)),
    "negative floats": (lambda _: _gray() / 127 - 1, (list,)),
    "12 bits": (lambda _: _gray().astype(np.uint16) * 16, (list, np.int32)),
    "booleans": (lambda _: _gray() > 100, (list, np.uint8)),
    "one channel": (lambda _: _gray()[..., None], (list, lambda x: x[..., 0])),
    "color": (lambda _: _color(), (list, _pillow)),
    "color of fractions": (lambda _: _color() / 255, (list,)),
    "five channels": (lambda _: np.stack([_gray()] * 5, axis=3), (list,)),
    "drawings": (lambda _: list(_drawings()), (np.stack, _pillow)),
    "sizes": (lambda _: _cut(_gray()), (_pillow,)),
    "sizes of floats": (lambda _: _cut(_gray() / 255 * 16), ()),
    "gray and color": (lambda _: [*_gray()[:18], *_color()[18:]], (_pillow,)),
    "paths": (lambda folder: _written(_gray(), folder), (np.array, lambda x: [*map(str, x)])),
    "paths of drawings": (
        lambda folder: _written(_drawings(), folder),
        (lambda x: [*map(str, x)],),
    ),
    "pillow": (lambda _: _pillow(_color()), (lambda x: [np.asarray(one) for one in x],)),
    "vectors": (lambda _: _gray().reshape(N, -1) / 16, (lambda x: x.tolist(), np.float32)),
}


def _ways(model, folder):
    """Return the model as it is, and as files give it back."""
    model.save(folder / "classifier.safetensors")
    return {
        "fitted": model,
        "visionshare.load": visionshare.load(folder / "classifier.safetensors"),
        "ImageClassifier.load": ImageClassifier.load(folder / "classifier.safetensors"),
        "pickle": pickle.loads(pickle.dumps(model)),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_what_trains_is_taken_by_the_fitted_and_by_the_loaded_classifier(kind, tmp_path):
    make, other_forms = KINDS[kind]
    images = make(tmp_path)
    model = ImageClassifier(Pixels(), budget=30, n_jobs=1).fit(images, LABELS)
    expected, probabilities = model.predict(images), model.predict_proba(images)
    assert model.score(images, LABELS) > 0.6
    for way, other in _ways(model, tmp_path).items():
        for form in (images, *(form(images) for form in other_forms)):
            assert_array_equal(other.predict(form), expected, way)
            assert_array_equal(other.predict_proba(form), probabilities, way)
            assert_array_equal(other.decision_function(form), model.decision_function(images), way)
        assert other.score(images, LABELS) == model.score(images, LABELS)


@pytest.mark.parametrize("kind", ["bytes", "drawings", "color", "paths"])
def test_files_arrays_and_pictures_are_the_same_after_training_on_any_of_them(kind, tmp_path):
    images = KINDS[kind][0](tmp_path)
    source = {"bytes": _gray(), "drawings": _drawings(), "color": _color(), "paths": _gray()}[kind]
    model = ImageClassifier(Pixels(), budget=30, n_jobs=1).fit(images, LABELS)
    (tmp_path / "files").mkdir()
    forms = (source, list(source), _pillow(source), _written(source, tmp_path / "files"))
    expected = model.predict_proba(images)
    for way, other in _ways(model, tmp_path).items():
        for form in forms:
            assert_array_equal(other.predict_proba(form), expected, way)


def test_one_image_that_is_prepared_is_not_prepared_again(tmp_path):
    from visionshare.batch import read_picture

    paths = _written(_drawings(), tmp_path)
    model = ImageClassifier(Pixels(), budget=30, n_jobs=1).fit(paths, LABELS)
    loaded = _ways(model, tmp_path)["visionshare.load"]
    rasters = np.stack([read_picture(loaded, path) for path in paths])
    assert_array_equal(loaded.rasters(rasters), loaded.rasters(paths))
    assert_array_equal(loaded.predict(rasters), model.predict(paths))
    assert loaded.predict(rasters[0]).tolist() == model.predict(paths[:1]).tolist()


def test_means_of_classifiers_take_what_their_members_take(tmp_path):
    images = _gray() / 255 * 16
    members = [
        ImageClassifier(Pixels(), budget=budget, n_jobs=1).fit(images, LABELS).classifier_
        for budget in (1000, 2000)
    ]
    averaged(members).save(tmp_path / "mean.safetensors")
    loaded = visionshare.load(tmp_path / "mean.safetensors")
    scores = np.mean([member.decision_function(images) for member in members], axis=0)
    for form in (images, list(images), [image.repeat(2, 0) for image in images]):
        assert_allclose(loaded.decision_function(form), scores, rtol=1e-5, atol=1e-5)
    of_fractions = replace(members[1], values=TrainingValues(0.0, 1.0, "other"))
    with pytest.raises(InputError, match="one range of values"):
        averaged([members[0], of_fractions])


def test_early_exit_takes_what_the_classifier_takes(tmp_path):
    paths = _written(_drawings(), tmp_path)
    model = ImageClassifier(Pixels(), budget=30, n_jobs=1).fit(paths, LABELS)
    rule = ExitRule((1,), (0.5,))
    replace(model.classifier_, exit_rule=rule).save(tmp_path / "early.safetensors")
    early = EarlyExit(visionshare.load(tmp_path / "early.safetensors"))
    expected, stops = early.run(early.classifier.rasters(paths).view(Rasters))
    for form in (paths, _drawings(), list(_drawings()), _pillow(_drawings())):
        assert_array_equal(early.decision_function(form), expected)
        assert_array_equal(early.stops(form), stops)
    assert early.score(paths, LABELS) == early.score(_drawings(), LABELS)
    assert early.measure(paths, LABELS).errors == (early.predict(paths) != LABELS).sum()


# ---- the scale of values


@pytest.mark.parametrize(
    ("trained", "given"),
    [
        ("bytes", lambda x: x / 255),
        ("fractions", lambda x: x * 255),
        ("fractions", lambda x: (x * 255).astype(np.uint8)),
        ("color of fractions", lambda x: x * 255),
    ],
)
def test_values_that_are_certainly_of_another_unit_are_refused(trained, given, tmp_path):
    images = KINDS[trained][0](tmp_path)
    model = ImageClassifier(Pixels(), budget=30, n_jobs=1).fit(images, LABELS)
    for other in _ways(model, tmp_path).values():
        for form in (given(images), list(given(images))):
            with pytest.raises(InputError, match="as in training"):
                other.predict(form)


@pytest.mark.parametrize(
    ("trained", "given"),
    [
        ("floats to 16", lambda x: x / 16),
        ("floats to 16", lambda x: x * 255 / 16),
        ("floats to 16", lambda x: (x * 255 / 16).astype(np.uint8)),
        ("floats to 255", lambda x: x / 255),
        ("12 bits", lambda x: x // 16 // 16),
        ("negative floats", lambda x: x * 127),
    ],
)
def test_values_that_seem_to_be_of_another_scale_are_warned_about(trained, given, tmp_path):
    images = KINDS[trained][0](tmp_path)
    model = ImageClassifier(Pixels(), budget=30, n_jobs=1).fit(images, LABELS)
    for other in _ways(model, tmp_path).values():
        for form in (given(images), list(given(images))):
            with pytest.warns(UserWarning, match="those of training went from"):
                other.predict(form)


# ---- channels first


@pytest.mark.parametrize("shape", [(3, 12, 10), (1, 12, 10), (3, 5, 5), (4, 12, 12), (5, 20, 20)])
def test_channels_first_are_noticed_in_training(shape):
    images = np.zeros((N, *shape), np.uint8)
    for given in (images, list(images), images / 255):
        with pytest.raises(InputError, match=r"channels last.*transpose\((0, 2, 3, 1|1, 2, 0)\)"):
            ImageClassifier(Pixels(), n_jobs=1).fit(given, LABELS)


@pytest.mark.parametrize(
    ("shape", "n_channels"),
    [
        ((3, 3, 3), None), ((3, 12, 3), None), ((1, 12, 1), None), ((4, 8, 5), None),
        ((16, 16, 64), None), ((3, 12, 16), 16), ((1, 5, 20), 20),
    ],
)  # fmt: skip
def test_shapes_that_may_have_channels_last_are_taken(shape, n_channels):
    check_channels_last(shape, n_channels)
    check_channels_last((N, *shape), n_channels)


@pytest.mark.parametrize("kind", ["bytes", "color", "five channels"])
def test_channels_first_are_noticed_in_use(kind, tmp_path):
    images = KINDS[kind][0](tmp_path)
    model = ImageClassifier(Pixels(), budget=30, n_jobs=1).fit(images, LABELS)
    first = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    for other in _ways(model, tmp_path).values():
        for given in (first, list(first)):
            with pytest.raises(InputError, match="channels last"):
                other.predict(given)
        assert_array_equal(other.predict(first.transpose(0, 2, 3, 1)), model.predict(images))


def test_one_image_with_channels_first_is_warned_about(tmp_path):
    images = _color()
    model = ImageClassifier(Pixels(), budget=30, n_jobs=1).fit(images, LABELS)
    for other in _ways(model, tmp_path).values():
        with pytest.warns(UserWarning, match="3 gray images; if it is one image"):
            other.predict(images[0].transpose(2, 0, 1))


# ---- pictures of plain colors


@pytest.mark.parametrize("colors", ["gray", "rgb"])
def test_classes_of_plain_colors_are_learned(colors):
    y = np.arange(24) % 2
    images = np.zeros((24, 12, 12, 3), np.uint8)
    images[y == 0] = 60
    images[y == 1] = 200 if colors == "gray" else (200, 0, 60)
    given = images[..., 0] if colors == "gray" else images
    model = ImageClassifier(augment=False, budget=4000, n_jobs=1).fit(given, y)
    assert model.score(given, y) == 1


def test_images_that_are_all_the_same_are_refused():
    y = np.arange(10) % 2
    for images in (np.full((10, 12, 12), 7, np.uint8), np.zeros((10, 12, 12)), [np.eye(9)] * 10):
        for options in ({}, {"augment": Augmentation()}, {"time": 1.0}, {"features": Pixels()}):
            with pytest.raises(InputError, match="images that are all the same"):
                ImageClassifier(**options).fit(images, y)
