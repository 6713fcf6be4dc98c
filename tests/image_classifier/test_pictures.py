"""Images of any kind become one array of bytes."""

import numpy as np
import pytest
from PIL import Image

from visionshare.datasets import Preprocessing
from visionshare.datasets.image_kinds import is_vectors
from visionshare.errors import DataError, InputError
from visionshare.image_classifier.pictures import propose_intake


def test_bytes_of_one_size_stay_as_they_are():
    images = np.random.default_rng(0).integers(0, 256, (4, 16, 15), np.uint8)
    intake = propose_intake(images)
    assert (intake.size, intake.n_channels, intake.mode) == ((16, 15), 1, "gray")
    assert np.array_equal(intake.apply(images), images)


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_light_ink_of_arrays_is_known_and_stays_as_it_is(dtype):
    images = np.zeros((5, 20, 20), np.uint8)
    images[:, 4:16, 8:12] = 255
    images[1, 5, 9] = 90
    given = images if dtype is np.uint8 else images / 255
    intake = propose_intake(given)
    assert intake.preprocessing.polarity == "light_on_dark"
    assert np.array_equal(intake.apply(given), images)


@pytest.mark.parametrize("kind", ["dark ink", "noise", "color"])
def test_other_arrays_are_taken_as_they_are(kind):
    noise = np.random.default_rng(0).integers(0, 256, (5, 20, 20, 3), np.uint8)
    ink = np.full((5, 20, 20), 255, np.uint8)
    ink[:, 4:16, 8:12] = 0
    images = {"dark ink": ink, "noise": noise[..., 0], "color": noise}[kind]
    intake = propose_intake(images)
    assert intake.preprocessing == Preprocessing()
    assert np.array_equal(intake.apply(images), images)


@pytest.mark.parametrize(
    ("dtype", "highest", "values"),
    [
        (np.float64, 1.0, (0.0, 1.0)),
        (np.float32, 16.0, (0.0, 16.0)),
        (np.float64, 255.0, (0.0, 255.0)),
        (np.uint16, 65535, (0.0, 65535.0)),
        (np.int64, 4095, (0.0, 4095.0)),
    ],
)
def test_values_are_scaled_from_the_range_of_training(dtype, highest, values):
    image = np.array([[0, highest], [highest / 2, highest / 4]]).astype(dtype)
    intake = propose_intake(image[None], least_side=1)
    assert intake.values.range == values
    expected = np.rint(255 * image.astype(float) / highest)
    assert np.array_equal(intake.apply(image[None])[0], expected)
    # Later images keep the range, and what lies beyond is cut.
    assert intake.apply(2 * image[None].astype(float)).max() == 255


def test_negative_values_have_a_range_too():
    intake = propose_intake(np.array([[[-2.0, 2.0]]]), least_side=1)
    assert intake.apply(np.array([[[-2.0, 2.0]]])).tolist() == [[[0, 255]]]


def test_arrays_of_different_sizes_get_the_median_size():
    images = [np.full(sides, 9, np.uint8) for sides in ((16, 20), (24, 32), (32, 32))]
    assert propose_intake(images).apply(images).shape == (3, 24, 32)
    assert propose_intake(images, size=5).apply(images).shape == (3, 5, 5)
    assert propose_intake(images, size=(3, 7)).apply(images[:1])[0].tolist() == [[9] * 7] * 3


def test_large_images_are_shrunk():
    assert propose_intake(np.zeros((1, 200, 100), np.uint8)).size == (48, 24)


def test_small_images_are_enlarged():
    images = np.zeros((3, 6, 8), np.uint8)
    images[:, 1:5, 1:7] = 255
    intake = propose_intake(images)
    assert intake.size == (12, 16)
    assert intake.apply(images).shape == (3, 12, 16)
    # As a list of them is.
    assert propose_intake(list(images)) == intake
    assert (
        propose_intake(images, size=(6, 8)).size
        == propose_intake(images, least_side=1).size
        == (6, 8)
    )
    assert propose_intake(np.zeros((2, 4, 8, 5), np.uint8)).size == (8, 16)


def test_colors_are_seen_where_there_are_any():
    gray = np.repeat(np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1), 3, axis=3)
    color = gray.copy()
    color[0, 0, 0] = (200, 0, 0)
    assert propose_intake(gray).n_channels == 1
    assert propose_intake(color).apply(color).shape == (1, 16, 16, 3)
    assert propose_intake(gray, color=True).n_channels == 3
    assert propose_intake(color, color=False).apply(color).shape == (1, 16, 16)


def test_gray_images_among_colors_become_gray_colors():
    images = [np.zeros((4, 4, 3), np.uint8), np.full((4, 4), 7, np.uint8)]
    images[0][0, 0] = (255, 0, 0)
    assert propose_intake(images, size=4).apply(images)[1].tolist() == [[[7] * 3] * 4] * 4


def test_other_numbers_of_channels_are_kept():
    images = np.zeros((2, 8, 8, 5), np.uint8)
    assert propose_intake(images, size=4).apply(images).shape == (2, 4, 4, 5)
    with pytest.raises(InputError, match="5 values a pixel"):
        propose_intake(images).apply(np.zeros((1, 8, 8), np.uint8))


