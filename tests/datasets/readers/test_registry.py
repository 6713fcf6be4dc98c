"""Labeled pictures in folders, tables, tars, arrays and Parquet files; and files of strangers."""

import gzip
import io
import json
import tarfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare.datasets import load_images
from visionshare.datasets.folders import find_images
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.readers.registry import find_pictures
from visionshare.errors import DataError, InputError

SIZE = (6, 7)


def pixels(i):
    return np.random.default_rng(i).integers(0, 256, (*SIZE, 3), np.uint8)


def png(i):
    file = io.BytesIO()
    Image.fromarray(pixels(i)).save(file, "PNG")
    return file.getvalue()


def write(path, i):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(i))


def write_tar(path, members, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def read_color(pictures):
    return read_pictures(pictures, mode="color").images


def as_pairs(pictures):
    names = [pictures.classes[label] for label in pictures.labels]
    roles = [None] * len(names) if pictures.roles is None else pictures.roles.tolist()
    return list(zip(names, roles, strict=True))


@pytest.mark.parametrize(
    ("train", "test"), [("train", "test"), ("Training", "val"), ("train", "validation")]
)
def test_a_folder_with_parts_says_what_trains_and_tests(tmp_path, train, test):
    for i, part in enumerate((f"{train}/cat", f"{train}/dog", f"{test}/dog")):
        write(tmp_path / part / "1.png", i)
    pictures = find_pictures(tmp_path)
    role = 1 if test == "test" else 2
    assert sorted(as_pairs(pictures)) == [("cat", 0), ("dog", 0), ("dog", role)]
    assert pictures.classes == ("cat", "dog")
    read = read_color(pictures)
    assert_array_equal(read[pictures.roles == role], [pixels(2)])
    assert len(load_images(tmp_path, "test").images) == 1
    assert len(load_images(tmp_path, "train").images) == 2


@pytest.mark.parametrize("split", ["validation", "tset", "Test", ""])
def test_other_splits_are_refused(tmp_path, split):
    for i, part in enumerate(("train/a", "train/b", "test/b")):
        write(tmp_path / part / "1.png", i)
    for source in (tmp_path, "digits"):
        with pytest.raises(InputError, match=r"^split: got .*; accepted: 'train' or 'test'"):
            load_images(source, split)


def test_with_test_pictures_those_for_validation_do_not_test(tmp_path):
    for i, part in enumerate(("train/a", "train/b", "val/a", "test/b")):
        write(tmp_path / part / "1.png", i)
    pictures = find_pictures(tmp_path)
    assert sorted(pictures.roles.tolist()) == [0, 0, 1, 2]
    assert pictures.has_test
    assert pictures.n_validation == 1
    assert len(load_images(tmp_path, "test").images) == 1


def test_a_folder_without_parts_leaves_hidden_files_and_empty_folders_out(tmp_path):
    for i, name in enumerate(("cat/1.png", "dog/deep/2.png", ".git/3.png", "dog/._2.png")):
        write(tmp_path / name, i)
    (tmp_path / "bird").mkdir()
    pictures = find_pictures(tmp_path)
    assert as_pairs(pictures) == [("cat", None), ("dog", None)]
    assert "bird" in pictures.notes[0]


def test_folders_beside_those_of_train_and_test_are_named(tmp_path):
    for i, part in enumerate(("train/a", "train/b", "test/b", "eval/a", "2")):
        write(tmp_path / part / "1.png", i)
    write(tmp_path / "val" / "loose.png", 5)
    pictures = find_pictures(tmp_path)
    assert sorted(as_pairs(pictures)) == [("a", 0), ("b", 0), ("b", 1)]
    assert pictures.notes == ("3 folders beside train and test are not used: 2, eval, val",)


def test_a_folder_of_pictures_is_a_class_whatever_its_name(tmp_path):
    for i, name in enumerate(("bus", "car", "train", "val")):
        write(tmp_path / name / "1.png", i)
    assert as_pairs(find_pictures(tmp_path)) == [(n, None) for n in ("bus", "car", "train", "val")]


@pytest.mark.parametrize("test", ["test", "val"])
def test_a_part_that_tests_may_stand_beside_the_classes(tmp_path, test):
    for i, part in enumerate(("0", "1", f"{test}/0", f"{test}/1")):
        write(tmp_path / part / "1.png", i)
    role = 1 if test == "test" else 2
    assert as_pairs(find_pictures(tmp_path)) == [("0", 0), ("1", 0), ("0", role), ("1", role)]


def test_a_part_that_is_a_class_too_is_refused(tmp_path):
    for i, name in enumerate(("bus/1.png", "train/2.png", "train/steam/3.png")):
        write(tmp_path / name, i)
    with pytest.raises(DataError, match=r"2\.png.*neither classes to train nor a class 'train'"):
        find_pictures(tmp_path)


def test_what_systems_leave_behind_is_skipped_at_every_depth(tmp_path):
    for i, name in enumerate(("cat/1.png", "dog/2.png", "dog/__MACOSX/3.png", "dog/._2.png")):
        write(tmp_path / name, i)
    assert as_pairs(find_pictures(tmp_path)) == [("cat", None), ("dog", None)]
    assert [path.name for path in find_images(tmp_path)] == ["1.png", "2.png"]
    assert load_images(tmp_path).names == ("cat/1.png", "dog/2.png")
    members = {"cat/1.png": png(0), "__MACOSX/cat/2.png": png(1), ".git/3.png": png(2)}
    write_tar(tmp_path / "a.tar", members)
    assert as_pairs(find_pictures(tmp_path / "a.tar")) == [("cat", None)]


def test_class_folders_go_before_a_stray_tar(tmp_path):
    for i, name in enumerate(("cat/1.png", "dog/2.png")):
        write(tmp_path / name, i)
    write_tar(tmp_path / "backup.tar", {"fish/1.png": png(3)})
    pictures = find_pictures(tmp_path)
    assert pictures.classes == ("cat", "dog")
    assert pictures.notes == (".tar files are not used: folders hold the classes",)


def test_class_folders_go_before_a_stray_parquet_file(tmp_path):
    for i, name in enumerate(("cat/1.png", "dog/2.png")):
        write(tmp_path / name, i)
    (tmp_path / "cat" / "features.parquet").touch()
    pictures = find_pictures(tmp_path)
    assert pictures.classes == ("cat", "dog")
    assert pictures.notes == (".parquet files are not used: folders hold the classes",)
    assert load_images(tmp_path, "train", size=(4, 4)).classes == ("cat", "dog")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path,label\na.png,cat\nb/c.png,dog\n", [("cat", None), ("dog", None)]),
        ("\ufefflabel;split;file\ncat;train;a.png\ncat;test;b/c.png\n", [("cat", 0), ("cat", 1)]),
        ("a.png,cat\nb/c.png,dog\n", [("cat", None), ("dog", None)]),
    ],
)
def test_a_table_of_paths_and_labels(tmp_path, text, expected):
    write(tmp_path / "a.png", 0)
    write(tmp_path / "b" / "c.png", 1)
    (tmp_path / "labels.csv").write_text(text, "utf-8")
    for source in (tmp_path / "labels.csv", tmp_path):
        pictures = find_pictures(source)
        assert as_pairs(pictures) == expected
        assert_array_equal(read_color(pictures), [pixels(0), pixels(1)])


