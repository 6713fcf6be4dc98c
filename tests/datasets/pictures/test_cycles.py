"""Folders with links to themselves, to folders around them and to nowhere; folders without end."""

import os
import sys

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.cli.main import main
from visionshare.datasets.folders import find_images
from visionshare.datasets.readers.registry import find_pictures

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


@pytest.fixture
def folder(tmp_path):
    """Return two classes of two pictures each, with links that lead in circles and nowhere."""
    root = tmp_path / "pictures"
    for name in "ab":
        (root / name).mkdir(parents=True)
        for i in range(2):
            Image.new("L", (4, 4), 100 * i + ord(name)).save(root / name / f"{i}.png")
    (root / "a" / "self.png").symlink_to("self.png")
    (root / "a" / "nowhere.png").symlink_to("missing.png")
    (root / "a" / "ping.png").symlink_to("pong.png")
    (root / "a" / "pong.png").symlink_to("ping.png")
    (root / "a" / "here").symlink_to(".")
    (root / "b" / "up").symlink_to("..")
    (root / "cycle").symlink_to("../pictures")
    (root / "around").symlink_to("../..")
    (root / "loop").symlink_to("loop")
    return root


def test_readers_of_folders_take_each_picture_once(folder):
    expected = [folder / name / f"{i}.png" for name in "ab" for i in range(2)]
    assert find_images(folder) == expected
    pictures = find_pictures(folder)
    assert pictures.classes == ("a", "b")
    assert pictures.labels.tolist() == [0, 0, 1, 1]


def test_a_class_may_be_a_link_to_another_place(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    Image.new("L", (4, 4)).save(tmp_path / "elsewhere" / "1.png")
    (folder / "c").symlink_to(tmp_path / "elsewhere")
    assert find_pictures(folder).classes == ("a", "b", "c")


def test_predict_and_check_survive_them(folder, tmp_path, capsys):
    family = Pixels().fit(np.zeros((1, 4, 4), np.uint8))
    weights, intercept = np.eye(2, 16, dtype=np.float32), np.zeros(2, np.float32)
    file = tmp_path / "c.safetensors"
    CompactClassifier(family, weights, intercept, np.array(["a", "b"])).save(file)
    assert main(["predict", str(file), str(folder)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main(["predict", str(file), str(folder / "a" / "self.png")]) == 2
    assert "self.png" in capsys.readouterr().err
    assert main(["explain", str(file), str(folder / "a" / "self.png")]) == 2
    assert "is a link that leads nowhere" in capsys.readouterr().err
    assert main(["data", "check", str(folder), "--sheet", str(tmp_path / "sheet.png")]) == 0
    assert "4 of 2 classes" in capsys.readouterr().out


def test_folders_may_be_nested_deeper_than_calls(tmp_path):
    home, depth = os.getcwd(), sys.getrecursionlimit() + 100
    try:
        os.chdir(tmp_path)
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
        assert find_images(tmp_path) == []
    finally:
        # Not every version of Python removes such a folder itself.
        for _ in range(depth):
            os.chdir("..")
            os.rmdir("d")
        os.chdir(home)
