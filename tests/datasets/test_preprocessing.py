"""Pictures become the rasters that classifiers take; each step against its plain meaning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare.datasets import Preprocessing, load_dataset, load_images
from visionshare.datasets.folders import read_image, read_images
from visionshare.datasets.preprocessing import PRINTED
from visionshare.errors import DataError, InputError

ALL = Preprocessing("automatic", contrast=True, crop=True, fit="box", margin=4, center="mass")


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits", "test").images[:30]


def photo(digit, dark=True, scale=6, corner=(20, 33), canvas=(120, 150)):
    """Return a digit on a large canvas, dark on light or light on dark, in half the contrast."""
    grown = np.kron(digit, np.ones((scale, scale)))
    drawn = np.zeros(canvas)
    drawn[corner[0] : corner[0] + grown.shape[0], corner[1] : corner[1] + grown.shape[1]] = grown
    return (220 - drawn / 2 if dark else 20 + drawn / 2).astype(np.uint8)


def test_plain_steps_stretch_as_ever(digits, tmp_path):
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (31, 45), np.uint8)
    Image.fromarray(picture).save(tmp_path / "a.png")
    expected = np.asarray(Image.fromarray(picture).resize((8, 12), Image.Resampling.BOX))
    for fit in ("resize", Preprocessing()):
        assert_array_equal(read_image(tmp_path / "a.png", (12, 8), fit=fit), expected)
    assert_array_equal(Preprocessing().apply(picture), picture)
    assert_array_equal(Preprocessing().apply(digits[0], (8, 8)), digits[0])


def test_where_and_how_ink_lies_does_not_matter(digits):
    # The edge of 6-pixel blocks is kept by a factor that is whole: nothing is lost on the way.
    steps = Preprocessing("automatic", contrast=True, crop=True, fit="box", margin=4)
    for digit in digits:
        size = (8 * 6 + 8, 8 * 6 + 8)
        one = steps.apply(photo(digit), size)
        for other in (
            photo(digit, dark=False),
            photo(digit, corner=(60, 90)),
            photo(digit)[:, 20:],
        ):
            # Half the contrast in bytes: rounded differently on the two papers.
            difference = np.abs(one.astype(int) - steps.apply(other, size))
            assert difference.max() <= 3
        assert one.max() == 255
        assert one[0].max() == one[:, 0].max() == 0


@pytest.mark.parametrize("polarity", ["light_on_dark", "dark_on_light", "automatic"])
def test_polarity_alone_inverts_or_not(polarity, digits):
    light = photo(digits[0], dark=False)
    for picture, dark in ((light, False), (255 - light, True)):
        inverted = polarity == "dark_on_light" or (polarity == "automatic" and dark)
        expected = 255 - picture if inverted else picture
        assert_array_equal(Preprocessing(polarity).apply(picture), expected)


def test_contrast_is_a_line_from_paper_to_the_lightest_ink():
    picture = np.full((9, 9), 50, np.uint8)
    picture[4, 3:6] = 100, 150, 20
    made = Preprocessing("light_on_dark", contrast=True).apply(picture)
    assert made[4, 3:6].tolist() == [round(255 * 50 / 100), 255, 0]
    assert made.sum() == made[4, 3:5].sum()


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.9])
def test_cropping_finds_the_box_that_a_loop_finds(threshold):
    rng = np.random.default_rng(3)
    for _ in range(20):
        picture = np.full((14, 17), 10, np.uint8)
        top, left = rng.integers(1, 6, 2)
        ink = rng.integers(0, 200, (rng.integers(1, 7), rng.integers(1, 9)))
        picture[top : top + ink.shape[0], left : left + ink.shape[1]] += ink.astype(np.uint8)
        level = 10 + threshold * (int(picture.max()) - 10)
        inked = [(y, x) for y in range(14) for x in range(17) if picture[y, x] > level]
        if not inked:
            continue
        ys, xs = zip(*inked, strict=True)
        expected = picture[min(ys) : max(ys) + 1, min(xs) : max(xs) + 1]
        steps = Preprocessing("light_on_dark", crop=True, threshold=threshold)
        assert_array_equal(steps.apply(picture), expected)


@pytest.mark.parametrize("shape", [(5, 40), (40, 5), (3, 3), (300, 100), (1, 1000)])
def test_a_box_keeps_the_aspect_ratio_inside_its_margin(shape):
    made = Preprocessing(fit="box", margin=4).apply(np.full(shape, 200, np.uint8), (28, 28))
    rows, columns = (np.flatnonzero(made.any(axis=axis)) for axis in (1, 0))
    height, width = len(rows), len(columns)
    assert max(height, width) == 20
    assert abs(min(height, width) - max(1, 20 * min(shape) / max(shape))) <= 0.5
    for indices in (rows, columns):
        assert indices[0] >= 4
        assert abs(indices[0] - (27 - indices[-1])) <= 1


def test_the_center_of_mass_is_in_the_middle(digits):
    for digit in digits:
        made = ALL.apply(photo(digit), (28, 28)).astype(float)
        for axis in (0, 1):
            middle = made.sum(axis=1 - axis) @ np.arange(28) / made.sum()
            # A whole pixel is the finest step.
            assert abs(middle - 13.5) <= 0.51


def test_mass_never_pushes_ink_off_the_canvas():
    picture = np.full((40, 40), 1, np.uint8)
    picture[:, 0] = 255
    made = Preprocessing(fit="box", margin=1, center="mass").apply(picture, (10, 10))
    assert made.sum() == Preprocessing(fit="box", margin=1).apply(picture, (10, 10)).sum()


def test_paper_alone_is_an_empty_image():
    for value in (0, 90, 255):
        assert ALL.apply(np.full((30, 20), value, np.uint8), (28, 28)).max() == 0


def test_colors_keep_their_channels():
    picture = np.full((40, 50, 3), 230, np.uint8)
    picture[10:20, 10:20] = 200, 30, 30
    made = ALL.apply(picture, (28, 28))
    assert made.shape == (28, 28, 3)
    assert made[14, 14, 1] > made[14, 14, 0]


def test_transparent_paper_is_what_the_ink_is_not(tmp_path):
    for name, ink in (("dark", 20), ("light", 240)):
        drawn = np.zeros((20, 20, 4), np.uint8)
        drawn[5:15, 8:11] = ink, ink, ink, 255
        Image.fromarray(drawn).save(tmp_path / f"{name}.png")
    steps = Preprocessing("automatic", contrast=True)
    made = read_images([tmp_path / "dark.png", tmp_path / "light.png"], (20, 20), fit=steps)
    assert_array_equal(made[0] > 0, made[1] > 0)
    assert (made > 0).sum(axis=(1, 2)).tolist() == [30, 30]
    on_white = read_image(tmp_path / "dark.png", fit=Preprocessing("dark_on_light"))
    assert_array_equal(on_white[0, 0], 0)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"polarity": "dark"}, "polarity"), ({"polarity": []}, "polarity"), ({"crop": 1}, "crop"),
        ({"threshold": 0.0}, "threshold"), ({"threshold": float("nan")}, "threshold"),
        ({"threshold": "much"}, "threshold"), ({"fit": "shrink"}, "fit"),
        ({"margin": -1}, "margin"),
        ({"margin": True, "fit": "box"}, "margin"), ({"margin": 2}, "margin"),
        ({"center": "mass"}, "center"), ({"crop": True}, "crop"), ({"contrast": True}, "contrast"),
        ({"color": "red"}, "preprocessing"), ([], "preprocessing"), (None, "preprocessing"),
    ],
)  # fmt: skip
def test_wrong_values_are_named(values, name):
    with pytest.raises(InputError, match=f"^{name}: got"):
        Preprocessing.from_values(values)


def test_wrong_pictures_are_named():
    for wrong in (np.zeros((2, 2)), np.zeros((2, 2, 4), np.uint8), np.zeros((0, 2), np.uint8)):
        with pytest.raises(InputError, match=r"^picture: got"):
            ALL.apply(wrong)
    with pytest.raises(InputError, match=r"^margin: got"):
        ALL.apply(np.zeros((9, 9), np.uint8), (8, 20))


def test_values_come_back_and_words_follow_them():
    for steps in (Preprocessing(), ALL, PRINTED, Preprocessing("dark_on_light", fit="center")):
        assert Preprocessing.from_values(steps.to_values()) == steps
    assert "inverted" in " ".join(ALL.describe())
    assert "4 pixel(s)" in " ".join(ALL.describe())
    assert "inverted" not in " ".join(Preprocessing().describe())


def test_a_folder_is_read_with_the_steps(digits, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(photo(digits[0])).save(tmp_path / name / "1.png")
    loaded = load_images(tmp_path, size=(28, 28), fit=ALL)
    assert_array_equal(loaded.images[0], ALL.apply(photo(digits[0]), (28, 28)))


def test_formats_that_start_programs_are_no_images(tmp_path):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n")
    with pytest.raises(DataError, match="cannot be read as an image"):
        read_image(tmp_path / "a.png")


STEPS = st.builds(
    lambda ink, plain, box, margin, center: Preprocessing(
        **(ink or {}), **({"fit": "box", "margin": margin, "center": center} if box else plain)
    ),
    st.none()
    | st.fixed_dictionaries(
        {
            "polarity": st.sampled_from(["light_on_dark", "dark_on_light", "automatic"]),
            "contrast": st.booleans(),
            "crop": st.booleans(),
            "threshold": st.floats(0, 1, exclude_min=True, exclude_max=True),
        }
    ),
    st.fixed_dictionaries({"fit": st.sampled_from(["resize", "center"])}),
    st.booleans(),
    st.integers(0, 4),
    st.sampled_from(["box", "mass"]),
) | st.builds(
    Preprocessing,
    polarity=st.sampled_from(["light_on_dark", "dark_on_light", "automatic"]),
    fit=st.just("character"),
    margin=st.integers(0, 4),
    center=st.sampled_from(["box", "mass"]),
)
PICTURES = array_shapes(min_dims=2, max_dims=2, max_side=40).flatmap(
    lambda shape: st.sampled_from([shape, (*shape, 3)]).flatmap(lambda s: arrays(np.uint8, s))
)


def test_a_threshold_next_to_one_leaves_the_lightest():
    steps = Preprocessing("light_on_dark", crop=True, threshold=float(np.nextafter(1, 0)))
    assert steps.apply(np.array([[0, 1]], np.uint8), (9, 9)).min() == 1


@settings(max_examples=300, deadline=None)
@given(PICTURES, STEPS, st.integers(9, 30), st.integers(9, 30))
def test_any_picture_becomes_a_raster(picture, steps, height, width):
    before = picture.copy()
    made = steps.apply(picture, (height, width))
    assert (made.shape, made.dtype) == ((height, width, *picture.shape[2:]), np.uint8)
    assert_array_equal(picture, before)
    if steps.fit in ("box", "character") and steps.margin and steps.center == "box":
        assert made[0].max() == made[-1].max() == made[:, 0].max() == made[:, -1].max() == 0
    assert Preprocessing.from_values(steps.to_values()) == steps


@pytest.mark.parametrize(("side", "pixels"), [(16, 2), (28, 4), (32, 4), (8, 1)])
def test_a_margin_may_be_a_share_of_the_side(side, pixels):
    picture = np.full((20, 20), 255, np.uint8)
    share = Preprocessing(fit="box", margin=0.125).apply(picture, (side, side))
    assert_array_equal(share, Preprocessing(fit="box", margin=pixels).apply(picture, (side, side)))
    assert np.flatnonzero(share.any(axis=0))[0] == pixels
    with pytest.raises(InputError, match="margin"):
        Preprocessing(fit="box", margin=0.5)


def test_a_ground_travels_and_its_default_is_left_out():
    steps = Preprocessing("automatic", fit="box", margin=0.125, ground="white")
    assert Preprocessing.from_values(steps.to_values()) == steps
    assert "white" in " ".join(steps.describe())
    assert "0.125 of its shorter side" in " ".join(steps.describe())
    assert "ground" not in Preprocessing().to_values()
    with pytest.raises(InputError, match="ground"):
        Preprocessing(ground="red")
