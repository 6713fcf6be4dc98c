"""Pictures of many pixels are reduced, others are left as they are."""

import io

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from visionshare.datasets.folders import read_image
from visionshare.datasets.opening import open_picture
from visionshare.errors import DataError
from visionshare.service import Limits
from visionshare.service.pictures import reduced_picture


def encoded(image, kind="png", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def ramp(mode, size=(300, 200)):
    width, height = size
    gray = np.add.outer(np.linspace(0, 120, height), np.linspace(0, 120, width)).astype(np.uint8)
    return Image.fromarray(gray).convert(mode)


def reduced(body, max_decoded=10_000, max_memory=1 << 20):
    limits = Limits(max_decoded_pixels=max_decoded, max_decode_memory=max_memory)
    return reduced_picture(body, limits)


def test_pictures_of_too_many_pixels_are_refused():
    with pytest.raises(DataError, match="300×200 pixels are too many: at most 59999 are read"):
        reduced_picture(encoded(ramp("L")), Limits(max_pixels=59_999))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA"])
@pytest.mark.parametrize("kind", ["png", "tiff", "webp", "jpeg", "gif", "bmp", "ppm"])
def test_a_reduced_picture_looks_like_the_picture(mode, kind):
    image = ramp(mode)
    try:
        body = encoded(image, kind)
    except (OSError, ValueError):
        pytest.skip("the format has no such mode")
    small = reduced(body)
    with Image.open(io.BytesIO(small)) as opened:
        assert opened.width * opened.height <= 10_000
        assert abs(opened.width / opened.height - 1.5) < 0.05
    a, b = (read_image(io.BytesIO(file), (10, 15)).astype(int) for file in (body, small))
    # A bitmap's dots are random.
    assert_allclose(a, b, atol=40 if mode == "1" else 8)


def test_orientation_and_transparency_are_kept():
    exif = Image.Exif()
    exif[0x0112] = 6
    for kind in ("png", "jpeg"):
        body = encoded(ramp("L"), kind, exif=exif)
        assert read_image(io.BytesIO(body)).shape == (300, 200)
        height, width = read_image(io.BytesIO(reduced(body))).shape
        assert height > width
    clear = encoded(Image.new("RGBA", (300, 200), (255, 255, 255, 0)))
    assert not read_image(io.BytesIO(reduced(clear))).any()
    keyed = encoded(Image.new("L", (300, 200), 9), transparency=9)
    assert not read_image(io.BytesIO(reduced(keyed))).any()


def test_what_decoding_takes_is_refused_by_the_header():
    large = encoded(ramp("RGB"))
    scans = encoded(ramp("L"), "jpeg", progressive=True)
    last = scans[scans.rindex(b"\xff\xda") : -2]
    with pytest.raises(DataError, match="scans are too many"):
        reduced(scans[:-2] + 200 * last + scans[-2:])
    with pytest.raises(DataError, match="decoding it takes 240000 bytes"):
        reduced(large, max_memory=100_000)
    # Progressive JPEG has all coefficients in memory.
    with pytest.raises(DataError, match="decoding it takes"):
        reduced(encoded(ramp("RGB"), "jpeg", progressive=True), max_memory=350_000)
    assert reduced(encoded(ramp("RGB"), "jpeg"), max_memory=350_000)
    with pytest.raises(DataError, match="more than 8 bits"):
        reduced(encoded(Image.fromarray(np.zeros((200, 300), np.uint16))))
    with pytest.raises(DataError, match="cannot be read"):
        reduced(large[:-50])


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": b"Exif\0\0II*\0\x08\0\0\0"}])
def test_the_size_of_webp_is_read_before_it_is_decoded(options):
    body = encoded(ramp("RGB", (301, 77)), "webp", **options)
    with pytest.raises(DataError, match="301×77 pixels are too many"):
        open_picture(body, 1000)
