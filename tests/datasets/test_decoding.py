"""Pictures of every mode: what their pixels become, and what their headers tell."""

import io
import subprocess
import sys

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


@pytest.mark.parametrize("format_", ["png", "tiff", "pgm"])
def test_a_dark_picture_of_sixteen_bits_stays_dark(tmp_path, format_):
    dark = np.full((3, 4), 255, np.uint16)
    if format_ == "pgm":
        (tmp_path / "a.pgm").write_bytes(b"P5 4 3 65535\n" + dark.astype(">u2").tobytes())
    else:
        Image.fromarray(dark).save(tmp_path / f"a.{format_}")
    assert decode_image(tmp_path / f"a.{format_}").max() == 0
    assert decode_array(dark).max() == 0


def test_every_value_of_sixteen_bits_is_that_of_an_array(tmp_path):
    values = np.arange(65536).astype(np.uint16).reshape(256, 256)
    Image.fromarray(values).save(tmp_path / "a.png")
    assert_array_equal(decode_image(tmp_path / "a.png"), decode_array(values))


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


@pytest.mark.parametrize("mode", ["L", "RGB", "P", "RGBA", "LA", "CMYK"])
def test_large_pictures_are_converted_some_rows_at_a_time(tmp_path, monkeypatch, mode):
    rgba = np.random.default_rng(0).integers(0, 256, (9, 7, 4), np.uint8)
    name = "a.tif" if mode == "CMYK" else "a.png"
    Image.fromarray(rgba[..., : 4 if "A" in mode else 3]).convert(mode).save(tmp_path / name)
    whole = [decode_image(tmp_path / name, color) for color in ("gray", "color")]
    monkeypatch.setattr("visionshare.datasets.decoding._STRIP", 15)
    for expected, color in zip(whole, ("gray", "color"), strict=True):
        assert_array_equal(decode_image(tmp_path / name, color), expected)


def memory_of(path, mode):
    code = (
        "import sys; from visionshare.datasets.decoding import decode_image\n"
        "import PIL.PngImagePlugin, PIL.ImageOps, PIL.ImageStat\n"
        "def peak():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(l.split()[1]) for l in lines if l.startswith('VmHWM'))\n"
        "before = peak()\n"
        "decode_image(sys.argv[1], sys.argv[2])\n"
        "print(peak() - before)"
    )
    command = [sys.executable, "-c", code, str(path), mode]
    return 1024 * int(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says the peak of memory")
@pytest.mark.parametrize(("mode", "n_bytes"), [("gray", 6), ("color", 8)])
def test_decoding_takes_the_picture_and_its_pixels(tmp_path, mode, n_bytes):
    side = 3000
    Image.new("RGBA", (side, side)).save(tmp_path / "a.png")
    # Pillow holds 4 bytes a pixel; those of strips come on top.
    spare = 40 << 20
    assert memory_of(tmp_path / "a.png", mode) < n_bytes * side * side + spare


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


def of_scans(n):
    """Return a JPEG whose last scan comes ``n`` times more."""
    file = io.BytesIO()
    Image.new("L", (32, 32), 128).save(file, "jpeg", progressive=True)
    body = file.getvalue()[:-2]
    return body + n * body[body.rindex(b"\xff\xda") :] + b"\xff\xd9"


def test_a_jpeg_of_very_many_scans_is_refused(tmp_path):
    (tmp_path / "a.jpg").write_bytes(of_scans(200))
    with pytest.raises(DataError, match=r"a\.jpg: cannot be read .*scans are too many"):
        decode_image(tmp_path / "a.jpg")
    assert decode_image(io.BytesIO(of_scans(20))).shape == (32, 32)
    # What stands in other segments, or behind the end, is no scan.
    assert decode_image(io.BytesIO(of_scans(0) + 200 * b"\xff\xda")).shape == (32, 32)


def test_limits_and_modes_are_checked(tmp_path):
    Image.fromarray(RAMP).save(tmp_path / "a.png")
    with pytest.raises(DataError, match="too many"):
        decode_image(tmp_path / "a.png", max_pixels=11)
    with pytest.raises(DataError, match="too many"):
        picture_header(tmp_path / "a.png", max_pixels=11)
    with pytest.raises(InputError, match="mode"):
        decode_image(tmp_path / "a.png", "grey")


def test_a_file_is_not_asked_for_more_memory_than_it_has():
    sizes = []

    class Asked(io.BytesIO):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    file = Asked()
    Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4)).save(file, "png")
    sizes.clear()
    assert_array_equal(decode_image(file).ravel(), np.arange(12))
    assert 0 < min(sizes) <= max(sizes) <= 1 << 20
