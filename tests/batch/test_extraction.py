"""Extraction: the same columns as in memory, after a stop, and with broken images left out."""

import json
import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare import PatchTemplates, Pixels
from visionshare.batch import extract_features
from visionshare.cli.main import main
from visionshare.datasets.folders import iter_images, read_images
from visionshare.datasets.notices import collect_notices
from visionshare.errors import DataError, InputError, StoreError
from visionshare.generators.family_file import read_family, write_family
from visionshare.store import StoreColumns, open_store
from visionshare.store.writer_lock import writer_lock

N = 600


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (N, 6, 7), np.uint8)


@pytest.fixture(scope="module")
def paths(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for i, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{i:04d}.png")
    return [str(p) for p in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def family(images):
    return PatchTemplates(3, 17, 2, (2.0,), n_patches=3000).fit(images)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_columns_are_those_of_the_images_in_memory(images, paths, family, tmp_path, dtype):
    extraction = extract_features(
        family, paths, tmp_path / "s", dtype=dtype, memory="40KB", n_jobs=2
    )
    assert (extraction.images, extraction.features, extraction.broken) == (N, 68, ())
    columns = open_store(tmp_path / "s", family, images)
    expected = family.transform_columns(images, dtype=dtype).astype(np.float32)
    assert_array_equal(columns.columns_of(), expected)
    assert (tmp_path / "s" / "images.txt").read_text().splitlines() == paths
    assert not (tmp_path / "s" / "work").exists()
    assert len(list((tmp_path / "s" / "shards").iterdir())) > 1


def elsewhere(function, make, arguments, items):
    """Map as a cluster does, whose notices are heard by nobody here."""
    made = make(*arguments)
    for item in items:
        with collect_notices(pass_on=False):
            result = function(made, item)
        yield result


@pytest.mark.parametrize("mapper", [None, elsewhere])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values_of_any_range_go_by_the_set(tmp_path, mapper, dtype):
    dark, bright = (np.full((4, 4), value, dtype) for value in (1, 200))
    for name, image in (("a.tif", dark), ("b.tif", bright)):
        Image.fromarray(image).save(tmp_path / name)
    paths = sorted(map(str, tmp_path.glob("*.tif")))
    images = read_images(paths, (4, 4))
    assert images[:, 0, 0].tolist() == [1, 200]
    pixels = Pixels().fit(images)
    extract_features(pixels, paths, tmp_path / "s", mapper=mapper)
    columns = open_store(tmp_path / "s", pixels, images).columns_of()
    assert_array_equal(columns, pixels.transform_columns(images))


@pytest.mark.parametrize("mapper", [None, elsewhere])
def test_pages_that_are_left_out_are_counted(tmp_path, mapper):
    page = Image.new("L", (4, 4), 9)
    page.save(tmp_path / "a.tif", save_all=True, append_images=[page, page])
    pixels = Pixels().fit(np.zeros((1, 4, 4)))
    with collect_notices() as notices:
        extract_features(pixels, [str(tmp_path / "a.tif")], tmp_path / "s", mapper=mapper)
    assert notices.pages == {str(tmp_path / "a.tif"): 2}


class Interrupted:
    """Stands for a method: the second call is interrupted, later ones are counted."""

    def __init__(self, method):
        self.method, self.calls, self.interrupted = method, 0, False

    def __call__(self, *arguments):
        self.calls += 1
        if self.calls == 2 and not self.interrupted:
            self.interrupted = True
            self.calls -= 1
            raise KeyboardInterrupt
        return self.method(*arguments)


@pytest.mark.parametrize("moment", ["part", "shard"])
def test_a_stopped_extraction_resumes(images, paths, family, tmp_path, monkeypatch, moment):
    work = Interrupted(StoreColumns.commit if moment == "shard" else family.transform_columns)
    if moment == "shard":
        monkeypatch.setattr(StoreColumns, "commit", lambda *arguments: work(*arguments))
    else:
        monkeypatch.setattr(family, "transform_columns", work)
    with pytest.raises(KeyboardInterrupt):
        extract_features(family, paths, tmp_path / "s", memory="40KB")
    assert work.calls == 1
    extract_features(family, paths, tmp_path / "s", memory="40KB")
    # Nothing is done twice: in parts of 256 images, and in shards of the columns.
    shards = len(list((tmp_path / "s" / "shards").iterdir()))
    assert work.calls == (3 if moment == "part" else shards)
    # Once more costs nothing and changes nothing.
    assert extract_features(family, paths, tmp_path / "s", memory="40KB").images == N
    assert work.calls == (3 if moment == "part" else shards)
    monkeypatch.undo()
    columns = open_store(tmp_path / "s", family, images)
    assert_array_equal(columns.columns_of(), family.transform_columns(images))


def test_broken_images_stop_or_are_left_out(images, paths, family, tmp_path):
    broken = [str(tmp_path / name) for name in ("x.png", "y.png")]
    for path in broken:
        with open(path, "wb") as handle:
            handle.write(b"\x89PNG\r\n\x1a\n")
    mixed = [broken[0], *paths[:300], broken[1], *paths[300:]]
    with pytest.raises(DataError, match=r"x\.png"):
        extract_features(family, mixed, tmp_path / "s")
    extraction = extract_features(family, mixed, tmp_path / "t", skip_broken=True)
    assert (extraction.images, extraction.broken) == (N, tuple(broken))
    assert_array_equal(
        open_store(tmp_path / "t", family, images).columns_of(), family.transform_columns(images)
    )
    assert extract_features(family, mixed, tmp_path / "t", skip_broken=True).broken == tuple(broken)
    with pytest.raises(DataError, match="none of 2 images"):
        extract_features(family, broken, tmp_path / "u", skip_broken=True)


def test_a_folder_keeps_to_one_extraction(paths, family, tmp_path):
    extract_features(family, paths[:5], tmp_path / "s")
    for changed in ({"fit": "center"}, {"dtype": "float16"}):
        with pytest.raises(StoreError, match="another folder"):
            extract_features(family, paths[:5], tmp_path / "s", **changed)
    with pytest.raises(StoreError, match="another folder"):
        extract_features(family, paths[:6], tmp_path / "s")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match="not empty"):
        extract_features(family, paths[:5], tmp_path / "other")


@pytest.fixture
def own_paths(images, tmp_path):
    """Return pictures that a test may replace."""
    (tmp_path / "pictures").mkdir()
    for i, image in enumerate(images[:300]):
        Image.fromarray(image).save(tmp_path / "pictures" / f"{i:04d}.png")
    return [str(path) for path in sorted((tmp_path / "pictures").iterdir())]


def test_an_image_replaced_under_its_name_is_refused(images, own_paths, family, tmp_path):
    extract_features(family, own_paths, tmp_path / "s")
    Image.fromarray(255 - images[280]).save(own_paths[280])
    with pytest.raises(StoreError, match=r"0280\.png changed since its features were extracted"):
        extract_features(family, own_paths, tmp_path / "s")
    Image.fromarray(images[280]).save(own_paths[280])
    assert extract_features(family, own_paths, tmp_path / "s").images == 300


@pytest.mark.parametrize("attacked", ["image", ".npy", ".json"])
def test_parts_that_changed_are_computed_again(images, own_paths, family, tmp_path, attacked):
    last = Image.fromarray(images[299])
    with open(own_paths[299], "wb") as handle:
        handle.write(b"broken")
    with pytest.raises(DataError, match=r"0299\.png"):
        extract_features(family, own_paths, tmp_path / "s")
    last.save(own_paths[299])
    expected = images[:300].copy()
    if attacked == "image":
        expected[3] = 255 - expected[3]
        Image.fromarray(expected[3]).save(own_paths[3])
    else:
        (file,) = (tmp_path / "s" / "work").glob(f"*{attacked}")
        content = bytearray(file.read_bytes())
        content[-40] ^= 1
        file.write_bytes(content)
    extract_features(family, own_paths, tmp_path / "s")
    columns = open_store(tmp_path / "s", family, expected).columns_of()
    assert_array_equal(columns, family.transform_columns(expected))


@pytest.mark.parametrize("name", ["contents.json", "images.txt", "broken.json"])
def test_damaged_lists_are_refused(own_paths, family, tmp_path, name):
    extract_features(family, own_paths, tmp_path / "s")
    content = bytearray((tmp_path / "s" / name).read_bytes())
    content[0] ^= 1
    (tmp_path / "s" / name).write_bytes(content)
    with pytest.raises(StoreError, match=f"{name}: is damaged"):
        extract_features(family, own_paths, tmp_path / "s")


def test_a_work_folder_of_somebody_else_stays(own_paths, family, tmp_path):
    extract_features(family, own_paths, tmp_path / "s")
    (tmp_path / "s" / "work").mkdir()
    (tmp_path / "s" / "work" / "thesis.tex").touch()
    extract_features(family, own_paths, tmp_path / "s")
    assert (tmp_path / "s" / "work" / "thesis.tex").exists()


def test_a_refused_folder_is_not_touched(own_paths, family, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    command = ["extract", "pixels", str(tmp_path / "pictures"), "--out", str(tmp_path / "other")]
    assert main(command) == 2
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["letter.txt"]
    (tmp_path / "other" / "letter.txt").unlink()
    with (
        writer_lock(tmp_path / "other", "extraction.lock"),
        pytest.raises(StoreError, match="another process writes"),
    ):
        extract_features(family, own_paths, tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["extraction.lock"]


def test_every_name_is_a_line(images, family, tmp_path):
    names = [b"a\nb.png", b"\xff.png", "é.png".encode(), b'"q".png', b"=1.png"]
    (tmp_path / "pictures").mkdir()
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path / "pictures"), name), "wb") as handle:
            Image.fromarray(images[0]).save(handle, "png")
    paths = list(iter_images(tmp_path / "pictures"))
    assert extract_features(family, paths, tmp_path / "s").images == 5
    lines = (tmp_path / "s" / "images.txt").read_text("utf-8").splitlines()
    read = [json.loads(line) if line.startswith('"') else line for line in lines]
    assert read == paths


