"""Names of files that are no text, or look like formulas, in any locale; Ctrl-C at any moment."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.cli.main import main
from visionshare.cli.text import cell, one_line, portable

NAMES = [b"a\nb.png", b"\xff.png", "é.png".encode(), b"=1+2.png", b"-x.png"]
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
# Most tests run in a locale of UTF-8.
LOCALES = [
    pytest.param(ASCII, id="ascii"),
    pytest.param({"LC_ALL": "C.UTF-8"}, id="utf-8", marks=pytest.mark.exhaustive),
]


@pytest.fixture
def folder(tmp_path):
    """Return a folder of two classes of pictures whose names are hard."""
    rng = np.random.default_rng(0)
    for name in (b"caf\xe9", "ü".encode()):
        made = os.path.join(os.fsencode(tmp_path), b"pictures", name)
        os.makedirs(made)
        for number, picture in enumerate(NAMES):
            for copy in range(4):
                prefix = b"" if copy == 0 else str(copy).encode()
                path = os.path.join(made, prefix + picture)
                image = rng.integers(0, 120, (8, 8)) + 100 * (number % 2)
                with open(path, "wb") as file:
                    Image.fromarray(image.astype(np.uint8)).save(file, "png")
    return tmp_path / "pictures"


@pytest.fixture
def classifier(tmp_path):
    family = Pixels().fit(np.zeros((1, 8, 8))).take(np.arange(3))
    weights = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    classes = np.array(["=cmd", "é"])
    path = tmp_path / "small.safetensors"
    CompactClassifier(family, weights, np.zeros(2, np.float32), classes).save(path)
    return path


def run(arguments, locale, cwd, program=("-m", "visionshare.cli")):
    command = [sys.executable, *program, *map(os.fspath, arguments)]
    root = os.getcwd()
    environment = {**os.environ, "PYTHONPATH": root, **locale}
    return subprocess.run(command, capture_output=True, env=environment, cwd=cwd, check=False)


# Several commands of one process, which imports the library once; a zero ends what each says.
SEVERAL = """
import json, sys
from visionshare.cli.main import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0, words
    print(end=chr(0), flush=True)
"""


@pytest.mark.parametrize("locale", LOCALES)
def test_commands_manage_every_name(folder, classifier, tmp_path, locale):
    out = tmp_path / "labels.csv"
    predict = ["predict", str(classifier), str(folder)]
    extract = ["extract", *predict[1:], "--out", str(tmp_path / "s")]
    commands = [[*predict, "--out", str(out)], predict, [*predict, "--json"], extract]
    ended = run([json.dumps(commands)], locale, tmp_path, ("-c", SEVERAL))
    assert ended.returncode == 0, ended.stderr
    with open(out, encoding="utf-8", errors="surrogateescape", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40
    assert {os.path.basename(os.fsencode(row["image"])) for row in rows} >= set(NAMES)
    assert {row["class"] for row in rows} <= {"'=cmd", "é"}
    said = ended.stdout.split(b"\0")
    assert [len(lines.splitlines()) for lines in said[1:3]] == [40, 40]
    assert len((tmp_path / "s" / "images.txt").read_text("utf-8").splitlines()) == 40


@pytest.mark.parametrize("locale", LOCALES)
def test_classes_of_a_folder_are_the_same_in_every_locale(folder, tmp_path, locale):
    settings = [f"data.source={folder}", "data.height=8", "data.width=8", "data.held_out=0.3"]
    settings += ["features.pool=pixels", "preprocessing.fit=resize"]
    words = [word for text in settings for word in ("--set", text)]
    ended = run(["train", "digits", "--out", tmp_path / "p", "--rounds", "2", *words], locale, "/")
    assert ended.returncode == 0, ended.stderr
    model = CompactClassifier.load(tmp_path / "p" / "classifier.safetensors")
    assert model.classes_.tolist() == ["caf\\xe9", "ü"]


def test_errors_name_broken_pictures_in_one_line(classifier, tmp_path, capsys):
    path = tmp_path / "a\nb\x1b[31m.png"
    path.write_bytes(b"nothing")
    assert main(["predict", str(classifier), str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("given", "written"),
    [("=1", "'=1"), ("+a", "'+a"), ("-2.5", "-2.5"), ("-", "-"), ("@x", "'@x"), (7, "7")],
)
def test_cells_are_no_formulas(given, written):
    assert cell(given) == written


def test_fields_of_lines():
    assert portable("é \u2028\t") == "é \\u2028\\t"
    assert one_line("a\n b") == "a b"
    assert json.loads(json.dumps("\udcff")) == portable("\udcff")


def test_ctrl_c_while_modules_are_imported_is_one_line(classifier, folder, tmp_path):
    command = [sys.executable, "-m", "visionshare.cli", "predict", str(classifier), str(folder)]
    # From the first module that a command imports on.
    code = (
        "import sys, visionshare.cli.main as m\n"
        "class Watch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer':\n"
        "            print(1, flush=True)\n"
        "sys.meta_path.insert(0, Watch())\n"
        "sys.exit(m.command())"
    )
    command[1:3] = ["-c", code]
    for delay in (0.05, 0.1, 0.2, 0.4, 0.8):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == b"1\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        # Python itself ends by the signal once it has given up its handlers: 130 in a shell.
        assert process.returncode in (0, 130, -signal.SIGINT)
        assert b"Traceback" not in said
        assert said in (b"", b"stopped\n")
