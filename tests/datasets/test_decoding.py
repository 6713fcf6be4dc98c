"""Pictures of every mode: what their pixels become, and what their headers tell."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from visionshare.datasets.decoding import decode_array, decode_image, picture_header
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import DataError, InputError

RAMP = np.linspace(0, 255, 12).astype(np.uint8).reshape(3, 4)


@pytest.mark.parametrize("format_", ["png", "tiff"])
def test_sixteen_bits_become_eight(tmp_path, format_):
    Image.fromarray(RAMP.astype(np.uint16) * 257).save(tmp_path / f"a.{format_}")
    assert_array_equal(decode_image(tmp_path / f"a.{format_}"), RAMP)


def test_floats_from_0_to_1_or_255(tmp_path):
    for name, top in (("one", 1), ("bytes", 255)):
        Image.fromarray((RAMP / 255 * top).astype(np.float32)).save(tmp_path / f"{name}.tif")
        assert_allclose(decode_image(tmp_path / f"{name}.tif"), RAMP, atol=1)


def test_cmyk_and_palettes_keep_their_colors(tmp_path):
    colors = np.zeros((16, 16, 3), np.uint8)
    colors[:8] = (200, 30, 60)
    colors[8:] = (10, 120, 220)
    picture = Image.fromarray(colors)
    picture.convert("CMYK").save(tmp_path / "a.jpg", quality=100)
    picture.quantize(4).save(tmp_path / "a.png")
    picture.quantize(4).save(tmp_path / "a.gif")
    for name in ("a.jpg", "a.png", "a.gif"):
        assert_allclose(decode_image(tmp_path / name, "color").astype(int), colors, atol=8)


def test_the_orientation_turns_pixels_and_header(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    for name in ("a.png", "a.jpg"):
        Image.fromarray(RAMP).save(tmp_path / name, exif=exif)
        assert decode_image(tmp_path / name).shape == (4, 3)
        assert picture_header(tmp_path / name)[:2] == (4, 3)
    assert_array_equal(decode_image(tmp_path / "a.png"), np.rot90(RAMP, -1))


def test_the_first_frame_counts(tmp_path):
    frames = [Image.fromarray(np.full((4, 4), v, np.uint8)) for v in (10, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert decode_image(tmp_path / "a.gif").max() == 10


@pytest.mark.parametrize("mode", ["LA", "RGBA", "P"])
@pytest.mark.parametrize(("ink", "ground"), [(0, 255), (255, 0)])
def test_ink_on_nothing_is_seen(tmp_path, mode, ink, ground):
    alpha = np.zeros((6, 6), np.uint8)
    alpha[2:4, 2:4] = 255
    picture = Image.fromarray(np.dstack([np.full((6, 6), ink, np.uint8), alpha]))
    if mode == "P":
        indexes = Image.fromarray((alpha > 0).astype(np.uint8))
        indexes.putpalette([99, 99, 99, ink, ink, ink])
        indexes.save(tmp_path / "a.png", transparency=0)
    else:
        picture.convert(mode).save(tmp_path / "a.png")
    expected = np.where(alpha > 0, ink, ground)
    assert_array_equal(decode_image(tmp_path / "a.png"), expected)
    black = Preprocessing(ground="black")
    assert decode_image(tmp_path / "a.png", steps=black)[0, 0] == 0
    assert decode_image(tmp_path / "a.png", background=7)[0, 0] == 7
    assert "A" in picture_header(tmp_path / "a.png")[2] or mode == "P"


def test_arrays_become_what_files_become(tmp_path):
    rgba = np.random.default_rng(0).integers(0, 256, (5, 6, 4), np.uint8)
    for channels in (1, 3, 4):
        pixels = rgba[..., :channels]
        Image.fromarray(pixels[..., 0] if channels == 1 else pixels).save(tmp_path / "a.png")
        for mode in ("gray", "color"):
            assert_array_equal(decode_array(pixels, mode), decode_image(tmp_path / "a.png", mode))


@pytest.mark.parametrize(
    "pixels", [np.zeros((2, 2, 2), np.uint8), np.zeros((2, 2)), np.zeros((0, 2), np.uint8)]
)
def test_other_arrays_are_refused(pixels):
    with pytest.raises(DataError, match="not bytes or uint16"):
        decode_array(pixels)


def test_limits_and_modes_are_checked(tmp_path):
    Image.fromarray(RAMP).save(tmp_path / "a.png")
    with pytest.raises(DataError, match="too many"):
        decode_image(tmp_path / "a.png", max_pixels=11)
    with pytest.raises(DataError, match="too many"):
        picture_header(tmp_path / "a.png", max_pixels=11)
    with pytest.raises(InputError, match="mode"):
        decode_image(tmp_path / "a.png", "grey")
