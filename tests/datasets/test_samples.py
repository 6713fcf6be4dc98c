"""Sample pictures: what is written, and that it is the same each time."""

from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare.cli.main import main
from visionshare.datasets.catalog_sets import load_digits
from visionshare.datasets.readers.class_folders import folder_pictures
from visionshare.datasets.samples import SAMPLES, sign_picture, write_samples
from visionshare.errors import InputError


def _first_pictures(seed):
    """Return a few pictures of each kind, by their names."""
    made = {}
    for number, (pictures, _) in enumerate(SAMPLES.values()):
        made |= islice(pictures(np.random.default_rng([seed, number])), 3)
    return made


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parent") / "samples"
    write_samples(folder)
    return folder


def test_what_is_written(written):
    assert sorted(p.name for p in written.iterdir()) == sorted(
        [*SAMPLES, "mosaic.png", "serial.png", "amount.png"]
    )
    counts = {
        name: len(folder_pictures(written / name)) for name in ("digits", "signs", "textures")
    }
    assert counts == {"digits": 1000, "signs": 360, "textures": 180}
    assert len(list((written / "scans").iterdir())) == 10


def test_the_same_seed_gives_the_same_pictures(written):
    first = _first_pictures(0)
    for name, pixels in first.items():
        assert_array_equal(np.asarray(Image.open(written / name)), pixels)
    other = _first_pictures(1)
    same = [name for name in first if np.array_equal(first[name], other[name])]
    # Nothing is random in digits, the mosaic and a meter without noise.
    assert {name.split("/")[0] for name in same} <= {"digits", "mosaic.png", "meter"}


def test_scans_trained_nothing(written):
    """Their digits are of the test part, those of the folders of the training part."""
    training = {image.tobytes() for image in load_digits("train").images}
    stored = {np.asarray(Image.open(p)).tobytes() for p in (written / "digits").rglob("*.png")}
    tests = {image.tobytes() for image in load_digits("test").images}
    assert stored <= training
    assert not stored & (tests - training)


def test_signs_differ_in_color_and_shape():
    red = dict.fromkeys(("stop", "parking"), 0.0)
    for name in red:
        picture = sign_picture(name, np.random.default_rng(3)).astype(float)
        center = picture[10:22, 10:22]
        red[name] = float((center[..., 0] - center[..., 2]).mean())
    assert red["stop"] > 20
    assert red["parking"] < -20


def test_what_is_there_is_kept(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("kept")
    assert main(["samples", str(tmp_path / "mine")]) == 2
    assert "nothing has yet" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["letter.txt"]
    with pytest.raises(InputError, match="random_state"):
        write_samples(tmp_path / "new", random_state=-1)
    with pytest.raises(InputError, match="name"):
        sign_picture("go", np.random.default_rng(0))
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]
