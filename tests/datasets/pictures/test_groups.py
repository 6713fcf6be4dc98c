"""Groups: pictures of one object, writer or burst train together or test together."""

import csv

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image
from typer.testing import CliRunner

from visionshare.cli.application import app
from visionshare.datasets import ImageSet
from visionshare.datasets.copies import joined_groups
from visionshare.datasets.pictures.bursts import bursts_note
from visionshare.datasets.pictures.splits import split_pictures
from visionshare.datasets.readers.groups import picture_groups
from visionshare.datasets.readers.registry import find_pictures
from visionshare.errors import InputError
from visionshare.image_classifier.copies import grouped, parts_of
from visionshare.recipes.stages.refusal import calibrating_mask


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return two classes of 20 objects, each photographed three times, and a table of them."""
    root = tmp_path_factory.mktemp("objects")
    rng = np.random.default_rng(0)
    rows = []
    for number in range(40):
        name = ("cup", "hat")[number % 2]
        (root / name).mkdir(exist_ok=True)
        picture = rng.integers(0, 200, (12, 12))
        for shot in range(3):
            file = root / name / f"{number}_{shot}.png"
            Image.fromarray((picture + rng.integers(0, 9, (12, 12))).astype(np.uint8)).save(file)
            rows.append([str(file.relative_to(root)), name, f"object {number}"])
    with open(root / "all.csv", "w", newline="") as file:
        csv.writer(file).writerows([["path", "label", "thing"], *rows])
    return root


def objects_of(images):
    return {name.rsplit("/")[-1].split("_")[0] for name in images.names}


@pytest.mark.parametrize(("source", "groups"), [("", r"^(.*)_\d"), ("all.csv", "thing")])
def test_a_pattern_or_a_column_keeps_objects_together(folder, source, groups):
    pictures = find_pictures(folder / source)
    together = picture_groups(folder / source, pictures, groups)
    assert len(set(together.tolist())) == 40
    made = split_pictures(pictures, together=together)
    assert not objects_of(made.training) & objects_of(made.test)
    assert (len(made.training), len(made.test)) == (96, 24)
    plain = split_pictures(pictures)
    assert objects_of(plain.training) & objects_of(plain.test)
    # Trials and calibration keep them together, too.
    parts = parts_of(made.training, 0)
    held = made.training.subset(parts.compared), made.training.subset(parts.learning)
    assert not objects_of(held[0]) & objects_of(held[1])
    mask = calibrating_mask(made.training, 0)
    calibrating = made.training.subset(np.flatnonzero(mask))
    assert not objects_of(calibrating) & objects_of(made.training.subset(np.flatnonzero(~mask)))


@pytest.mark.parametrize("groups", ["(", "no such name"])
def test_what_matches_nothing_is_refused(folder, groups):
    with pytest.raises(InputError, match="groups: got"):
        picture_groups(folder, find_pictures(folder), groups)
    said = CliRunner().invoke(app, ["train", str(folder), "--groups", groups])
    assert "--groups" in str(said.exception)


def test_groups_are_joined_where_one_of_two_says_so():
    first = np.array([0, 0, 1, 2, 3])
    second = np.array([5, 6, 6, 7, 8])
    assert_array_equal(joined_groups(first, second), [0, 0, 0, 1, 2])
    assert joined_groups(first[:0], second[:0]).shape == (0,)


def test_groups_of_arrays_are_any_labels_and_follow_their_images():
    images = ImageSet(
        np.arange(24, dtype=np.uint8).reshape(6, 2, 2), np.arange(6) % 2, ("a", "b"), "x"
    )
    made = grouped(images, ["u", "v", "u", "w", "v", "x"])
    assert_array_equal(made.kept_together, [0, 1, 0, 2, 1, 3])
    assert_array_equal(made.subset([4, 1]).kept_together, [0, 0])
    assert_array_equal(made.of_classes(["b"]).groups, [1, 2, 3])
    with pytest.raises(InputError, match="groups"):
        grouped(images, [1, 2])


def test_bursts_are_told_and_other_numbered_pictures_are_not():
    rng = np.random.default_rng(1)
    scenes = np.repeat(rng.integers(0, 200, (20, 12, 12)), 4, axis=0)
    images = (scenes + rng.integers(0, 9, scenes.shape)).astype(np.uint8)
    names = [f"photos/IMG_{number:04}.jpg" for number in range(80)]
    labels = np.arange(80) % 2
    (note,) = bursts_note(images, labels, names)
    assert "60 of 79" in note
    assert "IMG_0000.jpg and IMG_0001.jpg" in note
    assert bursts_note(images[rng.permutation(80)], labels, names) == []
    assert bursts_note(images, labels, ["a" * (number + 1) for number in range(80)]) == []
