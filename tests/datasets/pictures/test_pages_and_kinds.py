"""Several pages in a file, files of kinds that are not read, values of any range, broken files."""

import io
import json
import tarfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare import ImageClassifier
from visionshare.cli.main import main
from visionshare.datasets import decode_image, load_images, propose_preparation
from visionshare.datasets.containers.formats import extensions, readable_formats
from visionshare.datasets.decoding import decode_pages
from visionshare.datasets.notices import collect_notices
from visionshare.datasets.pictures.checking import check_pictures
from visionshare.datasets.readers.registry import find_pictures
from visionshare.errors import DataError, VisionshareError
from visionshare.recipes.own_pictures import recipe_for_pictures

SIDE = 16


def pages(n):
    return [np.full((SIDE, SIDE), 20 * (i + 1), np.uint8) for i in range(n)]


def save_pages(path, arrays, **options):
    first, *others = map(Image.fromarray, arrays)
    first.save(path, save_all=True, append_images=others, **options)


def save_classes(folder, n=6):
    """Write pictures of two classes that are easily told apart."""
    rng = np.random.default_rng(0)
    for name, gray in (("cat", 60), ("dog", 190)):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            noise = rng.integers(0, 30, (SIDE, SIDE), np.uint8)
            Image.fromarray(noise + np.uint8(gray)).save(folder / name / f"{i}.png")


@pytest.mark.parametrize("ending", ["tif", "gif", "webp", "png", "avif"])
def test_all_pages_and_the_first_one(tmp_path, ending):
    if f".{ending}" not in extensions():
        pytest.skip("this Pillow does not read the format")
    path = tmp_path / f"a.{ending}"
    options = {"lossless": True} if ending == "webp" else {}
    save_pages(path, pages(4), **options)
    read = list(decode_pages(path))
    assert len(read) == 4
    for page, expected in zip(read, pages(4), strict=True):
        assert np.abs(page.astype(int) - expected).max() <= 4
    with collect_notices() as notices:
        assert_array_equal(decode_image(path), read[0])
    assert notices.pages == {str(path): 3}


def test_pages_of_a_tiff_may_differ_in_size_and_lie(tmp_path):
    first, second = Image.new("L", (9, 5), 7), Image.new("RGB", (3, 4), (1, 2, 3))
    first.save(tmp_path / "a.tif", save_all=True, append_images=[second], tiffinfo={274: 6})
    assert [page.shape for page in decode_pages(tmp_path / "a.tif", "color")] == [
        (9, 5, 3), (3, 4, 3),
    ]  # fmt: skip


def test_commands_say_what_they_leave_out(tmp_path, capsys):
    save_classes(tmp_path / "pets")
    save_pages(tmp_path / "pets/cat/scan.tif", pages(3))
    for i in range(8):
        (tmp_path / f"pets/dog/{i}.xcf").touch()
    (tmp_path / "pets/cat/a.psd").touch()
    (tmp_path / "pets/cat/notes.txt").touch()
    kinds = "9 files of unsupported kinds are not used: .xcf 8, .psd 1"
    left_out = "1 file has several pages or frames: the first is used, 2 are left out"
    sheet = str(tmp_path / "sheet.png")
    assert main(["data", "check", str(tmp_path / "pets"), "--sheet", sheet]) == 0
    told = capsys.readouterr()
    assert f"note         {kinds}\n" in told.out
    assert f"note         {left_out}" in told.out
    assert told.err.count("note:") == 0

    paths = sorted((tmp_path / "pets").glob("*/*.png"))
    model = ImageClassifier("pixels", size=8)
    model.fit(list(map(str, paths)), [path.parent.name for path in paths])
    model.save(tmp_path / "pets.safetensors")
    for command in (["predict"], ["predict", "--json"]):
        assert main([*command, str(tmp_path / "pets.safetensors"), str(tmp_path / "pets")]) == 0
        told = capsys.readouterr()
        assert f"note: {kinds}\n" in told.err
        assert f"note: {left_out}" in told.err


def test_a_folder_of_other_kinds_alone_says_which(tmp_path, capsys):
    (tmp_path / "pets/cat").mkdir(parents=True)
    (tmp_path / "pets/cat/1.xcf").touch()
    for command in (["data", "check"], ["train"]):
        assert main([*command, str(tmp_path / "pets")]) == 2
        assert "1 file of an unsupported kind is not used: .xcf 1" in capsys.readouterr().err


def test_members_of_tars_of_other_kinds_are_counted(tmp_path):
    file = io.BytesIO()
    Image.new("L", (4, 4)).save(file, "png")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ("cat/1.png", "dog/2.png", "dog/3.xcf", "dog/3.txt"):
            member = tarfile.TarInfo(name)
            member.size = len(file.getvalue())
            tar.addfile(member, io.BytesIO(file.getvalue()))
    notes = find_pictures(tmp_path / "a.tar").notes
    assert notes == ("1 file of an unsupported kind is not used: .xcf 1",)