def test_paths(tmp_path):
    for name, mode in (("a.png", "L"), ("b.jpg", "RGB")):
        Image.new(mode, (20, 18)).save(tmp_path / name)
    paths = [tmp_path / "a.png", str(tmp_path / "b.jpg")]
    intake = propose_intake(paths)
    assert (intake.size, intake.n_channels) == ((18, 20), 1)
    assert intake.apply(paths).shape == (2, 18, 20)
    # An array of paths is a list of paths, in color too.
    Image.new("RGB", (20, 18), "red").save(tmp_path / "b.jpg")
    array = np.array([str(path) for path in paths])
    assert propose_intake(array) == propose_intake(paths)
    assert np.array_equal(propose_intake(array).apply(array), propose_intake(paths).apply(paths))
    (tmp_path / "c.png").write_text("no picture")
    with pytest.raises(DataError, match="cannot be read"):
        propose_intake([tmp_path / "c.png"])
    with pytest.raises(InputError, match="a list of its files"):
        propose_intake(str(tmp_path))


@pytest.mark.parametrize(
    ("images", "options", "wrong"),
    [
        (np.zeros((0, 4, 4), np.uint8), {}, "none"),
        (np.zeros((2, 2, 2, 2, 2)), {}, r"\(2, 2, 2, 2, 2\)"),
        (np.full((1, 2, 2), np.nan), {}, "NaN"),
        ([np.zeros((2, 2)), np.zeros(3)], {}, r"\(3,\)"),
        (np.zeros((1, 4, 4), np.uint8), {"size": 0}, "size"),
        (np.zeros((1, 4, 4), np.uint8), {"color": "yes"}, "color"),
        (np.zeros((1, 4, 4), np.uint8), {"color": True}, "color"),
        (7, {}, "int"),
    ],
)
def test_other_images_are_refused(images, options, wrong):
    with pytest.raises(InputError, match=wrong):
        propose_intake(images, **options)


def test_vectors_are_known():
    assert is_vectors(np.zeros((3, 4)))
    assert is_vectors([[1.0, 2.0]])
    assert not is_vectors(np.zeros((3, 4, 4)))
    assert not is_vectors([np.zeros((4, 4))])


def test_drawings_of_different_sizes_are_cut_out_in_use_too():
    drawings = []
    for i in range(8):
        paper = np.full((60, 50 + i), 250, np.uint8)
        paper[20 : 24 + i, 10 + i : 16 + i] = 20
        drawings.append(paper)
    intake = propose_intake(drawings)
    assert intake.preprocessing.crop
    one, moved = intake.apply([drawings[0], np.roll(drawings[0], 9, axis=1)])
    assert np.array_equal(one, moved)


BYTES = np.random.default_rng(1).integers(0, 256, (6, 16, 16), np.uint8)


def test_types_that_hold_bytes_are_read_as_bytes():
    intake = propose_intake(BYTES)
    assert np.array_equal(intake.apply(BYTES.astype(np.uint16) * 257), BYTES)
    for dtype in (np.uint16, np.int64, np.float32):
        assert np.array_equal(intake.apply(BYTES.astype(dtype)), BYTES)
    black_and_white = BYTES > 127
    assert np.array_equal(intake.apply(black_and_white), 255 * black_and_white.astype(np.uint8))
    assert not intake.apply(np.zeros((1, 16, 16))).any()


def test_values_of_another_unit_are_refused():
    of_bytes, of_fractions = propose_intake(BYTES), propose_intake(BYTES / 255)
    with pytest.raises(InputError, match="got 'fractions up to 1'; accepted: values from 0 to 255"):
        of_bytes.apply(BYTES / 255)
    with pytest.raises(InputError, match="fractions up to"):
        propose_intake(BYTES.astype(np.int64)).apply(list(BYTES / 256))
    for given in (BYTES, BYTES.astype(float), list(BYTES)):
        with pytest.raises(InputError, match="values up to 255'; accepted: values from 0 to 1"):
            of_fractions.apply(given)
    assert not of_fractions.apply(np.zeros((1, 16, 16), np.uint8)).any()
    # Of training with floats up to 255, a dark image may be all of an image.
    of_floats = propose_intake(BYTES.astype(float))
    for intake, value in ((of_bytes, 1.0), (of_floats, 0.7)):
        with pytest.warns(UserWarning, match="those of training went from 0 to 255"):
            assert intake.apply(np.full((1, 16, 16), value)).max() == 1


@pytest.mark.parametrize("mode", ["1", "P", "L", "LA", "RGB", "RGBA", "CMYK", "I;16"])
def test_pictures_of_pillow_are_read_as_their_files(tmp_path, mode):
    ramp = np.add.outer(np.arange(20), 9 * np.arange(24)).astype(np.uint8)
    picture = Image.fromarray(np.stack([ramp, 255 - ramp, ramp // 2], axis=2))
    if mode == "I;16":
        picture = Image.fromarray(ramp.astype(np.uint16) * 257)
    else:
        picture = picture.convert(mode)
    picture.save(tmp_path / "a.tif")
    files = [tmp_path / "a.tif"] * 2
    intake = propose_intake(files)
    assert propose_intake([picture] * 2) == intake
    assert np.array_equal(intake.apply([picture]), intake.apply(files[:1]))
    for channels in ((), (3,)):
        arrays = propose_intake(np.zeros((2, 20, 24, *channels), np.uint8), size=(20, 24))
        assert np.array_equal(arrays.apply([picture]), arrays.apply(files[:1]))