def test_json_lines(tmp_path):
    write(tmp_path / "a.png", 0)
    lines = [{"file_name": "a.png", "label": 3, "split": s} for s in ("train", "validation")]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert as_pairs(find_pictures(tmp_path / "metadata.jsonl")) == [("3", 0), ("3", 2)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "path,label\n../secret.png,cat\n", "outside"),
        ("t.csv", "path,label\n/etc/hostname,cat\n", "outside"),
        ("t.csv", "path,label\nb.png,cat\n", "no file 'b.png'"),
        ("t.csv", "path,label\na.png\n", "no label; it has path"),
        ("t.csv", "path,label\na.png,\n", "no label"),
        ("t.csv", "one,two\na,b\n", "no path; it has one, two"),
        ("t.csv", "", "no rows"),
        ("t.csv", 'path,label\n"a.png,cat', "cannot be read as a table"),
        ("t.jsonl", "[" * 100_000, "cannot be read as a table"),
        ("t.jsonl", "[1]\n", "not an object"),
        ("t.jsonl", '{"path": "a.png"}\n', "no label; it has path"),
        ("t.jsonl", '{"path": "a.png", "label": 1.0}\n', r"label 1\.0, not text or a whole"),
        ("t.jsonl", '{"path": "a.png", "label": null}\n', "label null, not text or a whole"),
        ("t.jsonl", '{"path": "a.png", "label": 1, "split": 0.5}\n', r"split 0\.5, not text"),
        ("t.jsonl", '{"path": "a.png", "label": 1, "split": 0}\n', "split '0'; it may be train"),
        ("t.csv", "path,label,split\na.png,cat,Train\na.png,cat,holdout\n", "row 3: split 'holdo"),
        ("t.csv", "path,label,set\na.png,cat,Evaluation\n", "may be .*testing, val.*, or empty"),
    ],
)
def test_broken_tables_are_typed_errors(tmp_path, name, text, message):
    write(tmp_path / "in" / "a.png", 0)
    write(tmp_path / "secret.png", 1)
    (tmp_path / "in" / name).write_text(text, "utf-8")
    with pytest.raises(DataError, match=message) as caught:
        find_pictures(tmp_path / "in" / name)
    # The file is named once.
    assert str(caught.value).count(name) == 1


