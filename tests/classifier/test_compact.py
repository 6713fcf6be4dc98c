"""The compact classifier and its file: prefixes, cost, hostile files."""

import contextlib
import json
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import visionshare
from visionshare import (
    CompactClassifier,
    Deslant,
    Network,
    PatchTemplates,
    Pixels,
    Products,
    ShareBoost,
    Templates,
    Units,
)
from visionshare.classifier import ExitRule
from visionshare.classifier.file_format import write_fields
from visionshare.columns import ArrayColumns
from visionshare.datasets import Preprocessing
from visionshare.errors import ClassifierFileError, DataError, InputError
from visionshare.files.fingerprints import spec_fingerprint


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 60, (240, 8, 8), np.uint8)
    pixels[::2, :4] += 150
    pixels[::3, :, :4] += 40
    return pixels


@pytest.fixture(scope="module")
def model(images):
    y = (np.arange(240) % 2) + (np.arange(240) % 3 == 0)
    family = PatchTemplates(3, 12, 2, (2.0,), n_patches=2000).fit(images)
    learner = ShareBoost(rounds=6).fit(ArrayColumns.from_family(family, images), y)
    return learner.to_classifier(family, ["a", "b", "c"], {"note": "test"})


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("classifier") / "c.safetensors"
    model.save(path)
    return path


def test_one_image_is_a_batch_of_one(model, images):
    scores = model.decision_function(images)
    assert scores.shape == (240, 3)
    assert scores.dtype == np.float32
    assert_allclose(model.decision_function(images[7])[0], scores[7], rtol=1e-5, atol=1e-6)
    assert_array_equal(model.decision_function(images, n_jobs=2), scores)
    assert model.predict(images).tolist()[:3] == model.predict(images[:3]).tolist()


def test_probabilities_are_the_softmax_at_the_temperature(model, images):
    scores = model.decision_function(images).astype(float) / model.temperature
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(images), expected)


def test_every_prefix_is_a_classifier(model, images):
    values = model.family.transform(images)
    for t, step in enumerate(model.path, start=1):
        prefix = model.at(t)
        expected = values[:, : step.n_features] @ step.weights.T + step.intercept
        assert_allclose(prefix.decision_function(images), expected, rtol=1e-4, atol=1e-4)
        assert prefix.macs == step.macs
    for bad in (0, 7, 1.5, True):
        with pytest.raises(InputError, match=r"^t: got"):
            model.at(bad)


def test_load_gives_the_same_classifier(model, saved, images):
    again = visionshare.load(saved)
    assert_array_equal(again.decision_function(images), model.decision_function(images))
    assert again.summary() == model.summary()
    assert again.classes_.tolist() == ["a", "b", "c"]
    for one, two in zip(again.path, model.path, strict=True):
        assert_array_equal(one.weights, two.weights)
        # A file keeps no seconds: the same training writes the same bytes.
        plain = {"weights": None, "intercept": None, "seconds": 0.0}
        assert one.seconds == 0.0
        assert replace(one, weights=None, intercept=None) == replace(two, **plain)
    assert [f["kind"] for f in again.features] == ["patch"] * 6
    assert set(again.features[0]["weights"]) == {"a", "b", "c"}


def test_pixels_and_integer_classes_are_saved(images, tmp_path):
    family = Pixels().fit(images)
    y = np.arange(240) % 2
    learner = ShareBoost(rounds=3).fit(ArrayColumns.from_family(family, images), y)
    learner.to_classifier(family).save(tmp_path / "p.safetensors")
    again = visionshare.load(tmp_path / "p.safetensors")
    assert_array_equal(again.predict(images), learner.predict(family.transform(images)))
    assert again.classes_.dtype == np.int64


@pytest.mark.parametrize("classes", [[0.0, 1.0, np.nan], ["a", "b", "a"], [b"a", b"b", b"c"]])
def test_what_could_not_be_loaded_is_not_saved(classes, model, tmp_path):
    with pytest.raises(InputError, match=r"^classes: got"):
        replace(model, classes=np.array(classes)).save(tmp_path / "c.safetensors")
    assert not list(tmp_path.iterdir())


def test_an_exit_rule_of_numpy_numbers_is_saved(model, tmp_path):
    rule = ExitRule(tuple(np.array([2, 4])), tuple(np.array([1.0, 0.5], np.float32)))
    replace(model, exit_rule=rule).save(tmp_path / "c.safetensors")
    assert visionshare.load(tmp_path / "c.safetensors").exit_rule == ExitRule((2, 4), (1.0, 0.5))


def test_a_prefix_can_be_saved(model, images, tmp_path):
    model.at(2).save(tmp_path / "short.safetensors")
    again = visionshare.load(tmp_path / "short.safetensors")
    assert_array_equal(again.decision_function(images), model.at(2).decision_function(images))


