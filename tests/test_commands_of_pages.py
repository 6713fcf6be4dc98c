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
    f"{folder}/{page.stem}" for folder in ("families", "howto")
    for page in (DOCS / folder).glob("*.md")
    if page.stem != "index" and f"{folder}/{page.stem}" != "families/sources"
)]  # fmt: skip
# Pages with code that is not run, each with the reason; options and imports of all are checked.
NOT_RUN = {
    "../CONTRIBUTING": "it calls the scripts of a clone, tests among them",
    "../README": "it makes an environment and searches recipes for longer than a test may",
    "adding": "parts of classes that a reader completes",
    "clusters": "workers, a scheduler and object storage",
    "commands": "MNIST, pictures of the reader, and minutes of training",
    "design": "MNIST and half an hour of search",
    "edge": "compilers and emulators of small cores",
    "explaining": "pictures and classifiers of the reader",
    "families/sources": "a classifier of the reader",
    "image_classifier": "it searches recipes for longer than a test may",
    "index": "its lines are those of the quickstart",
    "pictures": "pictures of the reader and minutes of search",
    "reading": "minutes of training and scans of the reader",
    "service": "a service that runs until it is stopped, and curl",
    "small_cores": "MNIST",
}
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
    files = os.listdir(tmp_path)
    assert files or page in ("concepts", "howto/transfer") or page.startswith("families/")


def test_the_pages_are_those_that_users_read():
    assert {"quickstart", "own-pictures", "howto/small-cores", "howto/onnx"} <= set(PAGES)
    assert all(_blocks(page) for page in PAGES)


def test_every_page_with_code_is_run_or_says_why_not():
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    pages |= {f"../{page.stem}" for page in DOCS.parent.glob("*.md")}
    pages = {page for page in pages if not page.startswith("decisions/")}
    assert {page for page in pages if _blocks(page)} == {*PAGES} | {*NOT_RUN}
    assert not {*PAGES} & {*NOT_RUN}
