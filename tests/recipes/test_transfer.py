"""Transfer: sources from files, and the command as a person uses it."""

import json

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare import CompactClassifier, GreedyTL, Pixels, ShareBoost
from visionshare.cli.main import main
from visionshare.columns import ArrayColumns
from visionshare.datasets import load_dataset
from visionshare.errors import ClassifierFileError, DataError, InputError, RecipeError
from visionshare.generators.pretrained.efficientnet import is_installed
from visionshare.generators.sources.scores import LinearSource
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import FeaturePart
from visionshare.recipes.source_classifiers import read_sources, sources_family
from visionshare.recipes.transfer import Task, transfer

POOL = FeaturePart(pool="small-patches", parameters={"n_templates": 25})


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits", "train")


@pytest.fixture(scope="module")
def sources(digits):
    known = digits.of_classes(["0", "1", "2", "3", "5"])
    family = read_pool(POOL, 0).fit(known.images)
    columns = ArrayColumns.from_family(family, known.images)
    sources = []
    for number, name in enumerate(known.classes):
        names = [f"not {name}", name]
        learner = ShareBoost(rounds=8, alpha=1e-3).fit(columns, known.labels == number)
        model = learner.to_classifier(family, dict(enumerate(names)))
        # Two scores differ by what the second has more: opposite ones say the same.
        half = 0.5 * (model.weights[1] - model.weights[0])
        start = 0.5 * (model.intercept[1] - model.intercept[0])
        intercept = np.array([-start, start], np.float32)
        weights = np.stack([-half, half])
        sources.append(LinearSource(model.family, weights, intercept, name, names))
    return sources


@pytest.fixture(scope="module")
def folder(sources, tmp_path_factory):
    """A folder with a classifier file for each source."""
    root = tmp_path_factory.mktemp("sources")
    for source in sources:
        parts = source.family, source.weights, source.intercept, np.array(source.classes)
        CompactClassifier(*parts).save(root / f"{source.name}.safetensors")
    return root


@pytest.fixture(scope="module")
def photos(digits, tmp_path_factory):
    """A folder of a few images, twice as large as the sources take them."""
    root, unknown = tmp_path_factory.mktemp("photos"), digits.of_classes(["6", "8", "9"])
    for c, name in enumerate(unknown.classes):
        (root / name).mkdir()
        for i in np.flatnonzero(unknown.labels == c)[:25]:
            Image.fromarray(unknown.images[i]).resize((16, 16)).save(root / name / f"{i}.png")
    return root


def test_a_learned_source_knows_its_class(digits, sources):
    assert [source.name for source in sources] == ["0", "1", "2", "3", "5"]
    assert sources[1].classes == ["not 1", "1"]
    test = load_dataset("digits", "test").of_classes(["0", "1", "2", "3", "5"])
    for number, source in enumerate(sources):
        scores = source.scores(test.images, 1)
        np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])
        assert np.mean((scores[:, 1] > 0) == (test.labels == number)) > 0.9


def test_sources_are_read_from_files_and_folders(folder, digits, sources):
    again = read_sources([folder])
    assert [source.name for source in again] == ["0", "1", "2", "3", "5"]
    for one, two in zip(sources, again, strict=True):
        np.testing.assert_array_equal(
            one.scores(digits.images[:9], 1), two.scores(digits.images[:9], 1)
        )
    several = read_sources([folder / "3.safetensors", folder])
    assert [source.name for source in several] == ["3", "0", "1", "2", "5"]