def test_bad_images_are_named(model, images):
    not_finite = np.full((2, 8, 8), np.nan)
    for bad in (images[0, :5], images[None], not_finite, np.zeros((2, 8, 8, 5))):
        with pytest.raises(InputError, match=r"^images: got"):
            model.predict(bad)
    with pytest.raises(DataError, match="no-such-file"):
        model.predict(np.array(["no-such-file"]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", np.zeros((2, 6))), ("intercept", np.zeros(2)), ("classes", np.arange(4)),
        ("weights", np.full((3, 6), np.nan)), ("temperature", 0.0), ("temperature", np.inf),
    ],
)  # fmt: skip
def test_bad_fields_are_refused(model, name, value):
    parts = {"weights": model.weights, "intercept": model.intercept, "classes": model.classes_}
    # As many weights and intercepts as classes: three classes are too few for arange(4).
    named = "weights" if name == "classes" else name
    with pytest.raises(InputError, match=rf"^{named}: got"):
        CompactClassifier(model.family, **{**parts, name: value})


FLIPS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files_are_typed_errors_or_valid(saved, tmp_path, images, data):
    content = bytearray(saved.read_bytes())
    kind = data.draw(st.sampled_from(["cut", "flip", "insert", "random", "sealed"]))
    if kind == "cut":
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    elif kind == "flip":
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    elif kind == "insert":
        position = data.draw(st.integers(0, len(content)))
        content[position:position] = data.draw(st.binary(min_size=1, max_size=9))
    elif kind == "random":
        content = bytearray(data.draw(st.binary(max_size=300)))
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(content)
    if kind == "sealed":
        _rewritten(saved, path, lambda header, table: None, data.draw(FLIPS))
    problem = str(path)
    try:
        scores = visionshare.load(path).decision_function(images[:2])
        assert scores.shape[0] == 2
    except ClassifierFileError as error:
        problem = str(error)
    except InputError as error:
        # A flipped bit can leave a valid file of other images.
        problem = f"{path}: {error}" if error.argument == "images" else ""
    assert str(path) in problem
    assert "\n" not in problem


def _rewritten(saved, path, change, flips=()):
    content = bytearray(saved.read_bytes())
    length = int.from_bytes(content[:8], "little")
    for position, bits in flips:
        content[8 + length + position % (len(content) - 8 - length)] ^= bits
    table = json.loads(content[8 : 8 + length])
    header = json.loads(table["__metadata__"]["visionshare"])
    change(header, table)
    about = table.pop("__metadata__", None)
    with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError):
        header["sha256"] = _sealed(content, header, table)
    if about is not None:
        table["__metadata__"] = about
    if "__metadata__" in table:
        table["__metadata__"]["visionshare"] = json.dumps(header)
    text = json.dumps(table).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def _sealed(content, header, table):
    """Return the checksum that an attacker who knows the format would write."""
    kinds, arrays = {"F32": "<f4", "I64": "<i8"}, {}
    body = content[8 + int.from_bytes(content[:8], "little") :]
    for name, entry in table.items():
        start, stop = entry["data_offsets"]
        arrays[name] = np.frombuffer(body[start:stop], kinds[entry["dtype"]]).reshape(
            entry["shape"]
        )
    return spec_fingerprint({k: v for k, v in header.items() if k != "sha256"}, arrays)


