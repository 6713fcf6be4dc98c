"""Maps: what the classifier says window by window, however they are computed."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from visionshare import (
    CompactClassifier,
    GaborBank,
    PatchTemplates,
    Pixels,
    RandomFourier,
    UnionOfFamilies,
)
from visionshare.cli.main import main
from visionshare.errors import InputError
from visionshare.reading import label_map, score_map
from visionshare.reading.segmentation import class_colors, majority, overlay

rng = np.random.default_rng(0)
INSIDE = {"border": "inside", "sigmas": (0.7, 3.0), "reach": 3}
FAMILIES = {
    "shared sums": GaborBank(9, phases=True, **INSIDE),
    "shared maxima, whole filters to mean 0": GaborBank(
        9, pooling="max", step=1, zero_mean=True, **INSIDE
    ),
    "shared means": GaborBank(9, pooling="mean", step=3, **INSIDE),
    "cut filters": GaborBank(9, sigmas=(0.7, 3.0)),
    "patches": PatchTemplates(3, 6, 2, (2.0,), n_patches=500),
    "pixels": Pixels(),
    "a union, a part of it shared": UnionOfFamilies(
        [GaborBank(4, **INSIDE), RandomFourier(3), Pixels()]
    ),
}
SHAPES = {"gray": (10, 9), "one channel": (9, 10, 1), "color": (10, 10, 3)}


def _classifier(name, shape=(10, 9), dtype=np.uint8, k=4):
    images = rng.integers(0, 256, (60, *shape), np.uint8)
    if dtype != np.uint8:
        images = rng.random((60, *shape), dtype)
    family = FAMILIES[name].fit(images)
    values = family.transform(images)
    weights = np.random.default_rng(1).normal(size=(k, family.n_features_)) / values.std(axis=0)
    intercept = -weights @ values.mean(axis=0)
    return CompactClassifier(family, weights, intercept, np.array(list("abcdef"[:k])))


def _window_by_window(classifier, image, step):
    """The plain twin: a window cut out around each pixel, scored alone."""
    height, width = classifier.image_shape[:2]
    pads = [(height // 2, height), (width // 2, width), (0, 0)][: image.ndim]
    padded = np.pad(image, pads, mode="reflect")
    rows, cols = (range(min(step // 2, s - 1), s, step) for s in image.shape[:2])
    windows = [padded[y : y + height, x : x + width] for y in rows for x in cols]
    scores = classifier.decision_function(np.array(windows))
    return scores.reshape(len(rows), len(cols), -1), classifier.predict(np.array(windows))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("step", [1, 3])
def test_a_map_has_the_scores_of_the_windows(name, step):
    classifier = _classifier(name)
    image = rng.integers(0, 256, (17, 14), np.uint8)
    scores, classes = _window_by_window(classifier, image, step)
    assert_allclose(score_map(classifier, image, step), scores, atol=2e-3, rtol=1e-4)
    labels = label_map(classifier, image, step)
    assert labels.shape == image.shape
    nearest = labels[step // 2 :: step, step // 2 :: step]
    assert_array_equal(classifier.classes_[nearest].ravel(), classes)


@pytest.mark.parametrize("shape", SHAPES)
def test_channels_and_floats(shape):
    for dtype in (np.uint8, np.float32):
        classifier = _classifier("shared sums", SHAPES[shape], dtype)
        image = rng.integers(0, 256, (13, 12, *SHAPES[shape][2:]), np.uint8)
        if dtype != np.uint8:
            image = rng.random(image.shape, dtype)
        scores, _ = _window_by_window(classifier, image, 2)
        assert_allclose(score_map(classifier, image, 2), scores, atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_depend_neither_on_memory_nor_on_threads(name):
    classifier = _classifier(name)
    image = rng.integers(0, 256, (23, 31), np.uint8)
    for step in (1, 2):
        whole = score_map(classifier, image, step)
        for memory, n_jobs in (("1KB", 1), ("20KB", 2), ("256MiB", 2)):
            assert_array_equal(score_map(classifier, image, step, n_jobs, memory), whole)


def test_an_image_of_the_windows_size_and_steps_beyond_it():
    classifier = _classifier("shared sums")
    image = rng.integers(0, 256, (10, 9), np.uint8)
    scores, _ = _window_by_window(classifier, image, 40)
    assert scores.shape[:2] == (1, 1)
    assert_allclose(score_map(classifier, image, 40), scores, atol=2e-3, rtol=1e-4)
    assert len(np.unique(label_map(classifier, image, 40))) == 1


def test_families_say_whether_they_share_windows():
    assert _classifier("shared sums").family.shares_windows
    assert _classifier("a union, a part of it shared").family.shares_windows
    for name in ("cut filters", "patches", "pixels"):
        assert not _classifier(name).family.shares_windows
    vectors = GaborBank(3, border="inside").fit(np.zeros((2, 9)))
    assert not vectors.shares_windows


def test_windows_anywhere():
    family = GaborBank(7, step=2, **INSIDE).fit(np.zeros((1, 10, 9)))
    image = rng.random((40, 30)).astype(np.float32)
    ys, xs = np.arange(3, 28, 5), np.arange(1, 20, 2)
    features = family.transform_windows(image, ys, xs)
    windows = np.array([image[y : y + 10, x : x + 9] for y in ys for x in xs])
    assert_allclose(features.reshape(7, -1), family.transform(windows).T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("side", [1, 3, 5, 13, 31, 41, 100_001])
def test_majority_is_a_count(side):
    labels = rng.integers(0, 4, (12, 15))
    winners, half = majority(labels, side, 4), side // 2
    for y in range(12):
        for x in range(15):
            square = labels[max(0, y - half) : y + half + 1, max(0, x - half) : x + half + 1]
            counts = np.bincount(square.ravel(), minlength=4)
            label = labels[y, x]
            expected = label if counts[label] == counts.max() else int(np.argmax(counts))
            assert winners[y, x] == expected


def test_a_majority_has_a_pixel_in_the_middle():
    with pytest.raises(InputError, match=r"^side: got 2"):
        majority(np.zeros((3, 3), int), 2, 1)


def test_colors_are_fixed_and_different():
    colors = class_colors(60)
    assert len(np.unique(colors, axis=0)) == 60
    assert_array_equal(class_colors(5), colors[:5])
    labels = np.array([[0, 1]])
    for image in (np.full((1, 2), 100, np.uint8), np.full((1, 2, 3), 100, np.uint8)):
        mixed = overlay(image, labels, 2)
        assert mixed.shape == (1, 2, 3)
        assert mixed[0, 0].tolist() == [55, 106, 135]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"step": 0}, "step"), ({"step": 1.5}, "step"), ({"step": True}, "step"),
        ({"smooth": 4}, "smooth"), ({"smooth": 0}, "smooth"), ({"memory": "much"}, "memory"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"image": np.zeros((9, 30))}, "image: .*at least 10×9"),
        ({"image": np.zeros((30, 8))}, "image"), ({"image": np.zeros((30, 30, 3))}, "image"),
        ({"image": [[0.0]]}, "image: got 'list'"), ({"image": np.full((30, 30), np.nan)}, "images"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(arguments, word):
    classifier = _classifier("shared sums")
    with pytest.raises(InputError, match=f"^{word}"):
        label_map(classifier, **{"image": np.zeros((30, 30)), **arguments})


def test_classifiers_of_vectors_are_refused():
    family = Pixels().fit(np.zeros((1, 4)))
    classifier = CompactClassifier(family, np.zeros((2, 4)), np.zeros(2), np.array([0, 1]))
    with pytest.raises(InputError, match=r"^classifier: .*vectors"):
        label_map(classifier, np.zeros((9, 9)))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_command_writes_map_and_overlay(shape, tmp_path, capsys):
    classifier = _classifier("shared sums", SHAPES[shape], k=3)
    classifier.save(tmp_path / "c.safetensors")
    image = rng.integers(0, 256, (25, 30, *((3,) if shape == "color" else ())), np.uint8)
    Image.fromarray(image).save(tmp_path / "i.png")
    inputs = [str(tmp_path / name) for name in ("c.safetensors", "i.png")]
    options = ["--out", str(tmp_path / "m.png"), "--overlay", str(tmp_path / "o.png")]
    assert main(["segment", *inputs, *options, "--smooth", "3", "--step", "2", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    expected = label_map(classifier, image.reshape(25, 30, *SHAPES[shape][2:]), 2, 3)
    with Image.open(tmp_path / "m.png") as written:
        assert written.mode == "P"
        assert_array_equal(np.asarray(written), expected)
        assert written.convert("RGB").getpixel((0, 0)) == tuple(class_colors(3)[expected[0, 0]])
    with Image.open(tmp_path / "o.png") as written:
        assert_array_equal(np.asarray(written), overlay(image, expected, 3))
    assert [c["class"] for c in figures["classes"]] == ["a", "b", "c"]
    assert figures["classes"][0]["color"] == "#0072b2"
    assert abs(sum(c["share"] for c in figures["classes"]) - 1) < 1e-5
    assert main(["segment", *inputs, "--out", str(tmp_path / "m.png")]) == 0
    assert "#0072b2" in capsys.readouterr().out


def test_the_command_names_what_is_wrong(tmp_path, capsys):
    _classifier("shared sums").save(tmp_path / "c.safetensors")
    family = Pixels().fit(np.zeros((1, 4)))
    vectors = CompactClassifier(family, np.zeros((2, 4)), np.zeros(2), np.array([0, 1]))
    vectors.save(tmp_path / "v.safetensors")
    Image.new("L", (40, 40)).save(tmp_path / "i.png")
    Image.new("L", (5, 40)).save(tmp_path / "small.png")
    good = {"classifier": "c.safetensors", "image": "i.png", "--out": "m.png"}
    for changed, word in (
        ({"--out": "m.jpg"}, "--out"), ({"--overlay": "m"}, "--overlay"),
        ({"--smooth": "2"}, "smooth"), ({"--step": "0"}, "step"), ({"--jobs": "0"}, "--jobs"),
        ({"image": "small.png"}, "image"), ({"image": "none.png"}, "none.png"),
        ({"classifier": "v.safetensors"}, "vectors"), ({"--memory": "much"}, "memory"),
    ):  # fmt: skip
        options = {**good, **changed}
        names = [str(tmp_path / options.pop(name)) for name in ("classifier", "image")]
        for name in ("--out", "--overlay"):
            if name in options:
                options[name] = str(tmp_path / options[name])
        pairs = [word for pair in options.items() for word in pair]
        assert main(["segment", *names, *pairs]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert word in error
        assert error.count("\n") == 1
    assert not (tmp_path / "m.png").exists()