def test_bad_arguments_are_named(paths, family, tmp_path):
    vectors, pairs = (Pixels().fit(np.zeros(s, np.float32)) for s in ((3, 5), (3, 6, 7, 2)))
    for arguments, word in (
        ((family, paths, tmp_path / "s", {"dtype": "int8"}), "dtype"),
        ((family, paths, tmp_path / "s", {"fit": "crop"}), "fit"),
        ((family, paths, tmp_path / "s", {"memory": "much"}), "memory"),
        ((vectors, paths, tmp_path / "s", {}), "family: got 'one of shape"),
        # A gray file is no half of an image of two channels.
        ((pairs, paths, tmp_path / "s", {}), "family: got 'one of shape"),
    ):
        with pytest.raises(InputError, match=rf"^{word}"):
            extract_features(*arguments[:3], **arguments[3])
    with pytest.raises(DataError, match="no images"):
        extract_features(family, [], tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_family_files_come_back_and_are_checked(images, family, tmp_path):
    write_family(tmp_path / "f.safetensors", family)
    again = read_family(tmp_path / "f.safetensors")
    assert_array_equal(again.transform(images[:9]), family.transform(images[:9]))
    content = bytearray((tmp_path / "f.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "f.safetensors").write_bytes(content)
    with pytest.raises(DataError, match="sha256"):
        read_family(tmp_path / "f.safetensors")
    with pytest.raises(DataError, match="no file named"):
        read_family(tmp_path / "none")


def test_the_command_learns_a_pool_and_gives_it_to_other_images(paths, tmp_path, capsys):
    folder = str(tmp_path / "a")
    listing = [*paths[:40]]
    assert main(["extract", "pixels", *listing, "--out", folder, "--size", "4x4"]) == 0
    assert "features     16" in capsys.readouterr().out
    assert main(["extract", "pixels", *listing, "--out", folder, "--size", "4x4"]) == 0
    features = str(tmp_path / "a" / "features.safetensors")
    other = [*paths[40:50], "--out", str(tmp_path / "b")]
    assert main(["extract", features, *other]) == 0
    capsys.readouterr()
    assert main(["store", "info", str(tmp_path / "b")]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 10


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (["--size", "big"], "--size"), (["--sample", "0"], "--sample"), (["--dtype", "x"], "dtype"),
        (["--jobs", "0"], "--jobs"), (["--memory", "-1"], "--memory"),
    ],
)  # fmt: skip
def test_the_command_names_what_is_wrong(paths, tmp_path, capsys, changed, word):
    arguments = ["extract", "pixels", *paths[:3], "--out", str(tmp_path / "s"), *changed]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {word}")
    assert error.count("\n") == 1


def test_drafts_are_about_the_same_and_do_not_mix(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for number in range(3):
        smooth = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8)).resize((320, 240))
        # Turned by a quarter: upright it is 320 × 240.
        smooth.save(tmp_path / f"{number}.jpg", exif=_turned())
    paths = sorted(map(str, tmp_path.glob("*.jpg")))
    small = read_images(paths, (40, 30))
    draft = read_images(paths, (40, 30), draft=True)
    assert 0 < np.abs(small.astype(int) - draft).mean() < 3
    # Nothing to divide: the same bits.
    full = read_images(paths, (200, 150), "color")
    assert_array_equal(read_images(paths, (200, 150), "color", draft=True), full)

    family = Pixels().fit(small)
    extract_features(family, paths, tmp_path / "s", draft=True)
    columns = open_store(tmp_path / "s", family)
    assert_array_equal(columns.columns_of(), family.transform(draft).T)
    with pytest.raises(StoreError, match="other features, images or settings"):
        extract_features(family, paths, tmp_path / "s")
    with pytest.raises(InputError, match="draft"):
        extract_features(family, paths, tmp_path / "t", draft=True, regions=True)
    out = str(tmp_path / "a.csv")
    assert main(["extract", "lbp", *paths, "--out", out, "--draft", "--tiles", "40"]) == 2
    assert "--draft" in capsys.readouterr().err


def _turned():
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif
