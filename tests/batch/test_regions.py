"""Regions: tiles of scans, objects of masks and patches around points, each a row of features."""

import csv

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare import Pixels
from visionshare.batch import extract_features, write_table
from visionshare.batch.regions import Region, files_of, objects_of, region_of, tiles_of
from visionshare.cli.main import main
from visionshare.errors import DataError, InputError
from visionshare.store import open_store

SCAN = np.random.default_rng(0).integers(1, 256, (20, 31), np.uint8)


@pytest.fixture
def scan(tmp_path, monkeypatch):
    """Return the path of a scan in the current folder, with its mask in ``masks``."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(SCAN).save("scan.png")
    mask = np.zeros(SCAN.shape, np.uint16)
    mask[2:6, 3:9] = 1
    mask[4, 5] = 0
    mask[10:18, 20:31] = 700
    (tmp_path / "masks").mkdir()
    Image.fromarray(mask).save(tmp_path / "masks" / "scan.tif")
    return "scan.png"


def _rows(path):
    header, *rows = csv.reader(path.read_text().splitlines())
    values = np.array([row[1:] for row in rows], float)
    # Pixels lie between 0 and 1.
    values[:, header.index("pixels0") - 1 :] *= 255
    return header, values.round(), [row[0] for row in rows]


def test_tiles_cover_an_image(scan):
    covered = np.zeros(SCAN.shape, int)
    boxes = [region.box for region in tiles_of(scan, 8)]
    for y0, x0, y1, x1 in boxes:
        covered[y0:y1, x0:x1] += 1
        assert (y1 - y0, x1 - x0) == (8, 8)
    assert covered.min() == 1
    assert boxes[0] == (0, 0, 8, 8)
    assert [region.box for region in tiles_of(scan, 64)] == [(0, 0, 20, 31)]


def test_texts_of_regions_are_read_again(scan, tmp_path):
    for region in (
        Region("a#1,2.png", (-3, 0, 5, 8)),
        Region("b", (0, 0, 1, 1), 7, "m/b.tif"),
        Region("b", (0, 0, 1, 1), 7, "m/b.tif", 2),
        Region("b", (0, 0, 1, 1), level=1),
    ):
        assert region_of(str(region)) == region
    assert files_of("b#0,0,1,1,7@m/b.tif") == ("b", "m/b.tif")
    # A file of such a name is a file.
    odd = tmp_path / "odd#0,0,1,1"
    odd.touch()
    assert region_of(str(odd)) is None


def test_tiles_are_rows_of_a_table(scan, tmp_path):
    command = ["extract", "pixels", scan, "--tiles", "8", "--jobs", "1", "--out", "t.csv"]
    assert main(command) == 0
    header, values, paths = _rows(tmp_path / "t.csv")
    assert header[:6] == ["path", "y0", "x0", "y1", "x1", "pixels0"]
    assert set(paths) == {"scan.png"}
    for y0, x0, y1, x1, *pixels in values.astype(int):
        assert_array_equal(np.array(pixels).reshape(8, 8), SCAN[y0:y1, x0:x1])


def test_tiles_of_a_level_of_a_pyramid(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tifffile = pytest.importorskip("tifffile")
    half = np.ascontiguousarray(SCAN[::2, ::2])
    with tifffile.TiffWriter("slide.tif") as file:
        file.write(SCAN, tile=(16, 16), subifds=1, compression="zlib")
        file.write(half, tile=(16, 16), subfiletype=1, compression="zlib")
    command = ["extract", "pixels", "slide.tif", "--tiles", "5", "--level", "1", "--jobs", "2"]
    assert main([*command, "--out", "t.csv"]) == 0
    header, values, _ = _rows(tmp_path / "t.csv")
    assert header[5] == "level"
    for y0, x0, y1, x1, level, *pixels in values.astype(int):
        assert level == 1
        assert_array_equal(np.array(pixels).reshape(5, 5), half[y0:y1, x0:x1])
    capsys.readouterr()
    for options, said in (
        (["--tiles", "5", "--level", "2"], "no level 2; accepted: 0 to 1"),
        (["--level", "1"], "a level with --tiles"),
    ):
        assert main(["extract", "pixels", "slide.tif", *options, "--out", "x.csv"]) == 2
        assert said in capsys.readouterr().err
        assert not list(tmp_path.glob("x.csv*"))


def test_objects_are_cut_out(scan, tmp_path):
    assert [region.number for region in objects_of([scan], tmp_path / "masks")] == [1, 700]
    command = ["extract", "pixels", scan, "--masks", "masks", "--size", "4x6"]
    assert main([*command, "--jobs", "1", "--out", "o.csv"]) == 0
    header, values, _ = _rows(tmp_path / "o.csv")
    assert header[:6] == ["path", "y0", "x0", "y1", "x1", "object"]
    assert values[:, :5].tolist() == [[2, 3, 6, 9, 1], [10, 20, 18, 31, 700]]
    first = SCAN[2:6, 3:9].copy()
    first[2, 2] = 0
    assert_array_equal(values[0, 5:].reshape(4, 6), first)


def test_patches_around_points(scan, tmp_path):
    (tmp_path / "points.csv").write_text("path,y,x\nscan.png,1,1\nscan.png,10.2,20\n")
    command = ["extract", "pixels", scan, "--keypoints", "points.csv", "--tiles", "6"]
    assert main([*command, "--jobs", "1", "--out", "p.csv"]) == 0
    _, values, _ = _rows(tmp_path / "p.csv")
    assert values[:, :4].tolist() == [[-2, -2, 4, 4], [7, 17, 13, 23]]
    # Beyond the image it is black.
    expected = np.zeros((6, 6))
    expected[2:, 2:] = SCAN[:4, :4]
    assert_array_equal(values[0, 4:].reshape(6, 6), expected)
    assert_array_equal(values[1, 4:].reshape(6, 6), SCAN[7:13, 17:23])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--masks", "none"], "a folder of label images"),
        (["--masks", "masks", "--tiles", "4"], "without --tiles"),
        (["--masks", "empty"], "no mask for scan.png"),
        (["--masks", "other"], "3 × 3 pixels; accepted: 20 × 31"),
        (["--masks", "colors"], "accepted: whole numbers"),
        (["--keypoints", "none.csv"], "none.csv: cannot be read"),
        (["--keypoints", "bad.csv"], "bad.csv: line 2"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(options, said, scan, tmp_path, capsys):
    for name, mode, size in (("other", "L", (3, 3)), ("colors", "RGB", (31, 20))):
        (tmp_path / name).mkdir()
        Image.new(mode, size).save(tmp_path / name / "scan.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.csv").write_text("path,y,x\nscan.jpg,1,1\n")
    assert main(["extract", "pixels", scan, *options, "--out", "x.csv"]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("x.csv*"))


def test_a_replaced_scan_is_noticed_and_whole_files_are_no_regions(scan, tmp_path):
    texts = [str(region) for region in tiles_of(scan, 10)]
    family = Pixels().fit(np.zeros((1, 10, 10), np.uint8))
    done = extract_features(family, texts, tmp_path / "s", regions=True)
    assert done.images == len(texts)
    assert open_store(tmp_path / "s").paths == texts
    write_table(open_store(tmp_path / "s"), tmp_path / "s.h5")
    Image.fromarray(SCAN[::-1]).save(scan)
    with pytest.raises(Exception, match="changed since"):
        extract_features(family, texts, tmp_path / "s", regions=True)
    with pytest.raises(InputError, match="regions, such as"):
        extract_features(family, [scan], tmp_path / "t", regions=True)
    with pytest.raises(DataError):
        extract_features(family, ["none.png#0,0,4,4"], tmp_path / "u", regions=True)
