"""Scans: blocks of TIFFs are those of the picture that is decoded whole."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

import visionshare.datasets.scans as scans
from visionshare.datasets.decoding import decode_image
from visionshare.datasets.scans import Scan, forget_scans
from visionshare.errors import DataError

tifffile = pytest.importorskip("tifffile")
rng = np.random.default_rng(0)
# Smooth, so that JPEG is not all noise.
GRAY = np.cumsum(rng.normal(size=(150, 211)), axis=1).clip(-20, 20)
GRAY = ((GRAY + 20) * 6.37).astype(np.uint8)
COLORS = np.stack([GRAY, GRAY[::-1], GRAY[:, ::-1]], axis=2)


def _write(path, pixels, **options):
    colors = "rgb" if pixels.ndim == 3 else "minisblack"
    tifffile.imwrite(path, pixels, photometric=colors, **options)
    return str(path)


@pytest.mark.parametrize("compression", [None, "zlib", "lzw", "jpeg"])
@pytest.mark.parametrize("parts", [{"tile": (64, 48)}, {"rowsperstrip": 17}])
@pytest.mark.parametrize("pixels", [GRAY, COLORS, GRAY.astype(np.uint16) * 201 + 3])
def test_blocks_are_those_of_the_whole_picture(tmp_path, compression, parts, pixels):
    if compression in ("lzw", "jpeg"):
        pytest.importorskip("imagecodecs")
    if compression == "jpeg" and pixels.dtype != np.uint8:
        pytest.skip("JPEG has 8 bits")
    path = _write(tmp_path / "a.tif", pixels, compression=compression, **parts)
    scan = Scan(path)
    assert scan.in_blocks
    assert scan.shape == GRAY.shape
    for mode in ("gray", "color"):
        whole = decode_image(path, mode)
        for box in ((0, 150, 0, 211), (10, 130, 47, 200), (149, 150, 210, 211)):
            assert_array_equal(scan.block(*box, mode), whole[box[0] : box[1], box[2] : box[3]])


@pytest.mark.parametrize("options", [{"bigtiff": True}, {"bigtiff": True, "byteorder": ">"}])
def test_bigtiff(tmp_path, options):
    deep = GRAY.astype(np.uint16) * 257
    path = _write(tmp_path / "a.tif", deep, compression="zlib", tile=(32, 32), **options)
    assert_array_equal(Scan(path).block(3, 90, 5, 77), GRAY[3:90, 5:77])


@pytest.mark.parametrize("below", [True, False])
def test_levels_of_a_pyramid(tmp_path, below):
    """Levels are below the first picture, or pages that say that they are reduced."""
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(GRAY, tile=(64, 64), subifds=2 if below else 0)
        for step in (2, 4):
            file.write(np.ascontiguousarray(GRAY[::step, ::step]), tile=(32, 32), subfiletype=1)
    for level, step in enumerate((1, 2, 4)):
        scan = Scan(str(path), level)
        expected = GRAY[::step, ::step]
        assert scan.shape == expected.shape
        assert_array_equal(scan.block(1, 30, 2, 40), expected[1:30, 2:40])
    with pytest.raises(DataError, match="no level 3; accepted: 0 to 2"):
        Scan(str(path), 3)


def test_only_the_segments_of_a_block_are_read(tmp_path):
    path = _write(tmp_path / "a.tif", GRAY, compression="zlib", tile=(16, 16))
    with tifffile.TiffFile(path) as read:
        last = read.pages[0].dataoffsets[-1]
    with open(path, "r+b") as file:
        file.seek(last)
        file.write(b"broken")
    scan = Scan(path)
    assert_array_equal(scan.block(0, 100, 0, 100), GRAY[:100, :100])
    with pytest.raises(DataError, match=r"a\.tif: cannot be read as an image"):
        scan.block(100, 150, 100, 211)


def test_other_pictures_are_decoded_whole_and_large_ones_kept(tmp_path, monkeypatch):
    planes = np.ascontiguousarray(COLORS.transpose(2, 0, 1))
    tifffile.imwrite(tmp_path / "a.tif", planes, photometric="rgb", planarconfig="separate")
    Image.fromarray(GRAY).save(tmp_path / "a.png")
    monkeypatch.setattr(scans, "_LARGE", 100)
    for name, mode in (("a.tif", "color"), ("a.png", "gray")):
        scan = Scan(str(tmp_path / name))
        assert not scan.in_blocks
        whole = decode_image(tmp_path / name, mode)
        assert_array_equal(scan.block(2, 9, 3, 20, mode), whole[2:9, 3:20])
    Image.fromarray(GRAY[::-1]).save(tmp_path / "a.png", compress_level=0)
    assert_array_equal(Scan(str(tmp_path / "a.png")).block(0, 9, 0, 9), GRAY[::-1][:9, :9])
    forget_scans()


@pytest.mark.parametrize("content", [b"", b"II*\0", b"II*\0\x08\0\0\0\xff\xff", b"text"])
def test_broken_files_are_one_error(tmp_path, content):
    (tmp_path / "a.tif").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.tif"):
        Scan(str(tmp_path / "a.tif"))
    with pytest.raises(DataError, match=r"b\.tif"):
        Scan(str(tmp_path / "b.tif"))
