"""visionshare predict and prepare: pictures as people have them."""

import csv
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare.batch.pictures import read_picture
from visionshare.cli.main import main
from visionshare.datasets import Preprocessing, load_dataset


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("predict")
    assert main(["train", "digits", "--out", str(out)]) == 0
    return out / "classifier.safetensors"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Return a folder of dark digits on large light canvases, and the digits."""
    folder, digits = tmp_path_factory.mktemp("photos"), load_dataset("digits", "test").images[:40]
    for i, digit in enumerate(digits):
        canvas = np.full((200, 160), 215, np.uint8)
        canvas[70:134, 20 + i : 84 + i] = 215 - np.kron(digit, np.ones((8, 8))) * 0.7
        Image.fromarray(canvas).save(folder / f"{i:02d}.png")
    return folder, digits


def rows(text):
    return [line.split("\t") for line in text.splitlines()]


def test_a_photograph_is_prepared_as_the_recipe_says(trained, photos, capsys):
    folder, _ = photos
    model = visionshare.load(trained)
    assert model.preprocessing == Preprocessing("automatic", contrast=True, crop=True, fit="box")
    assert main(["predict", str(trained), str(folder)]) == 0
    said = [name for _, name, _ in rows(capsys.readouterr().out)]
    truth = load_dataset("digits", "test").labels[:40].astype(str)
    assert np.mean(np.array(said) == truth) >= 0.9
    # Stretched as they are, they show small dark digits on light ground.
    assert main(["predict", str(trained), str(folder), "--skip-preprocessing"]) == 0
    stretched = [name for _, name, _ in rows(capsys.readouterr().out)]
    assert np.mean(np.array(stretched) == truth) < 0.5


def test_prepared_images_and_their_c_agree(trained, photos, tmp_path, capsys):
    folder, _ = photos
    raw, made = tmp_path / "images.raw", tmp_path / "made"
    assert main(["prepare", str(trained), str(folder), "--out", str(made), "--raw", str(raw)]) == 0
    assert len(list(made.iterdir())) == 40
    capsys.readouterr()
    said = []
    for where in ([str(folder)], [str(made), "--skip-preprocessing"]):
        assert main(["predict", str(trained), *where]) == 0
        said.append([row[1:] for row in rows(capsys.readouterr().out)])
    assert said[0] == said[1]
    content = np.frombuffer(raw.read_bytes(), np.uint8).reshape(-1, 8, 8)
    model = visionshare.load(trained)
    assert [str(c) for c in model.predict(content)] == [row[0] for row in said[0]]
    assert main(["export", str(trained), "--quantize", "none", "--out", str(tmp_path / "c")]) == 0
    header = (tmp_path / "c" / "classifier.h").read_text()
    words = " ".join(header.split())
    for step in model.preprocessing.describe():
        assert step in words
    subprocess.run(["make", "-C", tmp_path / "c"], check=True, capture_output=True)
    shown = subprocess.run(
        [tmp_path / "c" / "example", raw], check=True, capture_output=True, text=True
    )
    assert [row[0] for row in rows(shown.stdout)] == [row[0] for row in said[0]]


def test_onnx_says_how_pictures_are_prepared(trained):
    onnx = pytest.importorskip("onnx")
    from visionshare.export import onnx_program

    model = visionshare.load(trained)
    program = onnx.load_from_string(onnx_program(model).content)
    said = json.loads({entry.key: entry.value for entry in program.metadata_props}["pictures"])
    assert said.pop("steps") == model.preprocessing.describe()
    assert Preprocessing.from_values(said) == model.preprocessing


def test_evaluate_and_extract_prepare_too(trained, photos, tmp_path, capsys):
    from visionshare.store import open_store

    folder, _ = photos
    labels = load_dataset("digits", "test").labels
    for i, path in enumerate(sorted(folder.iterdir())):
        (tmp_path / "data" / str(labels[i])).mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / str(labels[i]) / path.name).write_bytes(path.read_bytes())
    figures = []
    for options in ([], ["--skip-preprocessing"]):
        assert main(["evaluate", str(trained), str(tmp_path / "data"), "--json", *options]) == 0
        figures.append(json.loads(capsys.readouterr().out)["error_rate"])
    assert figures[0] <= 0.1 < 0.5 < figures[1]
    out = tmp_path / "columns"
    assert main(["extract", str(trained), str(folder), "--out", str(out)]) == 0
    model = visionshare.load(trained)
    images = np.stack([read_picture(model, path) for path in sorted(folder.iterdir())])
    columns = open_store(out, model.family)
    np.testing.assert_allclose(
        columns.take(range(model.n_features)), model.family.transform(images), rtol=1e-6
    )


@pytest.mark.parametrize("form", [".csv", ".jsonl"])
def test_a_file_is_written_whole(trained, photos, tmp_path, form, capsys):
    out = tmp_path / f"a{form}"
    assert main(["predict", str(trained), str(photos[0]), "--out", str(out)]) == 0
    assert capsys.readouterr().out == ""
    if form == ".csv":
        with open(out, newline="") as file:
            written = [(row["image"], row["class"]) for row in csv.DictReader(file)]
    else:
        records = map(json.loads, out.read_text().splitlines())
        written = [(record["image"], str(record["class"])) for record in records]
    assert main(["predict", str(trained), str(photos[0])]) == 0
    assert written == [(path, name) for path, name, _ in rows(capsys.readouterr().out)]


def test_broken_images_are_named_and_the_others_go_on(trained, photos, tmp_path, capsys):
    good = next(photos[0].iterdir()).read_bytes()
    for name, content in (("a", good), ("b", b"broken"), ("c", good[:-40]), ("d", good)):
        (tmp_path / f"{name}.png").write_bytes(content)
    assert main(["predict", str(trained), str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert [path[-5:] for path, _, _ in rows(said.out)] == ["a.png", "d.png"]
    lines = said.err.splitlines()
    assert [line.split(":")[1][-5:] for line in lines[:2]] == ["b.png", "c.png"]
    assert lines[2] == "error: 2 of 4 images skipped"
    assert main(["predict", str(trained), str(tmp_path / "b.png")]) == 2
    out = tmp_path / "made.csv"
    assert main(["predict", str(trained), str(tmp_path / "?.png"), "--out", str(out)]) == 1
    assert len(out.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "options", [["--out", "a.txt"], ["--out", "/dev/null/a.csv"], ["--jobs", "0"]], ids=str
)
def test_wrong_options_are_one_line(trained, photos, options, capsys):
    assert main(["predict", str(trained), str(photos[0]), *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def many(trained, photos, tmp_path_factory):
    """Return a list of more paths than are classified without other processes."""
    folder = tmp_path_factory.mktemp("many")
    # Small ones are decoded quickly.
    paths = [folder / f"{number}.png" for number in range(len(photos[1]))]
    for path, digit in zip(paths, photos[1], strict=True):
        Image.fromarray(digit).save(path)
    listing = folder / "list.txt"
    listing.write_text("".join(f"{path}\n" for path in paths * 2500))
    return listing


def start(trained, many, **others):
    command = [sys.executable, "-m", "visionshare.cli", "predict", str(trained), "-"]
    command += ["--jobs", "2"]
    # Tests may run where interrupts are ignored, and what they start would ignore them too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open(many) as listing:
            return subprocess.Popen(
                command, stdin=listing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                **others,
            )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("lines", [1, 2600])
def test_a_closed_pipe_ends_it_quietly(trained, many, lines):
    process = start(trained, many)
    for _ in range(lines):
        assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(120) == 1


@pytest.mark.parametrize("lines", [1, 2600])
def test_ctrl_c_ends_it_in_one_line(trained, many, lines):
    import os

    # Ctrl-C is heard by every process of the terminal.
    process = start(trained, many, start_new_session=True)
    for _ in range(lines):
        assert process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (130, "stopped\n")
