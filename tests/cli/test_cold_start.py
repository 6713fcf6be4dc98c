"""What a command imports: a cold process answers at once only where it imports little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from visionshare import Pixels
from visionshare.classifier import CompactClassifier
from visionshare.cli.main import main

# Each takes longer to import than everything that prediction needs.
HEAVY = {"sklearn", "pandas", "pyarrow", "scipy.linalg", "tqdm"}


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    family = Pixels().fit(np.zeros((2, 4, 4), np.uint8))
    file = tmp_path / "classifier.safetensors"
    CompactClassifier(
        family, np.eye(3, 16, dtype=np.float32), np.zeros(3, np.float32), np.arange(3)
    ).save(file)
    Image.new("L", (4, 4), 9).save(tmp_path / "a.png")
    return file


@pytest.mark.parametrize("command", ["inspect", "predict", "--version"])
def test_what_answers_at_once_imports_nothing_heavy(classifier: Path, command: str) -> None:
    arguments = [command, str(classifier), str(classifier.parent / "a.png")]
    arguments = arguments[: {"--version": 1, "inspect": 2}.get(command, 3)]
    done, imported = _run(arguments)
    assert done.returncode == 0, done.stderr
    assert sorted(HEAVY & imported) == []
    assert done.stdout


def _run(arguments: list[str]) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run a command in a process of its own; return also what it imported."""
    code = (
        "import sys; from visionshare.cli.main import main; "
        f"code = main({arguments!r}); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done, set(done.stderr.split())


@pytest.mark.parametrize("words", ["nosuchdir", "digits --jobs 0", "digits --budget x"])
def test_what_train_refuses_at_once_imports_nothing_heavy(words: str) -> None:
    done, imported = _run(["train", *words.split()])
    assert done.returncode == 2
    assert sorted((HEAVY | {"numba", "visionshare.learners"}) & imported) == []
    assert done.stderr.startswith("error: ")


def test_the_folder_of_a_run_stands_for_its_classifier(classifier: Path, capsys) -> None:
    picture = str(classifier.parent / "a.png")
    assert main(["predict", str(classifier), picture]) == 0
    of_file = capsys.readouterr().out
    assert main(["predict", str(classifier.parent), picture]) == 0
    assert capsys.readouterr().out == of_file
    assert main(["inspect", str(classifier.parent / "none")]) == 2
