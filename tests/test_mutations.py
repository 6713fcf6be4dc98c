"""Lost power, and deliberate faults that attacks and tests must notice."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.attack.faults import FAULTS
from scripts.attack.mutations import Mutation
from scripts.attack.power import lose_power, record_flushes, remember
from visionshare.files.durable import new_folder

ROOT = Path(__file__).parents[1]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def attack(*arguments):
    """Run attacks in a process of their own: they fork, which does not go with threads."""
    command = [sys.executable, "-m", "scripts.attack", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@needs_compiler
def test_commands_survive_lost_power():
    said = attack("--kinds", "power", "--parts", "save,export-onnx", "--n", 19, "--json")
    counts = json.loads(said.splitlines()[-1])
    assert counts["power"]["survived"] == counts["power"]["tries"] == 19


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A folder whose flushes are recorded, and a function that loses the power."""
    # The recording replaces it.
    monkeypatch.setattr(os, "fsync", os.fsync)
    folder, memory = tmp_path / "disk", tmp_path / "memory"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "a").write_text("a")
    remember(folder, memory)
    record_flushes(memory)

    def lose(names_survive):
        lose_power(folder, memory, names_survive=names_survive)
        return {
            str(path.relative_to(folder)): path.read_text() if path.is_file() else None
            for path in sorted(folder.rglob("*"))
        }

    return folder, lose


@pytest.mark.parametrize("names_survive", [True, False])
def test_what_was_not_flushed_is_lost(disk, names_survive):
    folder, lose = disk
    (folder / "old" / "a").write_text("changed")
    (folder / "b").write_text("b")
    with open(folder / "c", "w") as file:
        file.write("half")
        file.flush()
        os.fsync(file)
        file.write(", whole")
    (folder / "old" / "a").rename(folder / "old" / "d")
    left = lose(names_survive)
    if names_survive:
        assert left == {"b": "", "c": "half", "old": None, "old/d": "a"}
    else:
        assert left == {"old": None, "old/a": "a"}


@pytest.mark.parametrize("names_survive", [True, False])
def test_a_new_folder_survives_lost_power(disk, names_survive):
    folder, lose = disk
    with new_folder(folder / "deep" / "new") as new:
        (new / "inner").mkdir()
        (new / "inner" / "b").write_text("b")
    left = lose(names_survive)
    assert left["deep/new/inner/b"] == "b"


def test_a_fault_applies_or_is_an_error(tmp_path):
    file = tmp_path / "visionshare" / "a.py"
    file.parent.mkdir()
    file.write_text("x = 1\ny = 1\n")
    restore = Mutation("other", "a.py", "x = 1", "x = 2", "").apply(tmp_path)
    assert file.read_text() == "x = 2\ny = 1\n"
    restore()
    assert file.read_text() == "x = 1\ny = 1\n"
    for text in ("= 1", "z = 1"):
        with pytest.raises(ValueError, match=r"its text is [02] × in"):
            Mutation("other", "a.py", text, "", "").apply(tmp_path)
    with pytest.raises(ValueError, match="0 ×"):
        Mutation("other", "b.py", "x = 1", "", "").apply(tmp_path)


def test_every_fault_applies_to_the_source(tmp_path):
    for fault in FAULTS:
        copy = tmp_path / "visionshare" / fault.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / "visionshare" / fault.file, copy)
        fault.apply(tmp_path)
        compile(copy.read_text("utf-8"), fault.file, "exec")
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 20


# One that tests notice, and one that attacks do.
@needs_compiler
@pytest.mark.parametrize(
    "name",
    [
        "cells may be formulas",
        pytest.param("no flush of a folder", marks=pytest.mark.exhaustive),
    ],
)
def test_faults_are_noticed(name, tmp_path):
    out = tmp_path / "faults.json"
    said = attack("--mutations", "--parts", name, "--out", out)
    assert said.endswith("1 of 1 noticed\n")
    assert set(json.loads(out.read_text())["faults"]) == {name}
    # The results of this source are kept.
    assert attack("--mutations", "--parts", name, "--out", out) == said
