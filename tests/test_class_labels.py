"""Labels keep their type and their order: every kind of label through everything that takes it."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from PIL import Image
from sklearn.model_selection import GridSearchCV, ShuffleSplit

from visionshare import (
    CompactClassifier,
    ImageClassifier,
    PatchTemplates,
    Pixels,
    ShareBoost,
    load,
)
from visionshare.class_labels import class_names, in_order, renamed
from visionshare.classifier import EarlyExit, ExitRule, averaged
from visionshare.cli.main import main
from visionshare.datasets import load_images
from visionshare.errors import ClassifierFileError, InputError
from visionshare.export import onnx_program, run_onnx
from visionshare.files.tensors import read_tensor_file, write_tensor_file
from visionshare.learners import FineTuning, fine_tune
from visionshare.learners.registry import CLASSIFIERS, classifier_class
from visionshare.reports import Results

SMALL = {
    "dense": {},
    "forward_greedy": {"rounds": 6},
    "greedytl": {"rounds": 4},
    "grfl": {"alpha": 1.0, "rounds": 4},
    "jointboost": {"rounds": 8},
    "mixed_norm": {"alpha": 1.0, "q": 2.0, "tol": 1e-2, "calibrate": False},
    "one_against_rest": {"rounds": 2},
    "shareboost": {"rounds": 4},
    "structural_boosting": {"alpha": 8.0, "rounds": 2, "tol": 1e-2, "calibrate": False},
}
# What is searched by GridSearchCV: any parameter will do.
SEARCHED = {"dense": {"copies": [0]}, "mixed_norm": {"alpha": [1.0]}}

# Examples.
_N = 30
BIG = 2**63
_HALVES = ShuffleSplit(1, test_size=0.5, random_state=0)
# Labels in an order that is not theirs when they are sorted, and not that of their texts.
KINDS = {
    "int": np.array([10, 2, 1]),
    "negative": np.array([-1, 7, -20]),
    "int8": np.array([100, 2, -3], np.int8),
    "uint64": np.array([10, 2, 1], np.uint64),
    "beyond int64": np.array([BIG + 10, 2, BIG], np.uint64),
    "big-endian": np.array([10, 2, 1], ">i4"),
    "list of int": [10, 2, 1],
    "bool": np.array([True, False]),
    "float": np.array([10.0, 2.0, -1.0]),
    "float32": np.array([10.0, 2.0, 0.0], np.float32),
    "text": np.array(["2", "10", "1"]),
    "text of other types": np.array(["True", "1.0", "nan"]),
    "list of text": ["b", "c", "a"],
    "unicode": np.array(["日本", "é", "z"]),
    "mixed widths": np.array(["bb", "a", "ccc"], "<U40"),
    "object": np.array(["2", "10", "1"], object),
    "objects of int": np.array([10, 2, 1], object),
    "objects of bool": np.array([True, False], object),
    "pandas text": pd.Series(["2", "10", "1"]),
    "pandas category": pd.Series(["2", "10", "1"], dtype="category"),
    "pandas Int64": pd.Series([10, 2, 1], dtype="Int64"),
    "pandas boolean": pd.Series([True, False], dtype="boolean"),
}


def _examples(kind):
    """Return separable examples, their labels of a kind, and these as plain Python values."""
    distinct = KINDS[kind]
    numbers = np.arange(_N) % len(distinct)
    X = np.random.default_rng(0).normal(size=(_N, 4)).astype(np.float32)
    X[np.arange(_N), numbers] += 6
    X -= 3
    y = [distinct[i] for i in numbers] if isinstance(distinct, list) else distinct[numbers]
    if isinstance(y, pd.Series):
        y = y.reset_index(drop=True)
    return X, y, [distinct[i] for i in numbers] if isinstance(distinct, list) else y.tolist()


def _check(predicted, labels, classes):
    """Check that predictions are mostly right, and labels of the same type as before."""
    given = predicted.tolist()
    assert {type(label) for label in given} == {type(label) for label in labels}
    assert predicted.dtype.kind == classes.dtype.kind
    assert predicted.dtype.kind in "UO" or predicted.dtype == classes.dtype.newbyteorder("=")
    assert np.mean([a == b for a, b in zip(given, labels, strict=True)]) > 0.7


def _ways(name, kind, folder):
    """Yield each way of using a learner with labels of a kind, and what it predicts."""
    X, y, labels = _examples(kind)
    settings = SMALL[name]
    model = classifier_class(name)(**settings).fit(X, y)
    assert model.classes_.tolist() == sorted(set(labels))
    yield "predict", model.predict(X), model.classes_
    yield "pickle", pickle.loads(pickle.dumps(model)).predict(X), model.classes_
    stumps = name == "jointboost"
    compact = model.to_classifier(*(() if stumps else (Pixels().fit(X),)))
    yield "compact", compact.predict(X), model.classes_
    yield "pickle of compact", pickle.loads(pickle.dumps(compact)).predict(X), model.classes_
    compact.save(folder / "c.safetensors")
    again = load(folder / "c.safetensors")
    assert again.classes_.dtype == compact.classes_.dtype
    yield "save and load", again.predict(X), model.classes_
    again.save(folder / "again.safetensors")
    assert (folder / "again.safetensors").read_bytes() == (folder / "c.safetensors").read_bytes()
    texts = model.classes_.dtype.kind == "U"
    in_onnx = model.classes_.astype(object) if texts else model.classes_
    yield "ONNX", run_onnx(onnx_program(again), X).labels, in_onnx
    if "class_weight" in model.get_params():
        weights = dict.fromkeys(labels[1:], 1.5)
        weighted = classifier_class(name)(**settings, class_weight=weights).fit(X, y)
        yield "class weight", weighted.predict(X), model.classes_
    grid = GridSearchCV(model, SEARCHED.get(name, {"rounds": [settings.get("rounds")]}), cv=_HALVES)
    yield "GridSearchCV", grid.fit(X, y).predict(X), model.classes_


# One learner takes every kind; the others take kinds that are stored in different ways.
STORED = ["negative", "beyond int64", "bool", "float32", "text", "object", "pandas category"]
LEARNERS_AND_KINDS = [
    (name, kind)
    if name == "shareboost" or kind in STORED
    else pytest.param(name, kind, marks=pytest.mark.exhaustive)
    for name in CLASSIFIERS
    for kind in KINDS
]


@pytest.mark.parametrize(("name", "kind"), LEARNERS_AND_KINDS)
def test_labels_keep_their_type_and_order(name, kind, tmp_path, record_property):
    labels = _examples(kind)[2]
    tried = 0
    for way, predicted, classes in _ways(name, kind, tmp_path):
        try:
            _check(predicted, labels, classes)
        except AssertionError as error:
            error.add_note(way) if hasattr(error, "add_note") else None
            raise
        tried += 1
    assert tried >= 7
    record_property("combinations", tried)


@pytest.mark.parametrize("kind", KINDS)
def test_images_keep_their_labels(kind, tmp_path):
    X, y, labels = _examples(kind)
    images = np.clip(X[:, :, None] * 20 + 100, 0, 255).astype(np.uint8).repeat(6, axis=2)
    model = ImageClassifier(Pixels(), class_weight={labels[0]: 2.0}, n_jobs=1).fit(images, y)
    assert model.classes_.tolist() == sorted(set(labels))
    _check(model.predict(images), labels, model.classes_)
    _check(model.classifier_.predict(images), labels, model.classes_)
    model.save(tmp_path / "c.safetensors")
    _check(load(tmp_path / "c.safetensors").predict(images), labels, model.classes_)
    assert model.score(images, y) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_of_classifiers_keeps_their_labels(kind):
    X, y, labels = _examples(kind)
    family = Pixels().fit(X)
    model = ShareBoost(4).fit(X, y).to_classifier(family)
    early = EarlyExit(model, ExitRule((2,), (1.0,)))
    _check(early.predict(X), labels, model.classes_)
    wrong = [a != b for a, b in zip(early.predict(X).tolist(), labels, strict=True)]
    assert early.measure(X, labels).errors == sum(wrong)
    assert early.score(X, y) == pytest.approx(1 - np.mean(wrong))
    right = [a == b for a, b in zip(model.predict(X).tolist(), labels, strict=True)]
    assert model.score(X, y) == pytest.approx(np.mean(right))
    _check(averaged([model, model]).predict(X), labels, model.classes_)
    _check(model.at(3).predict(X), labels, model.classes_)
    results = Results.of(model, X, labels)
    assert results.classes == class_names(model.classes_)
    assert results.errors < 4
    assert Results.of(model, X, list(map(str, labels))).errors == results.errors


def test_fine_tuning_keeps_labels():
    images = np.random.default_rng(0).integers(0, 200, (60, 6, 6), np.uint8)
    y = np.array([True, False])[np.arange(60) % 2]
    images[y, :3] += 50
    family = PatchTemplates(3, 6, 2, (2.0,), n_patches=300).fit(images)
    model = ShareBoost(4).fit(family.transform(images), y).to_classifier(family)
    tuned = fine_tune(model, images, y, FineTuning(epochs=1, class_weight={True: 2.0}))
    _check(tuned.predict(images), y.tolist(), np.array([False, True]))
    with pytest.raises(InputError, match=r"^labels: got 'True'; accepted: .*: False, True$"):
        fine_tune(model, images, y.astype(str), FineTuning(epochs=1))


@pytest.fixture(scope="module")
def texts():
    X, y, _ = _examples("text")
    return X, y, Pixels().fit(X), ShareBoost(4).fit(X, y)


@pytest.mark.parametrize("names", [["1", "2", "10"], ["x", "1", "2"], [1, 2, 10], ["2", "10", "1"]])
def test_names_in_another_order_are_refused(texts, names):
    *_, family, model = texts
    accepted = r"names in the order of classes_ \('1', '10', '2'\), or a mapping"
    with pytest.raises(InputError, match=rf"^classes: got .* for the class '.*'.*{accepted}"):
        model.to_classifier(family, names)


def test_other_names_are_taken(texts):
    X, y, family, model = texts
    named = model.to_classifier(family, ["one", "ten", "two"])
    mapped = model.to_classifier(family, {"2": "two", "10": "ten", "1": "one", "3": "three"})
    assert_array_equal(named.classes_, mapped.classes_)
    spoken = {"1": "one", "10": "ten", "2": "two"}
    assert np.mean(named.predict(X) == [spoken[label] for label in y]) > 0.9
    assert model.to_classifier(family, ["1", "10", "2"]).classes_.tolist() == ["1", "10", "2"]
    for wrong in (["one", "two"], {"1": "one"}, ["a", "b", "b"], ["a", "b", 3]):
        with pytest.raises(InputError, match=r"^classes: got"):
            model.to_classifier(family, wrong)


@pytest.mark.parametrize(
    ("labels", "names", "is_refused"),
    [
        # Numbers of folders' names, in the order of texts.
        ([0, 1, 2], ["0", "10", "1"], False),
        ([0, 1, 2], ["5", "2", "1"], False),
        # May be names of folders, too: a mapping says which.
        ([0, 1, 2], ["0", "2", "1"], True),
        ([0, 1, 2], ["0", "1", "2"], False),
        ([0, 1, 2], [2, 1, 0], True),
        ([3, 7, 9], ["7", "3", "9"], True),
        ([False, True], ["True", "False"], True),
        ([False, True], ["no", "yes"], False),
        ([0, 1], [True, False], True),
        ([1.0, 2.0], [2, 1], True),
        ([1.0, 2.0], ["2.0", "1.0"], True),
    ],
)
def test_an_order_is_told_by_labels_that_moved(labels, names, is_refused):
    if is_refused:
        with pytest.raises(InputError, match="for the class"):
            renamed(np.array(labels), names)
    else:
        assert renamed(np.array(labels), names).tolist() == names


@pytest.mark.parametrize(
    "labels",
    [
        [1, "a"] * 15, [True, "a"] * 15, [True, 2] * 15, [b"a", b"b"] * 15,
        ["a", None] * 15, ["a", np.nan] * 15, [0.5, 1.5] * 15, [1j, 2j] * 15,
        np.array(["2020-01-01", "2020-01-02"] * 15, "M8[D]"),
        pd.Series(["a", None] * 15), pd.Series([1, None] * 15, dtype="Int64"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_label_is_refused(labels, texts):
    X = texts[0]
    images = np.random.default_rng(0).integers(0, 256, (_N, 6, 6), np.uint8)
    for learner, examples in ((ShareBoost(2), X), (ImageClassifier(Pixels(), n_jobs=1), images)):
        with pytest.raises(InputError, match=r"^y: got"):
            learner.fit(examples, labels)


def test_messages_quote_texts(texts):
    X, y, family, model = texts
    compact = model.to_classifier(family)
    known = "'1', '10', '2'$"
    with pytest.raises(InputError, match=f"^class_weight: got 1; accepted: .*: {known}"):
        ShareBoost(2, class_weight={1: 2.0}).fit(X, y)
    early = EarlyExit(compact, ExitRule((2,), (1.0,)))
    with pytest.raises(InputError, match=f"^labels: got 2; accepted: .*: {known}"):
        early.measure(X, y.astype(int))


def test_a_fold_may_lack_a_class_that_has_a_weight(texts):
    X, y, *_ = texts
    weights = {"1": 2.0, "another": 3.0}
    assert ShareBoost(2, class_weight=weights).fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize("classes", [[0, 1.5], ["a", "b"], [True, False], [10, 2]])
def test_a_file_without_the_type_of_its_labels_is_read(classes, texts, tmp_path):
    family, path = texts[2], tmp_path / "c.safetensors"
    CompactClassifier(family, np.eye(2, 4), np.zeros(2), classes).save(path)
    values, _ = read_tensor_file(path, "visionshare-classifier", {2}, ClassifierFileError)
    # Files with labels of these types are those of former versions, byte for byte.
    assert "class_type" not in values
    assert load(path).classes_.tolist() == classes


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([1, 2], "complex64"), ([1, 2], "S1"), ([1, 300], "int8"), ([1, -2], "uint8"),
        (["a", "b"], "int8"), (["1", "1" * 5000], "uint64"), ([1, 2], "object"), ([1, 2], ["int8"]),
        ([1, 1], "int8"), ([0.1, 0.2], "float16"), ([True, False], "str"), ([1, "2"], None),
        (["1", "x"], "uint64"), ([[1], [2]], None),
    ],
)  # fmt: skip
def test_a_hostile_type_of_labels_is_refused(labels, kind, texts, tmp_path):
    path = tmp_path / "c.safetensors"
    CompactClassifier(texts[2], np.eye(2, 4), np.zeros(2), ["a", "b"]).save(path)
    values, arrays = read_tensor_file(path, "visionshare-classifier", {2}, ClassifierFileError)
    del values["format"], values["version"], values["library"]
    changed = {**values, "classes": labels, **({} if kind is None else {"class_type": kind})}
    write_tensor_file(path, "visionshare-classifier", 2, changed, arrays)
    with pytest.raises(ClassifierFileError, match="class"):
        load(path)


def test_names_of_classes_are_in_one_order_everywhere(tmp_path):
    numbers = ["-3", *map(str, range(12))]
    expected = (*numbers, "a", "b")
    assert in_order(reversed(expected)) == expected
    for name in expected:
        (tmp_path / "folders" / name).mkdir(parents=True)
        for i in range(2):
            Image.new("L", (8, 8), 20 * i).save(tmp_path / "folders" / name / f"{i}.png")
    assert load_images(tmp_path / "folders", "train", size=(8, 8)).classes == expected
    images = np.zeros((26, 8, 8), np.uint8)
    for labels in (np.arange(-1, 12), np.array([*numbers])):
        np.savez(tmp_path / "arrays.npz", images=images, labels=np.repeat(labels, 2))
        assert load_images(tmp_path / "arrays.npz", "train").classes == tuple(map(str, labels))


def test_the_command_line_and_files_keep_types(tmp_path, capsys):
    images = np.zeros((40, 6, 6), np.uint8)
    images[::2] = 200
    y = np.array([1.0, 0.0])[np.arange(40) % 2]
    model = ImageClassifier(Pixels(), n_jobs=1).fit(images, y)
    model.save(tmp_path / "c.safetensors")
    for name, image in (("1.0", images[0]), ("0.0", images[1])):
        (tmp_path / "test" / name).mkdir(parents=True)
        Image.fromarray(image).save(tmp_path / "test" / name / "a.png")

    def answer(*arguments):
        assert main([*map(str, arguments), "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    said = answer("predict", tmp_path / "c.safetensors", tmp_path / "test")
    assert [line["class"] for line in said] == [0.0, 1.0]
    assert [max(line["probabilities"], key=line["probabilities"].get) for line in said] == [
        "0.0", "1.0",
    ]  # fmt: skip
    assert answer("evaluate", tmp_path / "c.safetensors", tmp_path / "test")[0]["errors"] == 0
    # Texts that are other labels than the classifier's are not taken for them.
    (tmp_path / "test" / "0.0").rename(tmp_path / "test" / "0")
    assert main(["evaluate", str(tmp_path / "c.safetensors"), str(tmp_path / "test")]) == 2
    assert "classes '0' are unknown" in capsys.readouterr().err
