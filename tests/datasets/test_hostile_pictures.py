"""Files that would take long, or much memory: refused, or read in time linear in their bytes."""

import io
import struct
import sys
import zlib
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from visionshare.datasets import decode_image, picture_header
from visionshare.datasets.containers.boxes import largest_frame
from visionshare.datasets.containers.formats import readable_formats
from visionshare.errors import DataError

N_BYTES = 1 << 20
# Calls that reading may make: work in Python that grows with each byte makes more.
MOST_CALLS = N_BYTES // 2


def encoded(format_, size=(32, 24), mode="RGB", **options):
    file = io.BytesIO()
    Image.new(mode, size, 77 if mode == "L" else (9, 99, 200)).save(file, format_, **options)
    return file.getvalue()


def chunk(kind, content=b""):
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def segment(marker, content=b""):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(content) + 2) + content


def box(kind, content=b""):
    return struct.pack(">I", 8 + len(content)) + kind + content


def inserted(data, position, part):
    """Return a file with a part again and again, up to the bytes of a hostile one."""
    return data[:position] + part * (N_BYTES // len(part)) + data[position:]


def tiff(entries):
    """Return a TIFF of 64 × 64 whose directory has further entries, and many bytes."""
    pixels = [
        (256, 4, 1, 64), (257, 4, 1, 64), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
        (273, 4, 1, 200), (278, 4, 1, 64), (279, 4, 1, 4096),
    ]  # fmt: skip
    table = [struct.pack("<HHII", *entry) for entry in (*pixels, *entries)]
    head = b"II*\0\x08\0\0\0" + struct.pack("<H", len(table)) + b"".join(table)
    return head + bytes(N_BYTES)


def hostile():
    jpeg, png, gif = encoded("jpeg"), encoded("png"), encoded("gif", mode="L")
    image = gif.index(b",")
    yield "jpeg-exif", inserted(jpeg, 2, segment(0xE1, b"Exif\0\0" + bytes(60_000)))
    yield "jpeg-small-exif", inserted(jpeg, 2, segment(0xE1, b"Exif\0\0"))
    yield "jpeg-fill", inserted(jpeg, 2, b"\xff")
    yield "jpeg-app5", inserted(jpeg, 2, segment(0xE5))
    yield "jpeg-comments", inserted(jpeg, 2, segment(0xFE))
    yield "jpeg-fill-in-scan", inserted(jpeg, len(jpeg) - 2, b"\xff")
    yield "png-private", inserted(png, 33, chunk(b"prVt"))
    yield "png-texts", inserted(png, 33, chunk(b"tEXt", b"a\0b"))
    yield "png-empty-pixels", inserted(png, 33, chunk(b"IDAT"))
    yield "pgm-comments", inserted(b"P5\n4 4 255\n" + bytes(16), 3, b"#\n")
    yield "pgm-blanks", inserted(b"P5\n4 4 255\n" + bytes(16), 3, b" ")
    yield "pgm-odd-values", b"P5 1024 1024 100\n" + bytes(N_BYTES)
    yield "pgm-plain", b"P2 1024 512 255\n" + b"1 " * (N_BYTES // 2)
    yield "pgm-plain-comments", inserted(b"P2 4 4 255\n", 11, b"#\n1 ")
    yield "gif-comments", inserted(gif, image, b"!\xfe\xff" + bytes(255) + b"\0")
    yield "gif-small-comments", inserted(gif, image, b"!\xfe\1a\0")
    yield "gif-small-blocks", inserted(gif, image + 11, b"\1\0")
    yield "gif-junk", inserted(gif, image, b"\0")
    yield "tiff-huge-tags", tiff([(40_000 + i, 7, N_BYTES, 200) for i in range(2000)])
    yield "tiff-huge-colors", tiff([(320, 3, N_BYTES // 2, 200), (347, 7, N_BYTES, 200)] * 3)
    yield (
        "tiff-pages",
        b"II*\0\x08\0\0\0"
        + b"".join(struct.pack("<HI", 0, 14 + 6 * i) for i in range(N_BYTES // 6)),
    )
    yield (
        "bmp-runs",
        b"BM"
        + struct.pack("<IHHI", 0, 0, 0, 1078)
        + struct.pack("<IiiHHIIiiII", 40, 999, 999, 1, 8, 1, 0, 0, 0, 256, 256)
        + b"\1\5" * (N_BYTES // 2),
    )
    webp = encoded("webp")
    extended = webp[:12] + b"VP8X\x0a\0\0\0\0\0\0\0\x1f\0\0\x17\0\0" + webp[12:]
    yield "webp-chunks", inserted(extended, 30, b"junk\0\0\0\0")
    yield "jp2-boxes", inserted(encoded("jpeg2000"), 12, box(b"free"))
    yield "j2k-comments", inserted(encoded("jpeg2000", no_jp2=True), 51, b"\xff\x64\0\2")
    yield "avif-boxes", box(b"ftyp", b"avif\0\0\0\0") + box(b"free") * (N_BYTES // 8)
    yield "avif-items", box(b"ftyp", b"avif\0\0\0\0") + box(b"meta", bytes(N_BYTES))


HOSTILE = dict(hostile())


@pytest.mark.parametrize("read", [picture_header, decode_image])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_structure_takes_little_work(name, read):
    n_calls = 0

    def count(frame, event, argument):
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with suppress(DataError):
            read(HOSTILE[name])
    finally:
        sys.setprofile(None)
    assert n_calls < MOST_CALLS


def test_packed_exif_is_unpacked_once(monkeypatch):
    unpacked = []
    unpack = zlib.decompressobj

    def counted(*options):
        unpacked.append(options)
        return unpack(*options)

    monkeypatch.setattr(zlib, "decompressobj", counted)
    packed = chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(bytes(1 << 17)))
    assert picture_header(inserted(encoded("png"), 33, packed))[:2] == (24, 32)
    assert len(unpacked) == 1


def test_metadata_that_is_only_long_is_passed_over():
    plain = decode_image(encoded("jpeg"))
    for name in ("jpeg-exif", "jpeg-fill", "jpeg-fill-in-scan"):
        assert np.array_equal(decode_image(HOSTILE[name]), plain), name


@pytest.mark.parametrize("size", [(1, 1 << 25), (1 << 25, 1)])
def test_a_picture_of_a_very_long_side_is_refused_from_its_header(size):
    width, height = size
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", b"") + chunk(b"IEND")
    with pytest.raises(DataError, match="a side is too long: at most 131072 are read; cut"):
        decode_image(data)


def test_the_limit_of_pixels_is_told():
    data = encoded("png", (300, 200))
    with pytest.raises(DataError, match=r"300×200 .* at most 59999 are read; scale .* max_pixels"):
        decode_image(data, max_pixels=59_999)
    assert picture_header(data, max_pixels=60_000)[:2] == (200, 300)


def test_scans_cost_as_much_as_pixels():
    data = encoded("jpeg", (4096, 4096), "L", progressive=True)
    last = data[data.rindex(b"\xff\xda") : -2]
    with pytest.raises(DataError, match="scans are too many"):
        decode_image(data[:-2] + 80 * last + data[-2:])


def test_webp_says_its_size_before_memory_is_taken():
    # A canvas of 16384 × 16384 would take 2 GiB.
    side = (16383).to_bytes(3, "little")
    head = b"VP8X\x0a\0\0\0\2\0\0\0" + side + side
    frame = b"ANMF" + struct.pack("<I", 24) + bytes(24)
    body = b"WEBP" + head + b"ANIM\6\0\0\0" + bytes(6) + frame
    with pytest.raises(DataError, match="16384×16384 pixels are too many"):
        picture_header(b"RIFF" + struct.pack("<I", len(body)) + body)


def test_a_jpeg2000_of_very_many_small_parts_is_refused():
    data = bytearray(encoded("jpeg2000", (4096, 4096), "L", no_jp2=True))
    coding = data.index(b"\xff\x52")
    # Blocks of 4 × 4.
    data[coding + 10 : coding + 12] = b"\0\0"
    with pytest.raises(DataError, match="very many parts"):
        decode_image(bytes(data))


def test_exif_that_points_everywhere_is_not_read():
    entries = b"".join(struct.pack("<HHII", 300 + i, 7, 60_000, 0) for i in range(4000))
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 4000) + entries
    data = encoded("png")
    with_exif = data[:33] + chunk(b"eXIf", exif[6:]) + data[33:]
    assert decode_image(with_exif).shape == (24, 32)


def test_a_file_that_cannot_be_wound_back_is_read():
    class Stream(io.BytesIO):
        def seek(self, *_):
            raise io.UnsupportedOperation("seek")

    assert decode_image(Stream(encoded("png"))).shape == (24, 32)


def test_an_unknown_format_names_those_that_are_accepted():
    with pytest.raises(DataError, match=r"unknown format; accepted: PNG, JPEG, BMP, GIF, TIFF"):
        decode_image(b"%PDF-1.4")


def test_frames_of_avif_are_measured_themselves():
    if "AVIF" not in [format_.name for format_ in readable_formats()]:
        pytest.skip("this Pillow does not read AVIF")
    for mode, options in (("RGB", {}), ("RGBA", {}), ("RGB", {"save_all": True})):
        file = io.BytesIO()
        others = [Image.new(mode, (30, 20), 9)] if options else []
        Image.new(mode, (30, 20)).save(file, "avif", append_images=others, **options)
        data = bytearray(file.getvalue())
        told = data.index(b"ispe") + 8
        # The file says that it is small; its pixels are not.
        data[told : told + 8] = struct.pack(">II", 8, 8)
        places = data.index(b"iloc") + 4
        length = int.from_bytes(data[places - 8 : places - 4], "big") - 8
        assert largest_frame(bytes(data), bytes(data[places : places + length])) == 600
