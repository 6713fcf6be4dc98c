"""Scores of predictors as features: every rule, every kind of source, files and wrong sources."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.multiclass import OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import visionshare
from visionshare import (
    CompactClassifier,
    PatchTemplates,
    Pixels,
    ShareBoost,
    SourceClassifiers,
    UnionOfFamilies,
)
from visionshare.columns import ArrayColumns
from visionshare.errors import ClassifierFileError, InputError
from visionshare.generators import family_from_state
from visionshare.testing import check_family

IMAGES = np.random.default_rng(0).integers(0, 256, (60, 6, 5), np.uint8)
ROWS = IMAGES.reshape(60, 30)
Y = (IMAGES[:, 2, 2] // 86).astype(np.int64)


def _compact(family, n=7, k=3, seed=1, classes=None):
    rng = np.random.default_rng(seed)
    fitted = family.fit(IMAGES)
    chosen = fitted.take(rng.permutation(fitted.n_features_)[:n])
    weights, intercept = rng.normal(size=(k, n)), rng.normal(size=k)
    return CompactClassifier(
        chosen, weights, intercept, np.arange(k) if classes is None else classes
    )


@pytest.fixture(scope="module")
def patches():
    classes = np.array(["a", "b", "c"])
    return _compact(PatchTemplates(3, 5, 2, (2.0,), n_patches=800), classes=classes)


@pytest.fixture(scope="module")
def pixels():
    return _compact(Pixels(), n=20, k=2)


@pytest.fixture(scope="module")
def family(patches, pixels):
    return SourceClassifiers((patches, pixels)).fit(IMAGES)


def test_every_rule_of_a_family(patches, pixels):
    check_family(SourceClassifiers([patches]), IMAGES)
    check_family(SourceClassifiers((pixels, patches)), IMAGES)
    inside = _compact(SourceClassifiers([patches, pixels]), n=4)
    check_family(UnionOfFamilies([SourceClassifiers([inside, patches]), Pixels()]), IMAGES)


def test_scores_are_those_of_the_classifiers(family, patches, pixels):
    assert family.n_features_ == 5
    both = np.hstack([patches.decision_function(IMAGES), pixels.decision_function(IMAGES)])
    assert_allclose(family.transform(IMAGES), both, rtol=1e-5, atol=1e-6)
    assert family.macs() == patches.macs + pixels.macs
    assert family.macs(np.array([4, 3])) == pixels.macs
    assert family.added_macs(np.array([3]), np.arange(5)).tolist() == [patches.macs] * 3 + [0, 0]
    assert [block.tolist() for block in family.block_ids(np.array([4, 0, 3]))] == [[0], [4, 3]]
    assert family.describe(1) == {
        "kind": "source", "source": 0, "name": "CompactClassifier", "output": 1, "class": "b",
    }  # fmt: skip


def test_a_restriction_keeps_what_it_needs(family, pixels):
    taken = family.take([4, 4])
    assert len(taken.sources) == 1
    assert taken.sources[0] is pixels
    assert taken.macs() == pixels.macs
    _, arrays = taken.to_state()
    assert set(arrays) == {"layout", "weights.0", "intercept.0", "0.ids"}


def test_a_bit_depends_on_no_batch(family):
    columns = family.transform_columns(IMAGES)
    for size in (1, 7, 33):
        parts = [family.transform_columns(IMAGES[i : i + size]) for i in range(0, 60, size)]
        assert_array_equal(np.hstack(parts), columns)


def test_a_classifier_of_classifiers_lives_in_a_file(family, tmp_path):
    union = UnionOfFamilies([family, Pixels()]).fit(IMAGES)
    model = ShareBoost(rounds=5).fit(ArrayColumns.from_family(union, IMAGES), Y)
    classifier = model.to_classifier(union)
    classifier.save(tmp_path / "c.safetensors")
    again = visionshare.load(tmp_path / "c.safetensors")
    assert_array_equal(again.decision_function(IMAGES), classifier.decision_function(IMAGES))
    assert again.macs == classifier.macs
    # What a file gave is a source as good as any.
    outer = SourceClassifiers([again]).fit(IMAGES)
    assert_allclose(outer.transform(IMAGES), again.decision_function(IMAGES), rtol=1e-5, atol=1e-5)
    back = family_from_state(*outer.to_state())
    assert_array_equal(back.transform(IMAGES), outer.transform(IMAGES))
    once_more = SourceClassifiers(back.sources).fit(IMAGES)
    assert json.dumps(once_more.to_state()[0]) == json.dumps(outer.to_state()[0])


def test_a_forest_in_memory(tmp_path):
    forest = RandomForestClassifier(20, random_state=0).fit(ROWS, Y)
    union = UnionOfFamilies([SourceClassifiers([forest]), Pixels()]).fit(IMAGES)
    assert_array_equal(
        union.transform(IMAGES)[:, :3], forest.predict_proba(ROWS).astype(np.float32)
    )
    columns = ArrayColumns.from_family(union, IMAGES)
    model = ShareBoost(rounds=4, search_options={"per": "macs"}).fit(columns, Y)
    classifier = model.to_classifier(union)
    assert np.mean(classifier.predict(IMAGES) == Y) > 0.9
    assert union.describe(2)["class"] == 2
    union.take([1]).macs()
    assert union.macs(np.array([0])) == 30
    with pytest.raises(InputError, match=r"RandomForestClassifier.*to_classifier"):
        SourceClassifiers([forest]).fit(IMAGES).take([0]).to_state()
    with pytest.raises(InputError, match="RandomForestClassifier"):
        CompactClassifier(union.take([0]), [[1], [0]], [0, 0], [0, 1]).save(tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("source", "scores", "method"),
    [
        (LogisticRegression(max_iter=500), 3, "decision_function"),
        (Perceptron(), 3, "decision_function"),
        (Ridge(), 1, "predict"),
        (RandomForestClassifier(5, random_state=0), 3, "predict_proba"),
        (ShareBoost(rounds=3), 3, "decision_function"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_estimators_are_asked_for_scores(source, scores, method):
    pipeline = make_pipeline(StandardScaler(), source).fit(ROWS.astype(float), Y)
    given = getattr(pipeline, method)(ROWS).reshape(60, -1).astype(np.float32)
    family = SourceClassifiers([pipeline]).fit(IMAGES)
    assert family.n_features_ == scores
    assert_allclose(family.transform(IMAGES), given, rtol=1e-5, atol=1e-5)
    assert ("class" in family.describe(0)) == (method != "predict")
    vectors = SourceClassifiers([pipeline]).fit(ROWS)
    assert_allclose(vectors.transform(ROWS), given, rtol=1e-5, atol=1e-5)


def test_two_classes_with_one_score_name_the_second():
    model = LogisticRegression(max_iter=500).fit(ROWS / 255, np.where(Y > 0, "yes", "no"))
    family = SourceClassifiers([model]).fit(IMAGES)
    assert family.n_features_ == 1
    assert family.describe(0)["class"] == "yes"


def _brightness(images):
    return images.mean(axis=(1, 2))


class _Counted:
    macs = 77

    def __init__(self):
        self.calls = 0

    def __call__(self, images):
        self.calls += 1
        return np.stack([images[:, 0, 0], images[:, 1, 1]], axis=1)


def test_any_function_is_a_source_and_says_what_it_costs():
    counted = _Counted()
    family = SourceClassifiers([_brightness, counted, lambda images: images[:, 0]]).fit(IMAGES)
    assert family.n_features_ == 1 + 2 + 5
    assert [family.describe(j)["name"] for j in (0, 2, 7)] == [
        "_brightness",
        "_Counted",
        "<lambda>",
    ]
    assert counted.calls == 1
    assert family.transform(IMAGES, [2, 0, 1]).tolist()[3] == [
        IMAGES[3, 1, 1], pytest.approx(IMAGES[3].mean()), IMAGES[3, 0, 0],
    ]  # fmt: skip
    assert counted.calls == 2
    assert family.macs() == 30 + 77 + 30
    assert SourceClassifiers([_brightness, counted], 5).fit(IMAGES).macs() == 5 + 77
    assert family.transform(IMAGES[:0]).shape == (0, 8)


def test_a_copy_has_the_same_sources(patches):
    forest = RandomForestClassifier(3, random_state=0).fit(ROWS, Y)
    family = SourceClassifiers([forest, patches], macs_per_source=4)
    copied = clone(family)
    assert copied.sources[0] is forest
    assert copied.macs_per_source == 4
    assert copied.fit(IMAGES).n_features_ == 6


def _nan(images):
    return np.full(len(images), np.nan)


@pytest.mark.parametrize(
    "sources",
    [
        (), None, _brightness, [3], ["classifier.safetensors"], [Pixels()], [CompactClassifier],
        [lambda images: "score"], [lambda images: 1.0], [lambda images: images],
        [lambda images: images[:1, 0]], [_nan], [LogisticRegression()],
        [OutputCodeClassifier(Perceptron(), random_state=0).fit(ROWS, Y)],
        [Ridge().fit(ROWS[:, :9], Y)],
        [_compact(Pixels()), lambda images: None],
    ],
)  # fmt: skip
def test_what_is_no_source_is_named(sources):
    with pytest.raises(InputError, match=r"^sources: got"):
        SourceClassifiers(sources).fit(IMAGES)


def test_other_wrong_things_are_named(pixels):
    for cost in (-1, 1.5, True, "few"):
        with pytest.raises(InputError, match=r"^macs_per_source: got"):
            SourceClassifiers([pixels], cost).check_parameters()
    with pytest.raises(InputError, match=r"images of shape \(5, 6\)"):
        SourceClassifiers([pixels]).fit(IMAGES.transpose(0, 2, 1))
    with pytest.raises(InputError, match=r"^images: got"):
        SourceClassifiers([pixels]).fit(IMAGES[:0])
    changing = SourceClassifiers([lambda images: images[:, : len(images), 0]]).fit(IMAGES)
    with pytest.raises(InputError, match="3 scores per image"):
        changing.transform(IMAGES[:2])
    large = SourceClassifiers([lambda images: images[:, 0, 0] * 1e6]).fit(IMAGES)
    assert large.transform_columns(IMAGES).max() > 65504
    with pytest.raises(InputError, match="65504"):
        large.transform_columns(IMAGES, dtype="float16")
    huge = SourceClassifiers([lambda images: images[:, 0, 0] * 1e300]).fit(IMAGES)
    with pytest.raises(InputError, match="finite scores"):
        huge.transform(IMAGES)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3}, {"image_shape": [5, 6]}, {"parameters": None}, {"parts": None},
        {"parameters": {"macs_per_source": -3}}, {"parts": [{}, {}]}, {"names": None},
        {"names": ["a"]}, {"names": [1, 2]}, {"classes": [None]}, {"classes": [[1], None]},
        {"classes": [[[1], 2, 3], None]}, {"layout": None}, {"layout": np.full((5, 2), 9)},
        {"layout": np.full((5, 2), -1)}, {"layout": np.zeros((5, 3), np.int64)},
        {"layout": np.array([[1, 2]])}, {"weights.0": None}, {"weights.1": np.zeros(3)},
        {"weights.0": np.full((3, 7), np.nan, np.float32)},
        {"weights.0": np.zeros((3, 6), np.float32)}, {"weights.0": np.zeros((0, 7), np.float32)},
        {"weights.0": np.zeros((), np.float32)}, {"intercept.0": np.zeros(2, np.float32)},
        {"0.layout": None},
    ],
    ids=str,
)  # fmt: skip
def test_hostile_states_are_refused(change, family):
    state, arrays = family.to_state()
    for key, value in change.items():
        (arrays if key in arrays else state)[key] = value
    with pytest.raises(InputError):
        family_from_state(state, arrays)


def test_sources_deep_inside_each_other_are_refused(patches, tmp_path):
    model = patches
    for _ in range(8):
        model = _compact(SourceClassifiers([model]), n=3)
    model.save(tmp_path / "eight.safetensors")
    assert visionshare.load(tmp_path / "eight.safetensors").macs == model.macs
    model = _compact(SourceClassifiers([model]), n=3)
    with pytest.raises(InputError, match="levels"):
        model.save(tmp_path / "nine.safetensors")
    data = (tmp_path / "eight.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(data[:-9])
    with pytest.raises(ClassifierFileError):
        visionshare.load(tmp_path / "cut.safetensors")