def test_a_list_of_files_of_other_kinds_is_refused_and_counted(tmp_path):
    save_classes(tmp_path)
    for name in ("a.xcf", "b.xcf", "c.psd"):
        (tmp_path / "cat" / name).touch()
    paths = sorted(map(str, tmp_path.glob("*/*")))
    message = r"3 files of unsupported kinds are not used: \.xcf 2, \.psd 1; accepted: .*PNG"
    with pytest.raises(DataError, match=message):
        ImageClassifier("pixels").fit(paths, [path.split("/")[-2] for path in paths])


def test_heic_is_read_where_its_extra_is_there(tmp_path):
    if "HEIC" not in [format_.name for format_ in readable_formats()]:
        pytest.skip("pillow-heif is not installed")
    Image.new("L", (8, 6), 99).save(tmp_path / "a.heic")
    assert np.abs(decode_image(tmp_path / "a.heic").astype(int) - 99).max() <= 3


def test_heic_without_its_extra_says_what_to_install(tmp_path, monkeypatch):
    import visionshare.datasets.opening as opening

    without = tuple(f for f in readable_formats() if f.name != "HEIC")
    monkeypatch.setattr(opening, "readable_formats", lambda: without)
    with pytest.raises(DataError, match=r"HEIC needs pillow-heif: pip install .*heic"):
        decode_image(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values_of_any_range_go_by_the_set(tmp_path, dtype):
    for name, top in (("cat", 200), ("dog", 1)):
        (tmp_path / name).mkdir()
        for i in range(3):
            values = np.linspace(0, top, SIDE * SIDE).reshape(SIDE, SIDE)
            Image.fromarray(values.astype(dtype)).save(tmp_path / name / f"{i}.tif")
    read = load_images(tmp_path, size=(SIDE, SIDE))
    cats, dogs = (read.images[read.labels == i] for i in (0, 1))
    # Dark pictures stay dark, although alone they would be taken for fractions.
    assert cats.max() > 190
    assert dogs.max() <= 1
    steps = propose_preparation(find_pictures(tmp_path)).preprocessing
    assert steps.values == (0.0, 255.0)
    assert decode_image(tmp_path / "dog/0.tif", steps=steps).max() <= 1
    paths = sorted(map(str, tmp_path.glob("*/*.tif")))
    assert propose_preparation(paths).preprocessing.values == (0.0, 255.0)


def test_a_range_is_kept_with_the_classifier(tmp_path):
    (tmp_path / "values").mkdir()
    paths, labels = [], []
    for label, top in (("bright", 3000.0), ("dark", 300.0)):
        for i in range(6):
            noise = np.random.default_rng(i).random((SIDE, SIDE))
            paths.append(str(tmp_path / f"values/{label}{i}.tif"))
            labels.append(label)
            Image.fromarray((top * (0.5 + noise / 2)).astype(np.float32)).save(paths[-1])
    model = ImageClassifier("pixels", size=8).fit(paths, labels)
    model.save(tmp_path / "a.safetensors")
    from visionshare import load
    from visionshare.batch import read_picture

    loaded = load(tmp_path / "a.safetensors")
    assert loaded.preprocessing.values == (0.0, 65535.0)
    assert read_picture(loaded, paths[0]).mean() > 5 * read_picture(loaded, paths[-1]).mean()


def test_check_and_train_count_the_same_broken_files(tmp_path):
    save_classes(tmp_path)
    whole = (tmp_path / "cat/0.png").read_bytes()
    (tmp_path / "cat/header.png").write_bytes(b"no picture")
    (tmp_path / "dog/pixels.png").write_bytes(whole[: len(whole) // 2])
    checked = check_pictures(find_pictures(tmp_path))
    assert len(checked.broken) == 2
    with pytest.raises(VisionshareError, match="2 of 14 pictures cannot be read, the first"):
        recipe_for_pictures(str(tmp_path))
    with pytest.raises(DataError, match="2 of 14 pictures cannot be read, the first"):
        load_images(tmp_path, size=(8, 8))


def test_all_pages_of_a_scan_are_read(tmp_path, capsys, monkeypatch):
    import visionshare.reading.page_reader as reading
    from visionshare.reading import Page

    read = []

    class Seen:
        def __init__(self, *_):
            pass

        def read(self, gray):
            read.append(int(gray[0, 0]))
            return Page(gray.shape[1], gray.shape[0])

    monkeypatch.setattr(reading, "PageReader", Seen)
    monkeypatch.setattr("visionshare.load", lambda path: None)
    save_pages(tmp_path / "scan.tif", pages(3))
    (tmp_path / "any").touch()
    options = ["--classifier", str(tmp_path / "any"), "--format", "json"]
    assert main(["read", str(tmp_path / "scan.tif"), *options]) == 0
    assert read == [20, 40, 60]
    told = capsys.readouterr()
    assert told.out.count('"page": 3') == 1
    assert "left out" not in told.err
    assert json.loads(told.out.splitlines()[0])