def test_a_split_may_be_in_any_case_empty_or_null(tmp_path):
    write(tmp_path / "a.png", 0)
    splits = ("TRAIN", "", None, "Test")
    lines = [{"path": "a.png", "label": "cat", "split": split} for split in splits]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert find_pictures(tmp_path / "t.jsonl").roles.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("packed", [False, True])
def test_a_tar_of_samples(tmp_path, packed):
    members = {
        "0001.jpg": png(0), "0001.cls": b"cat\n", "0002.png": png(1), "0002.seg.png": png(2),
        "0002.json": b'{"label": "dog"}', "fish/0003.png": png(3), "notes.txt": b"x",
    }  # fmt: skip
    path = tmp_path / ("a.tar.gz" if packed else "a.tar")
    write_tar(path, members, "w:gz" if packed else "w")
    pictures = find_pictures(path)
    assert [name for name, _ in as_pairs(pictures)] == ["cat", "dog", "dog", "fish"]
    assert_array_equal(read_color(pictures), [pixels(i) for i in range(4)])


def test_shards_of_tars_say_what_tests(tmp_path):
    for name, i in (("train-0000", 0), ("train-0001", 1), ("test-0000", 2)):
        write_tar(tmp_path / f"{name}.tar", {"1.png": png(i), "1.cls": str(i % 2).encode()})
    assert as_pairs(find_pictures(tmp_path)) == [("0", 1), ("0", 0), ("1", 0)]


def test_folders_of_a_tar_say_what_tests(tmp_path):
    members = {}
    for i, part in enumerate(("train", "test")):
        members |= {f"{part}/1.png": png(i), f"{part}/1.cls": b"cat"}
        members |= {f"{part}/dog/2.png": png(i)}
    write_tar(tmp_path / "a.tar", members)
    pairs = as_pairs(find_pictures(tmp_path / "a.tar"))
    assert pairs == [("cat", 0), ("dog", 0), ("cat", 1), ("dog", 1)]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_of_a_tar_are_not_followed(tmp_path, kind):
    link = tarfile.TarInfo("dog/1.png")
    link.type, link.linkname = kind, "cat/0.png" if kind == tarfile.LNKTYPE else "../cat/0.png"
    write_tar(tmp_path / "a.tar", {"cat/0.png": png(0), "fish/0.png": png(1)})
    with tarfile.open(tmp_path / "a.tar", "a") as tar:
        tar.addfile(link)
    assert [name for name, _ in as_pairs(find_pictures(tmp_path / "a.tar"))] == ["cat", "fish"]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_tar_of_headers_about_headers_is_refused(tmp_path, kind):
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, 8
    text = b"8 a=bcd\n" if kind == tarfile.XHDTYPE else b"abcdefg\0"
    header = member.tobuf(tarfile.GNU_FORMAT) + text.ljust(512, b"\0")
    (tmp_path / "a.tar").write_bytes(header * 3000 + b"\0" * 1024)
    with pytest.raises(DataError, match="cannot be read as a tar"):
        find_pictures(tmp_path / "a.tar")


def test_broken_tars_are_typed_errors(tmp_path):
    write_tar(tmp_path / "a.tar", {"1.png": png(0)})
    with pytest.raises(DataError, match="no class"):
        find_pictures(tmp_path / "a.tar")
    (tmp_path / "b.tar").write_bytes(b"\x1f\x8b" + b"x" * 600)
    with pytest.raises(DataError, match="cannot be read as a tar"):
        find_pictures(tmp_path / "b.tar")
    (tmp_path / "c.tar").write_bytes(gzip.compress(b"y" * 600))
    with pytest.raises(DataError, match="cannot be read as a tar"):
        find_pictures(tmp_path / "c.tar")


def test_a_header_of_a_tar_that_asks_for_gigabytes_is_refused(tmp_path):
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.XHDTYPE, 1 << 32
    (tmp_path / "a.tar").write_bytes(member.tobuf() + b"\0" * 1024)
    with pytest.raises(DataError, match="bytes at once"):
        find_pictures(tmp_path / "a.tar")


