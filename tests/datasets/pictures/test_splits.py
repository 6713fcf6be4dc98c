"""Training and test images: given or kept aside, copies on one side, notes that say so."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare.datasets.pictures.reading import ReadPictures
from visionshare.datasets.pictures.splits import held_out, split_pictures
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import InputError


def picture_set(images, labels, roles=None, classes=("a", "b", "c")):
    def contents():
        return (Content(f"image {i}", image) for i, image in enumerate(images))

    return PictureSet("set", classes, np.array(labels), roles, contents)


def random_images(n):
    return np.random.default_rng(0).integers(0, 256, (n, 5, 5), np.uint8)


def test_a_part_of_each_class_is_kept_aside_the_same_one_each_time():
    labels = np.repeat([0, 1, 2], [50, 20, 3])
    first, second = (split_pictures(picture_set(random_images(73), labels)) for _ in range(2))
    assert first.test_origin == "held out"
    assert np.bincount(first.test.labels).tolist() == [10, 4, 1]
    assert_array_equal(first.test.images, second.test.images)
    assert len(first.training) == 73 - 15
    pixels = {image.tobytes() for image in first.training.images}
    assert not any(image.tobytes() in pixels for image in first.test.images)
    assert any("holding out" in note for note in first.notes)


def test_parts_of_many_images_keep_their_labels():
    n = 1000
    images = np.arange(n, dtype=np.uint32).view(np.uint8).reshape(n, 2, 2)
    split = split_pictures(picture_set(images, np.arange(n) % 3))
    for part in (split.training, split.test):
        numbers = part.images.reshape(-1, 4).copy().view(np.uint32)[:, 0]
        assert_array_equal(part.labels, numbers % 3)
        assert np.all(np.diff(numbers.astype(int)) > 0)
    assert len(split.training) + len(split.test) == n


def test_copies_stay_on_one_side():
    images = random_images(10).repeat(4, axis=0)
    split = split_pictures(picture_set(images, np.arange(40) // 4 % 2), test_fraction=0.4)
    pixels = {image.tobytes() for image in split.training.images}
    assert not any(image.tobytes() in pixels for image in split.test.images)
    assert len(split.test) == 16
    assert split.n_leaked == 0
    assert any("copies of others" in note for note in split.notes)


def test_without_a_test_picture_there_is_none():
    split = split_pictures(picture_set(random_images(6), [0, 0, 1, 1, 2, 2]), test_fraction=0)
    assert split.test_origin == "none"
    assert len(split.test) == 0
    assert any("no test error" in note for note in split.notes)
    alone = split_pictures(picture_set(random_images(2), [0, 1], classes=("a", "b")))
    assert alone.test_origin == "none"
    assert len(alone.training) == 2


def test_a_given_split_is_kept_and_its_leaks_are_told():
    images = random_images(6)
    images[5] = images[0]
    split = split_pictures(picture_set(images, [0, 1, 2, 0, 1, 0], np.array([0, 0, 0, 2, 1, 1])))
    assert split.test_origin == "given"
    assert (len(split.training), len(split.test), split.n_leaked) == (3, 2, 1)
    assert "1 of 2 test pictures are training pictures too" in split.notes[0]
    assert "image 5 and image 0" in split.notes[0]
    with pytest.raises(InputError, match="test_fraction"):
        split_pictures(picture_set(images, [0] * 6, np.arange(6) % 2), test_fraction=0.2)


def test_pictures_for_validation_are_kept_apart_or_test():
    images = random_images(24)
    images[20] = images[0]
    roles = np.repeat([0, 2], [16, 8])
    pictures = picture_set(images, [0, 1, 2] * 8, roles)
    # Nothing else tests.
    split = split_pictures(pictures)
    assert (len(split.training), len(split.test), split.test_origin) == (16, 8, "given")
    assert split.validation is None
    # They are to choose: a part of the training pictures tests, and a copy of one chooses nothing.
    split = split_pictures(pictures, validates=True)
    assert split.test_origin == "held out"
    assert len(split.training) + len(split.test) == 16
    expected = [image for i, image in enumerate(images[16:]) if i != 4]
    assert_array_equal(split.validation.images[..., 0], np.array(expected)[..., 0])
    again = split_pictures(pictures, test_fraction=0.2)
    assert_array_equal(again.training.images, split.training.images)
    assert_array_equal(again.test.images, split.test.images)
    with_test = picture_set(images, [0, 1, 2] * 8, np.repeat([0, 1, 2], 8))
    split = split_pictures(with_test, validates=True)
    assert (len(split.training), len(split.test)) == (8, 8)
    assert len(split_pictures(with_test).test) == 8


def test_a_picture_in_two_classes_is_told():
    images = random_images(4)
    images[1] = images[0]
    split = split_pictures(picture_set(images, [0, 1, 0, 1], classes=("a", "b")))
    assert any("1 picture stands in several classes" in note for note in split.notes)


def test_the_fraction_counts_groups():
    labels = np.zeros(100, int)
    mask = held_out(labels, 0.25, np.arange(100) // 5)
    assert mask.sum() == 25
    assert_array_equal(mask.reshape(20, 5).all(axis=1), mask.reshape(20, 5).any(axis=1))


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["/a/b/cat/1.png", "/a/b/dog/1.png"], ("cat/1.png", "dog/1.png")),
        (["/a/cat/1.png", "/a/cat/12.png"], ("1.png", "12.png")),
        (["x.tar: a/1.png", "x.tar: b/2.png"], ("a/1.png", "b/2.png")),
        (["/a/only.png"], ("only.png",)),
        (["image 3", "image 4"], ("image 3", "image 4")),
        ([], ()),
    ],
)
def test_names_are_what_is_behind_the_folder_of_all(names, short):
    none = np.zeros(0)
    assert ReadPictures(none, none, names, [], []).short_names == short
