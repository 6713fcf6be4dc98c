"""Designs on small images: files, stops, other folders, and what the command says."""

import io
import json

import pytest

from visionshare.cli.main import main
from visionshare.datasets import ImageSet
from visionshare.errors import DataError, InputError, StoreError
from visionshare.machine.progress import Progress
from visionshare.recipes import Budget, design_recipe, load_recipe, train
from visionshare.recipes.design import running
from visionshare.recipes.design.trials import LOCK, RECIPE, TABLE, WORK, design_folder
from visionshare.recipes.stages import images as stage

TINY = [
    "data.limit=300", "design.images=150", "design.n_patches=2000", "design.n_layers=[0,1]",
    "design.n_templates=[4,8]", "design.n_maps=[2,3]", "design.n_units=[5]", "design.held_out=0.2",
    "fine_tuning={epochs=4, batch=32, rate=0.02, weight_standardization=true}", "preprocessing={}",
    "design.n_rungs=2",
]  # fmt: skip
BUDGET = Budget(macs=15_000)
N = 4


def recipe(*settings):
    return load_recipe("digits", [*TINY, *settings])


def known(trials):
    """Return what of trials does not depend on the clock."""
    return [(t.number, t.rung, t.epochs, t.structure, t.cost, t.error) for t in trials]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return design_recipe(recipe(), tmp_path_factory.mktemp("d") / "p", BUDGET, n_structures=N)


def test_everything_is_written(found):
    assert {path.name for path in found.out.iterdir()} == {TABLE, RECIPE, LOCK, WORK}
    table = json.loads((found.out / TABLE).read_text())
    assert [trial["error"] for trial in table["trials"]] == [t.error for t in found.trials]
    assert table["best"]["number"] == found.best.number
    assert (table["training_images"], table["held_out_images"]) == (150, 239)
    assert table["image_shape"] == [8, 8, 1]
    assert {trial.number for trial in found.trials} == set(range(N))
    assert {trial.epochs for trial in found.trials} == {1, 4}
    assert found.best.error == min(trial.error for trial in found.trials)
    assert all(trial.cost.macs <= 15_000 for trial in found.trials)
    assert all(trial.seconds > 0 for trial in found.trials)


def test_the_recipe_trains(found, tmp_path):
    read = load_recipe(found.out / RECIPE)
    assert read == found.recipe
    assert "% error on 239 held-out training images" in (found.out / RECIPE).read_text()
    result = train(read, tmp_path / "out")
    assert result.metrics["macs"] == found.best.cost.macs
    assert result.metrics["nbytes"] == found.best.cost.nbytes
    assert result.metrics["parameters"] == found.best.cost.parameters
    # The limit of the recipe, not that of trials; the test images are others again.
    assert (result.metrics["train_images"], result.metrics["test_images"]) == (300, 599)


def test_the_test_images_are_not_read(monkeypatch, tmp_path):
    load, splits = stage.load_images, []

    def noted(source, split, *others):
        splits.append(split)
        return load(source, split, *others)

    monkeypatch.setattr(stage, "load_images", noted)
    design_recipe(recipe(), tmp_path, BUDGET, n_structures=1)
    assert splits == ["train"]


def test_a_stopped_design_resumes(found, monkeypatch, tmp_path):
    tuned, calls = running.fine_tuned, []

    def stops(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return tuned(*arguments)

    monkeypatch.setattr(running, "fine_tuned", stops)
    with pytest.raises(KeyboardInterrupt):
        design_recipe(recipe(), tmp_path, BUDGET, n_structures=N)
    assert len(json.loads((tmp_path / TABLE).read_text())["trials"]) == 2
    assert load_recipe(tmp_path / RECIPE).name == "digits-designed"
    monkeypatch.setattr(running, "fine_tuned", tuned)
    # Classifiers of chosen features that are lost are chosen again.
    for file in (tmp_path / WORK).glob("chosen-*"):
        file.write_bytes(b"damaged")
    resumed = design_recipe(recipe(), tmp_path, BUDGET, n_structures=N, jobs=2)
    assert known(resumed.trials) == known(found.trials)
    assert (tmp_path / RECIPE).read_text() == (found.out / RECIPE).read_text()


def test_a_design_that_ended_continues_with_more(found, monkeypatch):
    before = (found.out / TABLE).read_text()
    again = design_recipe(recipe(), found.out, BUDGET, seconds=1e-3, n_structures=N)
    assert again.trials == found.trials
    assert (found.out / TABLE).read_text() == before


def test_the_seed_says_what_is_proposed(found, tmp_path):
    other = design_recipe(recipe("seed=1"), tmp_path, BUDGET, n_structures=1)
    assert other.trials[0].structure != found.trials[0].structure


def test_time_ends_a_design_after_one_structure_at_least(tmp_path):
    file = io.StringIO()
    with Progress(file, every=1e-9):
        result = design_recipe(recipe(), tmp_path, BUDGET, seconds=1e-3)
    assert [(trial.number, trial.rung) for trial in result.trials] == [(0, 0)]
    assert "trials: fine-tuning, " in file.getvalue()


@pytest.mark.parametrize(
    ("setting", "budget"), [("design.images=140", BUDGET), ("seed=0", Budget(macs=14_000))]
)
def test_another_design_is_refused(found, setting, budget):
    before = {path: path.read_bytes() for path in found.out.iterdir() if path.is_file()}
    with pytest.raises(InputError, match=r"out: .*it holds another design"):
        design_recipe(recipe(setting), found.out, budget, n_structures=N)
    assert before == {path: path.read_bytes() for path in found.out.iterdir() if path.is_file()}


def test_folders_of_others_are_refused_and_stay(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"it holds 'notes\.txt'"):
        design_recipe(recipe(), tmp_path, BUDGET, n_structures=1)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(InputError, match="a folder"):
        design_recipe(recipe(), tmp_path / "notes.txt", BUDGET, n_structures=1)
    with (
        design_folder(tmp_path / "p"),
        pytest.raises(StoreError, match="another process"),
        design_folder(tmp_path / "p"),
    ):
        pass


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table["trials"][0].update(error="nothing"),
        lambda table: table["trials"][0].update(error=7.0),
        lambda table: table["trials"][0].update(number=-1),
        lambda table: table["trials"][0].update(seconds=float("nan")),
        lambda table: table["trials"].append(table["trials"][0]),
        lambda table: table["trials"][0]["structure"].pop("layers"),
        lambda table: table.update(trials={"a": 1}),
        lambda table: table.update(version=99),
    ],
)
def test_damaged_tables_are_refused(found, tmp_path, change):
    table = json.loads((found.out / TABLE).read_text())
    change(table)
    (tmp_path / TABLE).write_text(json.dumps(table))
    with pytest.raises(InputError, match=r"design\.json is whole"):
        design_recipe(recipe(), tmp_path, BUDGET, n_structures=N)


