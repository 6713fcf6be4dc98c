"""The folder of a run: nothing of anybody else is replaced or removed."""

import json
import threading

import pytest

from visionshare.cli.main import main
from visionshare.errors import InputError, RecipeError, StoreError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.folder import run_folder

SMALL = [
    "learner.rounds=2", "features.parameters.n_templates=5", "features.parameters.n_patches=500",
    "data.limit=200",
]  # fmt: skip


@pytest.fixture(scope="module")
def recipe():
    return load_recipe("digits", SMALL)


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", ["work/thesis.tex", "path.csv", "notes.txt", "metrics.json"])
def test_a_folder_of_somebody_else_is_refused_and_stays(recipe, tmp_path, name):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    with pytest.raises(InputError, match=r"out: got .* a new or empty folder"):
        train(recipe, tmp_path)
    assert contents(tmp_path) == {file.relative_to(tmp_path): b"mine"}


def test_the_command_says_so_in_one_line(tmp_path, capsys):
    (tmp_path / "notes.txt").touch()
    assert main(["train", "digits", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "notes.txt" in said


def test_a_run_replaces_a_run_and_leaves_other_files(recipe, tmp_path):
    train(recipe, tmp_path / "p")
    assert json.loads((tmp_path / "p" / "run.json").read_text())["pipeline"] == "digits"
    (tmp_path / "p" / "notes.txt").write_text("mine")
    train(recipe, tmp_path / "p", resume=True)
    train(load_recipe("digits", [*SMALL, "seed=3"]), tmp_path / "p")
    assert (tmp_path / "p" / "notes.txt").read_text() == "mine"


def test_a_work_folder_of_somebody_else_in_a_runs_folder_is_refused(recipe, tmp_path):
    train(recipe, tmp_path / "p")
    (tmp_path / "p" / "work").mkdir()
    (tmp_path / "p" / "work" / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="its 'work' was not created by visionshare"):
        train(recipe, tmp_path / "p")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "p" / "work" / "thesis.tex").unlink()
    (tmp_path / "p" / "work").rmdir()
    (tmp_path / "p" / "work").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="its 'work' was not created by visionshare"):
        train(recipe, tmp_path / "p")


def test_a_file_is_no_folder(recipe, tmp_path):
    (tmp_path / "p").touch()
    with pytest.raises(InputError, match="a folder"):
        train(recipe, tmp_path / "p")


def test_the_second_of_two_runs_touches_nothing(recipe, tmp_path):
    errors = []

    def second():
        try:
            train(load_recipe("digits", [*SMALL, "seed=9"]), tmp_path)
        except StoreError as error:
            errors.append(error)

    with run_folder(tmp_path, recipe):
        before = contents(tmp_path)
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        assert contents(tmp_path) == before
    assert "another process writes" in str(errors[0])


@pytest.mark.parametrize("name", ["../../etc", "/tmp/x", "a/b", "..", ".hidden", "", "a\\b", "-x"])
def test_names_of_recipes_are_names(name):
    with pytest.raises(RecipeError, match=r"name: .*letters, digits"):
        load_recipe("digits", [f"name={json.dumps(name)}"])


def test_a_source_is_not_empty():
    with pytest.raises(RecipeError, match=r"data\.source"):
        load_recipe("digits", ['data.source=""'])