def test_arrays_with_parts(tmp_path):
    images = np.arange(5 * 4 * 4, dtype=np.uint8).reshape(5, 4, 4)
    np.savez(
        tmp_path / "a.npz",
        train_images=images[:3], train_labels=np.array([[0], [1], [1]]),
        val_images=images[3:4], val_labels=[0], test_images=images[4:], test_labels=[1],
    )  # fmt: skip
    pictures = find_pictures(tmp_path / "a.npz")
    assert pictures.roles.tolist() == [0, 0, 0, 2, 1]
    assert pictures.labels.tolist() == [0, 1, 1, 0, 1]
    assert_array_equal(read_pictures(pictures).images, images)
    assert_array_equal(load_images(tmp_path / "a.npz", "test").images, images[4:])


def test_floats_and_vectors_of_arrays_stay_as_they_are(tmp_path):
    values = np.random.default_rng(0).random((4, 9))
    np.savez(tmp_path / "a.npz", X=values, y=list("abab"))
    loaded = load_images(tmp_path / "a.npz")
    assert_array_equal(loaded.images, values)
    with pytest.raises(DataError, match="only bytes are resized"):
        load_images(tmp_path / "a.npz", size=(2, 2))


def test_parquet_files_with_and_without_parts(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    names = {"info": {"features": {"label": {"names": ["cat", "dog"]}}}}
    for name, numbers in (("train", (0, 1)), ("test", (2,))):
        rows = pyarrow.array([{"bytes": png(i), "path": None} for i in numbers], kind)
        table = pyarrow.table({"image": rows, "label": [i % 2 for i in numbers]})
        noted = table.replace_schema_metadata({"huggingface": json.dumps(names)})
        parquet.write_table(noted, tmp_path / f"{name}-00000-of-00001.parquet")
    pictures = find_pictures(tmp_path)
    assert as_pairs(pictures) == [("cat", 0), ("dog", 0), ("cat", 1)]
    assert_array_equal(read_color(pictures), [pixels(i) for i in range(3)])
    alone = find_pictures(tmp_path / "train-00000-of-00001.parquet")
    assert alone.roles is None
    assert alone.labels.tolist() == [0, 1]


def test_what_is_no_source_is_named(tmp_path):
    with pytest.raises(DataError, match="no folder or file named"):
        find_pictures(tmp_path / "none")
    (tmp_path / "a.doc").touch()
    with pytest.raises(DataError, match="unknown kind of data file"):
        find_pictures(tmp_path / "a.doc")
    write(tmp_path / "test" / "a" / "1.png", 0)
    write(tmp_path / "train" / "b" / "1.png", 0)
    with pytest.raises(DataError, match="without a training picture: 'a'"):
        find_pictures(tmp_path)


def test_broken_pictures_are_named_or_skipped(tmp_path):
    for i in range(3):
        write(tmp_path / "a" / f"{i}.png", i)
    (tmp_path / "a" / "1.png").write_bytes(png(1)[:60])
    pictures = find_pictures(tmp_path)
    with pytest.raises(DataError, match=r"1\.png: cannot be read.*--skip-broken"):
        read_pictures(pictures)
    read = read_pictures(pictures, mode="color", skip_broken=True, n_jobs=2)
    assert read.numbers.tolist() == [0, 2]
    assert len(read.broken) == 1
    assert_array_equal(read.images, [pixels(0), pixels(2)])
    with pytest.raises(DataError, match="smaller size"):
        read_pictures(find_pictures(tmp_path), skip_broken=True, max_bytes=100)


def sample_files(folder):
    members = {"train/a/1.png": png(0), "2.png": png(1), "2.json": b'{"label": 1}', "2.cls": b"x"}
    write_tar(folder / "a.tar", members)
    write_tar(folder / "b.tgz", members, "w:gz")
    write(folder / "1.png", 0)
    (folder / "c.csv").write_text('path,label,split\n1.png,"a",train\n1.png,b,\n', "utf-8")
    (folder / "d.jsonl").write_text('{"path": "1.png", "label": 1}\n', "utf-8")
    return [folder / name for name in ("a.tar", "b.tgz", "c.csv", "d.jsonl")]


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_sources_are_typed_errors_or_read(tmp_path_factory, data):
    path = data.draw(st.sampled_from(sample_files(tmp_path_factory.mktemp("damaged"))))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        pictures = find_pictures(path)
        read = read_pictures(pictures, (4, 4), skip_broken=True)
    except DataError:
        return
    assert len(read.images) == len(read.numbers) <= len(pictures)