def test_files_of_one_name_get_that_of_their_folder(folder, tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.safetensors").write_bytes((folder / "1.safetensors").read_bytes())
    assert [source.name for source in read_sources([tmp_path])] == ["x/c", "y/c"]


def test_wrong_sources_say_what_to_do(folder, tmp_path, digits):
    with pytest.raises(DataError, match="no classifier file or folder of them named"):
        read_sources([tmp_path / "nothing"])
    with pytest.raises(DataError, match=r"without classifiers .*visionshare train"):
        read_sources([tmp_path])
    (tmp_path / "broken.safetensors").write_bytes(b"broken")
    with pytest.raises(ClassifierFileError, match=r"broken\.safetensors"):
        read_sources([tmp_path])
    family = Pixels().fit(np.zeros((1, 5, 5)))
    large = CompactClassifier(family, np.ones((2, 25)), np.zeros(2), np.array(["a", "b"]))
    large.save(tmp_path / "broken.safetensors")
    with pytest.raises(DataError, match=r"broken takes images of shape \(5, 5\), 0 of \(8, 8\)"):
        read_sources([folder, tmp_path])
    with pytest.raises(DataError, match=r"broken takes images of shape \(5, 5\), these are"):
        sources_family(read_sources([tmp_path]), digits.images)


def test_one_of_two_opposite_scores_is_a_feature(sources, digits):
    family = sources_family(sources, digits.images).fit(digits.images)
    assert family.n_features_ == len(sources)
    assert [family.describe(j)["class"] for j in range(5)] == ["0", "1", "2", "3", "5"]
    both = visionshare.SourceClassifiers(sources).fit(digits.images)
    assert both.n_features_ == 2 * len(sources)
    np.testing.assert_array_equal(
        family.transform(digits.images[:7]), both.transform(digits.images[:7])[:, 1::2]
    )
    assert family.take(np.array([3])).describe(0)["class"] == "3"
    with pytest.raises(InputError, match=r"^opposites: got"):
        visionshare.SourceClassifiers(sources, opposites=1).check_parameters()


def test_every_class_is_learned_from_sources_alone(sources, digits):
    images = digits.of_classes(["6", "8", "9"])
    result = transfer(images, sources, GreedyTL(), Task("none", positives=10))
    assert (result.trained_on, result.validated_on) == (30, len(images) - 30)
    assert result.classifier.classes_.tolist() == ["6", "8", "9"]
    # Chance is a third.
    assert result.balanced_accuracy > 0.6
    test = load_dataset("digits", "test").of_classes(["6", "8", "9"])
    right = result.classifier.predict(test.images) == np.asarray(test.classes)[test.labels]
    assert right.mean() > 0.6
    sizes = [abs(entry.weight) for entry in result.chosen]
    assert sizes == sorted(sizes, reverse=True)
    assert {entry.source for entry in result.chosen} <= {"0", "1", "2", "3", "5"}
    assert result.classifier.metadata["sources"] == ["0", "1", "2", "3", "5"]


def test_one_class_is_learned_against_the_rest(sources, digits, tmp_path):
    task = Task("pixels", "8", 6, 12, seed=3)
    result = transfer(digits, sources, GreedyTL(rounds=12), task)
    assert result.classifier.classes_.tolist() == ["not 8", "8"]
    assert result.trained_on == 18
    assert {entry.target for entry in result.chosen} <= {"8"}
    again = transfer(digits, sources, GreedyTL(rounds=12), task)
    assert again.chosen == result.chosen
    result.classifier.save(tmp_path / "c.safetensors")
    # What was learned from sources is a source for what comes next.
    assert read_sources([tmp_path])[0].classes == ["not 8", "8"]
    every = transfer(digits.subset(slice(0, 40)), sources, GreedyTL(rounds=5), Task())
    assert every.balanced_accuracy is None


@pytest.mark.parametrize(
    ("task", "error", "message"),
    [
        (Task(positive="x"), DataError, "no class 'x'; it has '0', '1'"),
        (Task(positives=0), InputError, "^positives: got 0"),
        (Task(negatives=3), InputError, "^negatives: got 3"),
        (Task(positive="8", negatives=99999), InputError, "^negatives: got 99999"),
        (Task(pool="pixles"), RecipeError, "Did you mean 'pixels'"),
    ],
)
def test_wrong_tasks_are_refused(task, error, message, sources, digits):
    with pytest.raises(error, match=message):
        transfer(digits, sources, GreedyTL(), task)


def test_images_that_nothing_tells_apart(sources, digits):
    alike = visionshare.datasets.ImageSet(
        np.repeat(digits.images[:1], 4, axis=0), np.array([0, 0, 1, 1]), ("a", "b"), "alike"
    )
    with pytest.raises(DataError, match="alike: no source and no feature"):
        transfer(alike, sources, GreedyTL())
    with pytest.raises(DataError, match="alike: one class"):
        transfer(alike.subset([0, 1]), sources, GreedyTL())


def test_the_command_says_which_sources_help(folder, photos, tmp_path, capsys):
    out = tmp_path / "new.safetensors"
    command = ["transfer", str(photos), str(folder), "--positives", "8", "--out", str(out)]
    assert main(command) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split() == ["weight", "source", "score", "for"]
    for word in ("trained on   24 images", "balanced, on the other 51", str(out)):
        assert word in said.out
    assert said.err == ""
    assert visionshare.load(out).classes_.tolist() == ["6", "8", "9"]
    assert main(["predict", str(out), str(photos / "8")]) == 0


def test_the_command_as_json(folder, photos, tmp_path, capsys):
    sources = [str(folder / "1.safetensors"), str(folder / "5.safetensors")]
    command = ["transfer", str(photos), *sources, "--out", str(tmp_path / "c.safetensors")]
    command += ["--positive-class", "8", "--positives", "5", "--negatives", "9", "--rounds", "4"]
    command += ["--alpha", "0.5", "--tol", "0", "--random-candidates", "59"]
    assert main([*command, "--features", "none", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["trained_on"] == 14
    assert {entry["source"] for entry in figures["sources"]} <= {"1", "5"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["{photos}", "nowhere", "--out", "x.safetensors"],
            "no classifier file or folder of them named 'nowhere'",
        ),
        (["{photos}", "{photos}", "--out", "x.safetensors"], "without classifiers"),
        (
            ["nowhere", "{folder}", "--out", "x.safetensors"],
            "no folder, file or data set named 'nowhere'",
        ),
        (["{photos}", "{folder}", "--out", "x", "--random-candidates", "0"], "--random-candidates"),
        (["{photos}", "{folder}", "--out", "x", "--rounds", "0"], "rounds"),
        (["{photos}", "{folder}", "--out", "x", "--alpha", "-1"], "alpha"),
        (["{photos}", "{folder}", "--out", "x", "--positive-class", "y"], "no class 'y'"),
        (["{photos}", "{folder}", "--out", "x", "--negatives", "5"], "negatives"),
        (["{photos}", "{folder}", "--out", "x", "--features", "pixles"], "Did you mean"),
        (["textures", "{folder}", "--out", "x"], "give a folder of images"),
        (["{photos}", "{folder}"], "option '--out'"),
        (["{photos}", "--out", "x"], "sources: got 'none'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_errors_are_one_line_and_nothing_is_written(
    arguments, words, folder, photos, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    filled = [a.format(photos=photos, folder=folder) for a in arguments]
    assert main(["transfer", *filled]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert words.lower() in said.err.lower()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not is_installed(), reason="the extra is not installed")
def test_classes_of_a_network_are_sources(photos, tmp_path, capsys):
    out = tmp_path / "new.safetensors"
    command = ["transfer", str(photos), "--out", str(out), "--positives", "3", "--rounds", "20"]
    assert main([*command, "--features", "efficientnet-lite0-classes", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["trained_on"] == 9
    assert {entry["source"] for entry in figures["sources"]} <= {"efficientnet-lite0"}
    family = CompactClassifier.load(out).family
    described = [family.describe(j) for j in range(figures["features"])]
    used = {f"class {one['channel']}" for one in described if one["place"] == "classes"}
    assert {entry["source_class"] for entry in figures["sources"]} == used
    assert used


def test_help_shows_how_to_begin(capsys):
    assert main(["transfer", "--help"]) == 0
    said = capsys.readouterr().out
    assert "Example: visionshare transfer photos/" in said
    assert "--positive-class" in said
