"""Things in a picture: where they are, at several sizes, and nothing where there is nothing."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image
from typer.testing import CliRunner

from visionshare import PatchTemplates, ShareBoost
from visionshare.classifier import learn_unknown_rule
from visionshare.cli.application import app
from visionshare.columns import ArrayColumns
from visionshare.datasets import Preprocessing
from visionshare.errors import InputError
from visionshare.reading.finding import find, overlap


def crops(n, seed, most=1):
    """Return pictures of a bar that lies or stands, which is never quite in the middle."""
    rng = np.random.default_rng(seed)
    images = np.full((n, 48, 48), 20, np.uint8)
    images[::2, 14:24, 8:40] = 220
    images[1::2, 8:40, 14:24] = 220
    shifts = rng.integers(-4 * most, 4 * most + 1, (n, 2)).tolist()
    moved = [np.roll(i, s, (0, 1)) for i, s in zip(images, shifts, strict=True)]
    small = np.stack([cv2.resize(i, (12, 12), interpolation=cv2.INTER_AREA) for i in moved])
    return (small + rng.integers(0, 12, small.shape)).astype(np.uint8)


@pytest.fixture(scope="module")
def model():
    images = crops(600, 0)
    family = PatchTemplates(5, 12, 1, (2.0,), n_patches=2000).fit(images)
    columns = ArrayColumns.from_family(family, images)
    learner = ShareBoost(rounds=6).fit(columns, np.arange(600) % 2)
    plain = learner.to_classifier(family, ["lying", "standing"])
    return replace(plain, unknown=learn_unknown_rule(plain, images, crops(600, 1)))


@pytest.fixture(scope="module")
def picture():
    """Return a gray wall with a lying bar and a standing one."""
    rng = np.random.default_rng(2)
    wall = rng.integers(115, 125, (40, 66), np.uint8)
    wall[6:18, 10:22], wall[20:32, 40:52] = crops(2, 3, 0)
    return wall


@pytest.mark.parametrize("size", [1, 3])
def test_things_are_found_at_their_place_and_size(model, picture, size):
    large = np.kron(picture, np.ones((size, size), np.uint8))
    found = find(model, large, smallest=12 * size, scale=2)
    by_label = {one.label: one for one in found}
    assert len(found) == 2
    for label, box in (("lying", (6, 10, 18, 22)), ("standing", (20, 40, 32, 52))):
        ours = np.array(by_label[label].box, float)
        assert overlap(ours, size * np.array([box], float))[0] > 0.5
    assert found[0].score >= found[1].score


def test_windows_are_seen_in_the_picture_or_cut_out(model, picture):
    # Nothing of these steps changes a window, but each one passes them.
    whole = Preprocessing("light_on_dark", arithmetic="whole")
    cut = find(replace(model, preprocessing=whole), picture)
    shared = find(model, picture)
    assert [one.box for one in shared] == [one.box for one in cut]
    assert_allclose([one.score for one in shared], [one.score for one in cut], rtol=1e-3)


def test_nothing_is_found_on_a_wall_or_in_a_picture_that_is_too_small(model, picture):
    assert find(model, picture[:, 53:]) == []
    assert find(model, picture[:8, :8]) == []


def test_the_command_writes_boxes_and_a_picture(model, picture, tmp_path):
    model.save(tmp_path / "c.safetensors")
    Image.fromarray(picture).save(tmp_path / "wall.png")
    arguments = ["find", str(tmp_path / "c.safetensors"), str(tmp_path / "wall.png"), "--jobs", "1"]
    overlay = tmp_path / "found.png"
    said = CliRunner().invoke(app, [*arguments, "--json", "--overlay", str(overlay)])
    assert said.exit_code == 0, said.output
    found = json.loads(said.output)["found"]
    assert [tuple(record["box"]) for record in found] == [one.box for one in find(model, picture)]
    with Image.open(overlay) as drawn:
        assert drawn.size == (66, 40)
    lines = CliRunner().invoke(app, arguments).output.splitlines()
    assert len(lines) == 2


def test_with_a_background_bars_are_found_on_noise(model):
    rng = np.random.default_rng(4)
    photographs = [rng.integers(0, 256, (9, 12), np.uint8).repeat(6, 0).repeat(6, 1) for _ in "12"]
    known, held_out = crops(600, 0), crops(600, 1)
    rule = learn_unknown_rule(model, known, held_out, background=photographs[:1])
    picture = photographs[1].copy()
    picture[20:32, 30:42] = crops(1, 3, 0)[0]
    surest = find(replace(model, unknown=rule), picture)[0]
    assert surest.label == "lying"
    assert overlap(np.array(surest.box, float), np.array([[20, 30, 32, 42.0]]))[0] > 0.5
    for bad in ([], [photographs[0].astype(float)], [np.zeros((9, 9, 3), np.uint8)]):
        with pytest.raises(InputError, match="background"):
            learn_unknown_rule(model, known, held_out, background=bad)


def test_of_a_folder_each_line_names_the_picture(model, picture, tmp_path):
    model.save(tmp_path / "c.safetensors")
    walls = tmp_path / "walls"
    walls.mkdir()
    Image.fromarray(picture).save(walls / "a.png")
    Image.fromarray(picture[:, 53:]).save(walls / "b.png")
    (walls / "broken.png").write_bytes(b"nothing")
    arguments = ["find", str(tmp_path / "c.safetensors"), str(walls), "--jobs", "1"]
    said = CliRunner().invoke(app, [*arguments, "--overlay", str(tmp_path / "boxes")])
    lines = said.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(str(walls / "a.png")) for line in lines)
    assert "1 of 3 pictures" in str(said.exception)
    assert sorted(file.name for file in (tmp_path / "boxes").iterdir()) == ["a.png", "b.png"]
    one = CliRunner().invoke(app, [*arguments, "--overlay", str(tmp_path / "boxes.png")])
    assert "several pictures" in str(one.exception)


def test_overlap_is_intersection_over_union():
    others = np.array([[0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6]], float)
    assert_allclose(overlap(others[0], others), [1, 1 / 7, 0])


@pytest.mark.parametrize("bad", [{"step": 0}, {"scale": 1.0}, {"least": 2}, {"smallest": 1}])
def test_arguments_are_checked(model, picture, bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        find(model, picture, **bad)
    with pytest.raises(InputError, match="reject"):
        find(replace(model, unknown=None), picture)