@pytest.mark.parametrize("text", ["", "{", "[" * 9999, "[]", '{"format": "other"}'])
def test_files_of_others_are_no_tables(tmp_path, text):
    (tmp_path / TABLE).write_text(text)
    with pytest.raises(InputError, match="new or empty folder"):
        design_recipe(recipe(), tmp_path, BUDGET, n_structures=N)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "^seconds: got None"),
        ({"seconds": 0}, "^seconds: got 0"),
        ({"seconds": float("inf")}, "^seconds: got inf"),
        ({"n_structures": 0}, "^n_structures: got 0"),
    ],
)
def test_wrong_arguments_stop_before_work(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        design_recipe(recipe(), tmp_path / "p", BUDGET, **arguments)
    assert not (tmp_path / "p").exists()


def test_budgets_that_nothing_fits_leave_no_folder(tmp_path):
    with pytest.raises(InputError, match=r"^macs: got 9; accepted: at least"):
        design_recipe(recipe(), tmp_path / "p", Budget(macs=9), n_structures=1)
    assert not (tmp_path / "p").exists()


def test_vectors_have_no_structure(monkeypatch, tmp_path):
    load = stage.load_images

    def flat(*arguments):
        loaded = load(*arguments)
        images = loaded.images.reshape(len(loaded), -1)
        return ImageSet(images, loaded.labels, loaded.classes, loaded.name)

    monkeypatch.setattr(stage, "load_images", flat)
    with pytest.raises(DataError, match="vectors"):
        design_recipe(recipe(), tmp_path / "p", BUDGET, n_structures=1)
    assert not (tmp_path / "p").exists()


def test_structures_that_cannot_be_trained_are_rows_of_the_table(tmp_path):
    # More templates than patches: none of the structures can be fitted.
    few = recipe("design.n_patches=3", "design.n_layers=[0]")
    with pytest.raises(DataError, match=r"no structure could be trained: n_templates"):
        design_recipe(few, tmp_path / "a", BUDGET, n_structures=2)
    problems = [t["problem"] for t in json.loads((tmp_path / "a" / TABLE).read_text())["trials"]]
    assert len(problems) == 2
    with pytest.raises(DataError, match="none of 5 structures could be trained"):
        design_recipe(few, tmp_path / "b", BUDGET, n_structures=50)


def command(*words):
    return ["--quiet", "design", "digits", *(word for s in TINY for word in ("--set", s)), *words]


def test_the_command_says_what_was_found(found, tmp_path, capsys):
    options = ("--structures", str(N), "--macs", "15k", "--out", str(tmp_path / "p"))
    assert main(command(*options)) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert str(found.best.structure) in said.out.splitlines()[1]
    assert f"recipe       {tmp_path / 'p' / RECIPE}" in said.out
    assert main(command(*options, "--json", "--seed", "0")) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["best"]["error"] == found.best.error
    assert figures["best"]["text"] == str(found.best.structure)
    assert len(figures["trials"]) == len(found.trials)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--time: got None"),
        (["--time", "soon"], "--time: got 'soon'; accepted: a time such as 90s"),
        (["--time", "0m"], "--time: got '0m'"),
        (["--structures", "0"], "--structures: got 0"),
        (["--time", "1m", "--macs", "many"], "--macs: got 'many'; accepted: a number such as 400k"),
        (["--time", "1m", "--macs", "0.4"], "--macs: got '0.4'"),
        (["--time", "1m", "--parameters", "-3"], "--parameters"),
        (["--time", "1m", "--bytes", "many"], "--bytes: got 'many'"),
    ],
)
def test_wrong_options_are_one_line(options, message, tmp_path, capsys):
    assert main(command("--out", str(tmp_path / "p"), *options)) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {message}")
    assert said.count("\n") == 1
    assert not (tmp_path / "p").exists()


def test_a_stop_says_how_to_resume(monkeypatch, tmp_path, capsys):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "fine_tuned", stopped)
    assert main(command("--structures", "1", "--out", str(tmp_path / "p"))) == 130
    assert capsys.readouterr().err == "stopped; the same command resumes it\n"