HOSTILE = {
    "version": lambda h, t: h.update(version=3),
    "family": lambda h, t: h["family"].update(family="unknown"),
    "module": lambda h, t: h["family"].update(family="os:system"),
    "huge image": lambda h, t: h["family"].update(image_shape=[65536, 65536]),
    "classes": lambda h, t: h.update(classes=["a", "a", "b"]),
    "mixed classes": lambda h, t: h.update(classes=["a", 1, "b"]),
    "temperature": lambda h, t: h.update(temperature="hot"),
    "no end": lambda h, t: h["family"].update(step=2**63),
    "endless": lambda h, t: h.update(temperature=float("inf")),
    "path": lambda h, t: h.update(path=[{}]),
    "path numbers": lambda h, t: h["path"][0].update(n_features=10**12),
    "metadata": lambda h, t: h.update(metadata=None),
    "no header": lambda h, t: t.pop("__metadata__"),
    "shape": lambda h, t: t["weights"].update(shape=[10**9, 10**9]),
    "negative": lambda h, t: t["weights"].update(shape=[-3, -6]),
    "offsets": lambda h, t: t["weights"].update(data_offsets=[0, 10**15]),
    "dtype": lambda h, t: t["weights"].update(dtype="F64"),
    "missing": lambda h, t: t.pop("family.templates"),
    "list": lambda h, t: t.update(weights=[]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_one_line(name, saved, tmp_path):
    path = tmp_path / "hostile.safetensors"
    _rewritten(saved, path, HOSTILE[name])
    with pytest.raises(ClassifierFileError) as caught:
        visionshare.load(path)
    assert "\n" not in str(caught.value)
    # The checksum is right: it is the content that is refused.
    assert "sha256" not in str(caught.value)


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(ClassifierFileError, match="no file named"):
        visionshare.load(tmp_path / "none")
    with pytest.raises(ClassifierFileError):
        visionshare.load(tmp_path)
    (tmp_path / "p").write_bytes((2**60).to_bytes(8, "little") + b"{}")
    with pytest.raises(ClassifierFileError, match="invalid visionshare-classifier file"):
        visionshare.load(tmp_path / "p")


def test_preprocessing_is_saved_unless_it_is_the_default(model, tmp_path, images):
    steps = Preprocessing("automatic", crop=True, fit="box", margin=1, center="mass")
    path = tmp_path / "a.safetensors"
    replace(model, preprocessing=steps).save(path)
    read = visionshare.load(path)
    assert read.preprocessing == steps
    assert read.at(1).preprocessing == steps
    assert_array_equal(read.decision_function(images), model.decision_function(images))
    replace(read, preprocessing=Preprocessing()).save(path)
    assert b"preprocessing" not in path.read_bytes()
    assert visionshare.load(path).preprocessing == Preprocessing()
    with pytest.raises(InputError, match=r"^margin: got 4"):
        replace(model, preprocessing=Preprocessing(fit="box", margin=4))


@pytest.mark.parametrize(
    "values", [[], {"polarity": "negative"}, {"fit": "box", "margin": 4}, {"sharpen": True}, 1]
)
def test_invalid_preprocessing_is_refused_in_one_line(values, saved, tmp_path):
    path = tmp_path / "a.safetensors"
    _rewritten(saved, path, lambda h, t: h.update(preprocessing=values))
    with pytest.raises(ClassifierFileError) as caught:
        visionshare.load(path)
    assert "\n" not in str(caught.value)


def test_it_never_changes(model):
    with pytest.raises(FrozenInstanceError):
        model.temperature = 2.0
    for array in (model.weights, model.intercept, model.classes, model.classes_):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    weights = np.ones((3, 6), np.float32)
    replace(model, weights=weights)
    weights[0] = 2.0
    names = [f.name for f in fields(CompactClassifier)]
    assert names == [
        "family", "weights", "intercept", "classes", "temperature", "path", "metadata",
        "exit_rule", "preprocessing", "values", "unknown", "answer",
    ]  # fmt: skip
    assert repr(model) == "<CompactClassifier: 3 classes, 6 features of the family 'patches'>"


def test_replaced_fields_are_replaced_and_all_others_kept(model):
    steps, rule = Preprocessing("dark_on_light"), ExitRule((2, 4), (1.0, 1.0))
    changed = replace(model, preprocessing=steps, exit_rule=rule)
    for name in (f.name for f in fields(model)):
        if name not in ("preprocessing", "exit_rule"):
            assert np.array_equal(getattr(changed, name), getattr(model, name))
    assert (changed.preprocessing, changed.exit_rule) == (steps, rule)
    prefix = changed.at(3)
    assert prefix.exit_rule == ExitRule((2,), (1.0,))
    kept = ("temperature", "metadata", "preprocessing")
    assert all(getattr(prefix, name) == getattr(changed, name) for name in kept)
    with pytest.raises(InputError, match=r"^rounds"):
        replace(changed, path=())


def test_it_can_be_pickled(model, images):
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(images), model.decision_function(images))
    assert again.metadata == model.metadata


@pytest.mark.parametrize(
    "steps", [{"fit": "center"}, {"fit": "box", "margin": 1, "center": "mass", "crop": True}]
)
def test_former_names_of_version_1_are_read(steps, model, tmp_path, images):
    preprocessing = Preprocessing("automatic", **steps)
    current, former = tmp_path / "current.safetensors", tmp_path / "former.safetensors"
    replace(model, preprocessing=preprocessing).save(current)

    def with_former_names(header, table):
        header["version"], values = 1, header["preprocessing"]
        values["centre"] = values.pop("center")
        values["fit"] = values["fit"].replace("center", "centre")

    _rewritten(current, former, with_former_names)
    assert b"centre" in former.read_bytes()
    read = visionshare.load(former)
    assert read.preprocessing == preprocessing
    assert_array_equal(read.decision_function(images), model.decision_function(images))


def test_what_a_picture_becomes(model):
    assert (model.picture_size, model.picture_mode) == ((8, 8), "gray")
    family = Pixels().fit(np.zeros((1, 4))).take([0, 3])
    vectors = CompactClassifier(family, np.eye(2), np.zeros(2), np.arange(2))
    assert vectors.picture_size is None


def test_layers_add_up_to_cost_and_parameters(model, images):
    features, scores = model.layers
    family = model.family
    assert (features.name, features.shape) == ("patches", (model.n_features,))
    assert features.templates == len(family.templates_)
    masks = family.row_masks_, family.col_masks_
    used = [mask[np.unique(family.layout_[:, k])] for k, mask in enumerate(masks, 1)]
    assert features.parameters == family.templates_.size + sum(int((m > 0).sum()) for m in used)
    assert (scores.shape, scores.templates) == ((3,), None)
    assert scores.parameters == 3 * model.n_features + 3
    assert scores.macs == 3 * model.n_features
    assert sum(layer.macs for layer in model.layers) == model.macs
    assert model.n_parameters == features.parameters + scores.parameters
    assert model.summary()["parameters"] == model.n_parameters


def test_parameters_of_layered_features_by_hand(images):
    layers = [Deslant(), Templates(3, 3, pool=2, n_patches=500)]
    layers += [Templates(5, 2, grid=2, n_patches=500), Units(7)]
    family = Network(layers).fit(images)
    model = CompactClassifier(family, np.ones((3, 7)), np.zeros(3), np.arange(3))
    by_hand = [0, 3 * (9 + 1), 5 * (4 * 3 + 1), 7 * (20 + 1), 3 * (7 + 1)]
    assert [layer.parameters for layer in model.layers] == by_hand
    assert [layer.shape for layer in model.layers] == [
        (8, 8, 1), (3, 3, 3), (2, 2, 5), (1, 1, 7), (3,),
    ]  # fmt: skip
    assert [layer.templates for layer in model.layers] == [None, 3, 5, None, None]
    assert [layer.macs for layer in model.layers] == [
        4 * 64, 36 * 9 * 3, 4 * 12 * 5, 7 * 20, 21,
    ]  # fmt: skip
    assert model.n_parameters == sum(by_hand)


def test_weights_near_the_largest_float_are_refused(tmp_path):
    family = Pixels().fit(np.zeros((1, 2, 2)))
    weights, intercept = np.ones((2, 4), np.float32), np.zeros(2, np.float32)
    usual = CompactClassifier(family, weights, intercept, np.arange(2))
    for name, array in (("weights", weights), ("intercept", intercept)):
        huge = array.copy()
        huge.flat[0] = 3e38
        with pytest.raises(InputError, match=r"^weights: got 'values up to 3e\+38'.*too large"):
            replace(usual, **{name: huge})
        values = {field.name: getattr(usual, field.name) for field in fields(usual)}
        write_fields(tmp_path / "huge", values | {name: huge})
        with pytest.raises(ClassifierFileError, match=r"weights: got .* too large"):
            CompactClassifier.load(tmp_path / "huge")
    with pytest.raises(InputError, match=r"^temperature: got .* too small"):
        replace(usual, temperature=1e-300)


def test_families_of_numbers_near_the_largest_float_are_refused(tmp_path):
    images = np.random.default_rng(0).random((20, 8, 8), np.float32)
    for family in (PatchTemplates(3, 4, 2, (2.0,), n_patches=90), Products()):
        chosen = family.fit(images).take([0, 1])
        usual = CompactClassifier(chosen, np.eye(2), np.zeros(2), np.arange(2))
        state, arrays = chosen.to_state()
        name = next(name for name, array in arrays.items() if array.dtype == np.float32)
        huge = type(chosen).from_state(state, arrays | {name: np.full_like(arrays[name], 3e38)})
        with pytest.raises(InputError, match=r"^family, .*: got 'values up to 3e\+38'.*too large"):
            replace(usual, family=huge)
        values = {field.name: getattr(usual, field.name) for field in fields(usual)}
        write_fields(tmp_path / "huge", values | {"family": huge})
        with pytest.raises(ClassifierFileError, match=r"family, .*: got .* too large"):
            CompactClassifier.load(tmp_path / "huge")


def test_images_whose_scores_overflow_are_refused():
    family = Pixels().fit(np.zeros((1, 1, 2)))
    model = CompactClassifier(family, np.full((2, 2), 1e29), np.zeros(2), np.arange(2))
    assert np.isfinite(model.predict_proba(np.full((1, 1, 2), 1e7))).all()
    for huge in (1e14, 1e20, 1e200):
        with pytest.raises(InputError, match=r"^images: got .* too large"):
            model.predict_proba(np.full((1, 1, 2), huge))
