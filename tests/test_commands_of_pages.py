"""Every command and every snippet of the pages for users runs as written, in order."""

import gzip
import os
import re
import shlex
import shutil
import subprocess
from glob import glob
from pathlib import Path

import cv2
import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare.cli.main import main
from visionshare.datasets import catalog

DOCS = Path(__file__).parents[1] / "docs"
# Pages that begin in an empty folder; a page's blocks run one after the other.
PAGES = ["quickstart", "own-pictures", "concepts", *sorted(
    f"{folder}/{page.stem}" for folder in ("families", "howto")
    for page in (DOCS / folder).glob("*.md")
    if page.stem != "index" and f"{folder}/{page.stem}" != "families/sources"
)]  # fmt: skip
# Pages that name what a reader has: they begin in a folder of such things, see `reader`.
READERS_PAGES = ["families/sources", "index"]
# Those that take minutes: run where VISIONSHARE_LONG is set, as by scripts/pages.
LONG_PAGES = [
    "../README", "commands", "design", "edge", "explaining", "image_classifier", "pictures",
    "reading", "small_cores",
]  # fmt: skip
# What stands for what a reader has, and for times of half an hour.
STAND_INS = {"DATA": "data", "DIR": "data", "--time 30m": "--time 20s", "--time 5m": "--time 10s"}
# The classifier of a line is that of the data it names: the first that is found in it.
CLASSIFIERS = {"mnist": "mnist", "photo": "photos", "read ": "ocr", "": "digits"}
# What is learned before a page begins.
PREPARED = {
    "edge": ["visionshare train mnist --data data"],
    "reading": ["visionshare train ocr"],
}
# Pages with code that is not run, each with the reason; options and imports of all are checked.
NOT_RUN = {
    "../CONTRIBUTING": "it calls the scripts of a clone, tests among them",
    "adding": "parts of classes that a reader completes",
    "clusters": "workers, a scheduler and object storage; scripts/cluster runs them",
    "service": "a service that runs until it is stopped, and curl",
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
    words = [
        name
        for word in shlex.split(line, comments=True)
        for name in ((sorted(glob(word)) if "*" in word and "[" not in word else []) or [word])
    ]
    if not words or words[0] in INSTALLATION or words[0].startswith("scripts/"):
        return
    if words[0] == "visionshare":
        assert main(words[1:]) == 0, line
    else:
        assert words[0] in COMPILED, line
        if shutil.which("make") and shutil.which("cc"):
            subprocess.run(words, check=True, timeout=300)


def _with_stand_ins(line):
    for word, thing in STAND_INS.items():
        line = re.sub(rf"(?<![\w.]){re.escape(word)}(?!\w)", thing, line)
    name = next(name for word, name in CLASSIFIERS.items() if word in line)
    return line.replace("CLASSIFIER", f"out/{name}/classifier.safetensors")


def _run_page(page, stand_ins=False):
    names = {"__name__": "page"}
    for kind, text in _blocks(page):
        text = "\n".join(_with_stand_ins(line) for line in text.splitlines()) if stand_ins else text
        if kind == "python":
            if "onnxruntime" in text:
                pytest.importorskip("onnxruntime")
            exec(compile(text, f"{page}.md", "exec"), names)
        else:
            for line in text.replace("\\\n", " ").splitlines():
                _run(line)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_written(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    _run_page(page)
    files = os.listdir(tmp_path)
    in_memory = ("concepts", "howto/transfer", "howto/targets")
    assert files or page in in_memory or page.startswith("families/")


def _write_mnist(folder):
    """Write a small set of files as MNIST has them: digits of scikit-learn, 28 pixels large."""
    digits = load_digits()
    images = [cv2.resize(image.astype(np.float32) * 15, (20, 20)) for image in digits.images[:700]]
    images = np.pad(np.array(images).astype(np.uint8), ((0, 0), (4, 4), (4, 4)))
    folder.mkdir(parents=True)
    for name, part in (("train", slice(500)), ("t10k", slice(500, 700))):
        pixels, labels = images[part], digits.target[:700][part].astype(np.uint8)
        head = np.array([2051, len(pixels), 28, 28], ">i4").tobytes()
        file = folder / f"{name}-images-idx3-ubyte.gz"
        file.write_bytes(gzip.compress(head + pixels.tobytes()))
        head = np.array([2049, len(labels)], ">i4").tobytes()
        file = folder / f"{name}-labels-idx1-ubyte.gz"
        file.write_bytes(gzip.compress(head + labels.tobytes()))


@pytest.fixture(scope="module")
def readers_things(tmp_path_factory):
    """Return a folder of what a reader has: pictures, data, a classifier."""
    folder = tmp_path_factory.mktemp("reader")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["train", "digits"]) == 0
        assert main(["samples", "s"]) == 0
    finally:
        os.chdir(before)
    for target, classes in {"photos": ("stop", "yield"), "sources": ("stop", "parking")}.items():
        for name in classes:
            files = sorted((folder / "s" / "signs" / name).iterdir())[:24]
            (folder / target / name).mkdir(parents=True)
            for file in files:
                shutil.copy(file, folder / target / name)
    (folder / "photos" / "yield").rename(folder / "photos" / "cat")
    for name in ("new", "scans"):
        shutil.copytree(folder / "s" / "scans", folder / name)
    sign = cv2.imread(str(next((folder / "photos" / "cat").iterdir())))
    cv2.imwrite(str(folder / "photo.png"), sign)
    cv2.imwrite(str(folder / "new" / "sign.jpg"), sign)
    shutil.copy(folder / "s" / "page.png", folder / "page.png")
    classifier = folder / "out" / "digits" / "classifier.safetensors"
    for name in ("letters.safetensors", "classifier.safetensors"):
        shutil.copy(classifier, folder / name)
    _write_mnist(folder / "data" / "mnist")
    shutil.rmtree(folder / "s")
    return folder


@pytest.mark.parametrize("page", READERS_PAGES + LONG_PAGES)
def test_a_page_runs_with_stand_ins(page, readers_things, tmp_path, monkeypatch, capsys):
    if page in LONG_PAGES and "VISIONSHARE_LONG" not in os.environ:
        pytest.skip("minutes; scripts/pages runs it")
    if page == "edge":
        pytest.importorskip("ziglang")
        pytest.importorskip("unicorn")
    folder = tmp_path / "reader"
    shutil.copytree(readers_things, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "agg")
    # The small stand-in is not the published set, and its digest is another.
    monkeypatch.setattr(catalog, "_is_the_file", lambda file, listed: True)
    monkeypatch.setattr(catalog, "_check_shape", lambda info, part, images, labels: None)
    for line in PREPARED.get(page, ()):
        _run(line)
    _run_page(page, stand_ins=True)


def test_the_pages_are_those_that_users_read():
    assert {"quickstart", "own-pictures", "howto/small-cores", "howto/onnx"} <= set(PAGES)
    assert all(_blocks(page) for page in PAGES)


def test_every_page_with_code_is_run_or_says_why_not():
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    pages |= {f"../{page.stem}" for page in DOCS.parent.glob("*.md")}
    pages = {page for page in pages if not page.startswith("decisions/")}
    listed = [*PAGES, *READERS_PAGES, *LONG_PAGES, *NOT_RUN]
    assert sorted(page for page in pages if _blocks(page)) == sorted(listed)
