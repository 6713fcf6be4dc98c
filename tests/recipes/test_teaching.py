"""Teachers in recipes: learned first or read from files, with pictures that have no class."""

import json

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare.datasets import load_dataset
from visionshare.datasets.intake import as_rasters
from visionshare.errors import InputError, RecipeError
from visionshare.learners import FineTuning, fine_tune
from visionshare.learners.fine_tuning import steps
from visionshare.recipes import load_recipe, train
from visionshare.recipes.stages.teaching import larger_recipe
from visionshare.recipes.teachers import probabilities_of, read_teacher

SMALL = [
    "learner.rounds=6", "data.limit=200", "features.parameters.n_templates=20",
    "features.parameters.n_patches=1000", 'fine_tuning.head="linear"',
    "fine_tuning.epochs=3", "fine_tuning.batch=32", "fine_tuning.rate=0.01",
]  # fmt: skip
SELF = ['teacher.source="self"', "teacher.members=2"]


def same(a, b):
    return np.array_equal(a.weights, b.weights) and np.array_equal(a.intercept, b.intercept)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return train(load_recipe("digits", SMALL), tmp_path_factory.mktemp("alone") / "out")


@pytest.fixture(scope="module")
def by_self(tmp_path_factory):
    return train(load_recipe("digits", [*SMALL, *SELF]), tmp_path_factory.mktemp("self") / "out")


def test_larger_classifiers_of_the_same_pictures_teach(alone, by_self):
    assert not same(alone.classifier, by_self.classifier)
    assert alone.metrics["macs"] == by_self.metrics["macs"]
    assert by_self.metrics["seconds"]["teacher"] > 0
    (note,) = [note for note in by_self.metrics["notes"] if "taught" in note]
    assert note.startswith("taught by 'self'")
    assert "seconds of teacher" in (by_self.out / "report.html").read_text()


def test_the_teacher_is_wider_and_has_floats():
    recipe = load_recipe("mnist-10k", SELF)
    larger = larger_recipe(recipe)
    widths = [
        [layer["n_templates"] for layer in r.features.parameters["layers"][1:]]
        for r in (recipe, larger)
    ]
    assert widths == [[4, 20, 100], [8, 40, 200]]
    assert larger.learner.rounds == 2 * recipe.learner.rounds
    assert (larger.members, larger.seed, larger.quantization, larger.teacher) == (2, 1, None, None)


def test_another_recipe_teaches_on_the_pictures_of_the_run():
    given = [*SELF, 'teacher.recipe="fashion-400k"', "teacher.width=1", "seed=4"]
    recipe = load_recipe("mnist-10k", given)
    other = load_recipe("fashion-400k")
    larger = larger_recipe(recipe)
    assert larger.features == other.features
    assert (larger.fine_tuning, larger.deformations) == (other.fine_tuning, other.deformations)
    assert (larger.data, larger.preprocessing) == (recipe.data, recipe.preprocessing)
    assert (larger.seed, larger.members, larger.teacher) == (5, 2, None)


def test_a_taught_run_that_is_killed_resumes_with_its_teacher(tmp_path, by_self, monkeypatch):
    recipe = load_recipe("digits", [*SMALL, *SELF])
    passes = []
    whole = steps.Tuner.epochs

    def dying(tuner, records):
        for number, record in enumerate(whole(tuner, records)):
            yield record
            passes.append(number)
            if len(passes) == 8:
                raise KeyboardInterrupt

    monkeypatch.setattr(steps.Tuner, "epochs", dying)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "out")
    monkeypatch.undo()
    assert (tmp_path / "out/work/teacher.safetensors").is_file()
    resumed = train(recipe, tmp_path / "out", jobs=2, resume=True)
    assert same(resumed.classifier, by_self.classifier)


def test_a_file_teaches_of_pictures_without_a_class_too(tmp_path, alone):
    folder = tmp_path / "more"
    folder.mkdir()
    for number, image in enumerate(load_dataset("digits", "test").images[:30]):
        Image.fromarray(image.astype(np.uint8)).save(folder / f"{number:02}.png")
    file = alone.out / "classifier.safetensors"
    taught = [*SMALL, f"teacher.source={json.dumps(str(file))}"]
    labeled = train(load_recipe("digits", taught), tmp_path / "labeled")
    more = [*taught, f"teacher.unlabeled={json.dumps(str(folder))}"]
    both = train(load_recipe("digits", more), tmp_path / "both")
    assert both.metrics["train_images"] == 230
    assert labeled.metrics["train_images"] == 200
    assert not same(labeled.classifier, both.classifier)
    assert "30 copies and pictures without a class" in both.metrics["notes"][-1]


