"""The short form of the attacks: ``python -m scripts.attack`` has the long one."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.attack.flips import FORMATS, flips
from scripts.attack.results import Result

ROOT = Path(__file__).parents[1]


def test_counts_add_up():
    result = Result()
    result.add("survived")
    assert not result.failed
    result.add("silent", "a.h5: other values")
    assert result.failed
    assert result.counts() == {"tries": 2, "survived": 1, "lost": 0, "silent": 1, "crashed": 0}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("kind", ["kills", "full-disk"])
def test_commands_survive(kind):
    command = [sys.executable, "-m", "scripts.attack", "--kinds", kind, "--n", "6", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    counts = json.loads(ended.stdout.splitlines()[-1])[kind]
    assert counts["survived"] == counts["tries"] == 6, ended.stderr
    assert ended.returncode == 0


def test_damaged_files_are_found():
    code = "import sys; from scripts.attack.flips import flips; r = flips(300, 1); print(r.faults);"
    code += "sys.exit(r.failed)"
    # A process of its own: it forks, which does not go with threads.
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_format_is_attacked():
    assert {"classifier", "store", "checkpoint", "idx", "family", "parts", "extraction"} <= set(
        FORMATS
    )
    assert callable(flips)
