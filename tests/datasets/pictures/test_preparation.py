"""Which preparation is proposed for which pictures, and why."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare.datasets import Preprocessing, load_images, propose_preparation
from visionshare.datasets.pictures.survey import survey_pictures
from visionshare.datasets.readers.registry import find_pictures
from visionshare.errors import DataError, InputError


def stroke(shape, box, paper=255, ink=0):
    picture = np.full(shape, paper, np.uint8)
    picture[box[0] : box[1], box[2] : box[3]] = ink
    return picture


def photo(rng, shape):
    return rng.integers(0, 256, shape, np.uint8)


def test_photos_are_in_color_and_only_resized_to_their_median():
    rng = np.random.default_rng(0)
    photos = [photo(rng, (h, 40, 3)) for h in (20, 30, 31, 50)]
    made = propose_preparation(photos)
    assert (made.size, made.mode, made.kind) == ((30, 40), "color", "photos")
    assert made.preprocessing == Preprocessing(ground="ink")
    assert made.reasons[0].startswith(
        "size 30×40 (height × width): the median of pictures of 20×40"
    )


def test_large_and_small_pictures_keep_their_proportions():
    rng = np.random.default_rng(0)
    assert propose_preparation([photo(rng, (300, 600))]).size == (32, 64)
    assert propose_preparation([photo(rng, (300, 600))], max_side=32).size == (16, 32)
    assert propose_preparation([photo(rng, (8, 8))] * 3).size == (16, 16)
    made = propose_preparation([photo(rng, (300, 600, 3))], size=(20, 30), color=False)
    assert (made.size, made.mode) == ((20, 30), "gray")
    assert "as asked for" in made.reasons[0]


def test_three_equal_channels_are_gray():
    rng = np.random.default_rng(0)
    gray = [np.repeat(photo(rng, (20, 20, 1)), 3, axis=2) for _ in range(5)]
    assert propose_preparation(gray).mode == "gray"


def test_small_ink_is_cut_out_and_made_light():
    rng = np.random.default_rng(0)
    pages = []
    for _ in range(20):
        y, x = rng.integers(5, 60, 2)
        pages.append(stroke((100, 100), (y, y + 30, x, x + 8)))
    made = propose_preparation(pages)
    steps = made.preprocessing
    assert (steps.polarity, steps.crop, steps.fit) == ("dark_on_light", True, "box")
    assert made.size == (32, 32)
    raster = steps.apply(pages[0], made.size)
    rows = np.flatnonzero(raster.max(axis=1) > 127)
    assert (rows[0], rows[-1]) == (4, 27)
    assert raster[0].max() == 0


def test_ink_of_both_polarities_becomes_light():
    made = propose_preparation(
        [stroke((20, 20), (2, 18, 8, 12)), stroke((20, 20), (2, 18, 8, 12), 0, 255)]
    )
    assert made.preprocessing.polarity == "automatic"
    assert not made.preprocessing.crop
    assert made.kind == "glyphs"


@pytest.mark.parametrize("name", ["digits"])
def test_what_fills_its_images_stays_as_it_is(name):
    made = propose_preparation(load_images(name, "train").images)
    assert made.preprocessing.polarity == "as_is"
    assert not made.preprocessing.crop
    padded = np.pad(load_images(name, "train").images, ((0, 0), (1, 1), (1, 1)))
    # Nothing changes, and a page with a pad knows what ink is.
    of_ink = propose_preparation(padded)
    assert (of_ink.kind, of_ink.preprocessing) == ("glyphs", Preprocessing("light_on_dark"))
    assert_array_equal(of_ink.preprocessing.apply(padded[0]), padded[0])
    assert propose_preparation(255 - padded).preprocessing == Preprocessing("dark_on_light")


@pytest.mark.parametrize(("ink", "ground"), [(0, "white"), (255, "black")])
def test_transparent_pictures_lie_on_one_ground_that_shows_their_ink(tmp_path, ink, ground):
    alpha = stroke((24, 24), (4, 20, 8, 16), 0, 255)
    picture = np.dstack([np.full((24, 24, 3), ink, np.uint8), alpha])
    Image.fromarray(picture).save(tmp_path / "a.png")
    for pictures in ([str(tmp_path / "a.png")], [picture]):
        made = propose_preparation(pictures)
        assert made.preprocessing.ground == ground
        assert any(reason.startswith(f"laid on {ground}") for reason in made.reasons)


def test_sizes_of_a_survey_count_for_all(tmp_path):
    for i, side in enumerate((20, 24, 40)):
        (tmp_path / "a").mkdir(exist_ok=True)
        Image.new("L", (side, side)).save(tmp_path / "a" / f"{i}.png")
    (tmp_path / "a" / "broken.png").write_bytes(b"x")
    pictures = find_pictures(tmp_path)
    survey = survey_pictures(pictures)
    assert list(survey.broken) == [3]
    assert survey.modes == {"L": 3}
    assert propose_preparation(pictures, sizes=survey.sizes, n_pictures=1).size == (24, 24)


def test_what_is_proposed_is_applied_to_arrays_and_files_alike(tmp_path):
    rng = np.random.default_rng(0)
    arrays = [photo(rng, (h, 20, 3)) for h in (18, 24)]
    paths = [tmp_path / f"{i}.png" for i in range(2)]
    for path, array in zip(paths, arrays, strict=True):
        Image.fromarray(array).save(path)
    made = propose_preparation(paths)
    assert made == propose_preparation(arrays)
    np.testing.assert_array_equal(made.apply(paths, n_jobs=2), made.apply(arrays))
    assert made.apply(arrays).shape == (2, 21, 20, 3)
    with pytest.raises(DataError, match="float64 of shape"):
        propose_preparation(np.zeros((2, 20, 20)))


def test_nothing_to_look_at_is_an_error(tmp_path):
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(DataError, match="no picture can be read"):
        propose_preparation([tmp_path / "a.png"])
    with pytest.raises(InputError, match="size"):
        propose_preparation([np.zeros((4, 4), np.uint8)], size=(0, 4))