def test_a_model_in_onnx_says_what_its_classifier_says(tmp_path, alone):
    from visionshare.export import onnx_program

    pytest.importorskip("onnxruntime")
    (tmp_path / "model.onnx").write_bytes(onnx_program(alone.classifier).content)
    images = as_rasters(load_dataset("digits", "test").images[:50])
    classes = alone.classifier.classes_.tolist()[::-1]
    said = [
        probabilities_of(read_teacher(file), images, classes, 1)
        for file in (tmp_path / "model.onnx", alone.out / "classifier.safetensors")
    ]
    np.testing.assert_allclose(*said, atol=1e-5)


def test_a_model_of_others_sees_channels_first(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["seen"], ["means"]),
            helper.make_node("Flatten", ["means"], ["scores"]),
        ],
        "colors",
        [helper.make_tensor_value_info("seen", number, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("scores", number, [1, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (tmp_path / "colors.onnx").write_bytes(model.SerializeToString())
    teacher = read_teacher(tmp_path / "colors.onnx")
    pictures = np.zeros((3, 20, 20, 3), np.uint8)
    for k in range(3):
        pictures[k, :, :, k] = 255
    said = probabilities_of(teacher, pictures, ["a", "b", "c"], 1)
    assert said.argmax(axis=1).tolist() == [0, 1, 2]
    np.testing.assert_allclose(said.sum(axis=1), 1, rtol=1e-6)
    with pytest.raises(InputError, match="3 outputs"):
        probabilities_of(teacher, pictures, ["a", "b"], 1)


def test_a_table_of_probabilities_teaches_as_its_labels_would(alone):
    images = load_dataset("digits", "train").images[:200]
    names = alone.classifier.classes_[load_dataset("digits", "train").labels[:200]]
    certain = (names[:, None] == alone.classifier.classes_).astype(np.float32)
    quick = {"epochs": 1, "head": "linear", "validation_fraction": 0.0, "teacher_weight": 1.0}
    settings = FineTuning(**quick)
    right, wrong = (
        fine_tune(alone.classifier, images, y, settings, teacher=certain)
        for y in (names, np.roll(names, 1))
    )
    # Labels have no weight; temperatures are fitted to them.
    assert same(right, wrong)
    with pytest.raises(InputError, match=r"teacher: got 'numbers of shape \(200, 9\)'"):
        fine_tune(alone.classifier, images, names, settings, teacher=certain[:, 1:])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (['teacher.source="gone.onnx"'], "'self', 'pretrained', or a file"),
        ([*SELF, 'teacher.recipe="fashion-40k"'], "fashion-400k"),
        (['teacher.source="self"', 'teacher.unlabeled="gone"'], "gone"),
    ],
)
def test_missing_files_are_named_before_work_starts(tmp_path, settings, said):
    with pytest.raises(visionshare.errors.VisionshareError, match=said):
        train(load_recipe("digits", [*SMALL, *settings]), tmp_path / "out")


def test_teachers_of_other_classes_and_other_recipes_are_refused(tmp_path, alone):
    file = json.dumps(str(alone.out / "classifier.safetensors"))
    few = [*SMALL, f"teacher.source={file}", 'data.classes=["3", "8"]']
    with pytest.raises(InputError, match=r"teacher: got .*classes.*'0', '1'"):
        train(load_recipe("digits", few), tmp_path / "out")
    with pytest.raises(RecipeError, match="teacher: needs \\[fine_tuning\\]"):
        load_recipe("digits-grfl", ['teacher.source="self"'])
    (tmp_path / "empty").mkdir()
    none = [*SMALL, *SELF, f"teacher.unlabeled={json.dumps(str(tmp_path / 'empty'))}"]
    with pytest.raises(visionshare.errors.DataError, match="no pictures"):
        train(load_recipe("digits", none), tmp_path / "none")


def test_pictures_in_storage_have_no_teacher(tmp_path):
    recipe = load_recipe("photos", [*SELF, 'data.source="s3://bucket/*.tar"'])
    with pytest.raises(RecipeError, match="teacher: not with pictures in storage"):
        train(recipe, tmp_path / "out")
