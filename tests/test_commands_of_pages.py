"""Every command and every snippet of the pages for users runs as written, in order."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from visionshare.cli.main import main

DOCS = Path(__file__).parents[1] / "docs"
# Pages that begin in an empty folder; a page's blocks run one after the other.
PAGES = ["quickstart", "own-pictures", "concepts", *sorted(
    f"howto/{page.stem}" for page in (DOCS / "howto").glob("*.md") if page.stem != "index"
)]  # fmt: skip
# Installation is tested with the packages themselves.
INSTALLATION = ("pip", "python3", ".")
# C that was exported, where there is a compiler.
COMPILED = ("make", "digits-c/example")


def _blocks(page):
    """Return the kind and the text of each block of code."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```(sh|python)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def _run(line):
    words = shlex.split(line, comments=True)
    if not words or words[0] in INSTALLATION:
        return
    if words[0] == "visionshare":
        assert main(words[1:]) == 0, line
    else:
        assert words[0] in COMPILED, line
        if shutil.which("make") and shutil.which("cc"):
            subprocess.run(words, check=True, timeout=300)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_written(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {"__name__": "page"}
    for kind, text in _blocks(page):
        if kind == "python":
            if "onnxruntime" in text:
                pytest.importorskip("onnxruntime")
            exec(compile(text, f"{page}.md", "exec"), names)
        else:
            for line in text.replace("\\\n", " ").splitlines():
                _run(line)
    assert os.listdir(tmp_path) or page in ("concepts", "howto/transfer")


def test_the_pages_are_those_that_users_read():
    assert {"quickstart", "own-pictures", "howto/small-cores", "howto/onnx"} <= set(PAGES)
    assert all(_blocks(page) for page in PAGES)
