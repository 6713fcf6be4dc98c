import hashlib
import json

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.batch import extract_features
from visionshare.batch.resumed_file import resumed_file
from visionshare.cli.main import main
from visionshare.errors import InputError, StorageError
from visionshare.files.uploads import COMPLETE, Destination, local_place, uploaded_file
from visionshare.recipes import load_recipe, train

SMALL = ["learner.rounds=2", "data.limit=200", "features.pool=pixels"]


class Killed(BaseException):
    """What a process that is killed never sees."""


@pytest.fixture
def place(object_storage, tmp_path, monkeypatch):
    """An empty place in storage; the folder where results are made is a new one."""
    monkeypatch.chdir(tmp_path)
    if not object_storage.exists("results"):
        object_storage.mkdir("results")
    return f"s3://results/{tmp_path.name}"


@pytest.fixture
def classifier(tmp_path):
    family = Pixels().fit(np.zeros((1, 2, 2), np.uint8)).take([0, 3])
    model = CompactClassifier(family, np.eye(2), np.array([1.0, 0.0]), np.array(["a", "b"]))
    model.save(tmp_path / "model.safetensors")
    for i in range(3):
        Image.new("L", (9, 9), 7 * i).save(tmp_path / f"{i}.png")
    return tmp_path / "model.safetensors"


def stored(object_storage, url):
    object_storage.invalidate_cache()
    start = len(url) - len("s3://")
    return {name[start + 1 :]: object_storage.cat(name) for name in object_storage.find(url)}


def is_whole(objects):
    """Whether a reader may take what is there: all files as the mark lists them."""
    files = json.loads(objects[COMPLETE])["files"]
    return files and all(
        hashlib.sha256(objects[name]).hexdigest() == found["sha256"]
        and len(objects[name]) == found["bytes"]
        for name, found in files.items()
    )


def made(place, **files):
    """Make results, as a command that is started again would."""
    destination = Destination.of(place)
    destination.folder.mkdir(parents=True, exist_ok=True)
    destination.claim()
    for name, content in files.items():
        path = destination.folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return destination


def test_a_folder_is_uploaded_and_removed_here(place, object_storage, tmp_path):
    destination = made(place, a="1", sub__b="22", work__left="3")
    destination.deliver(["work"])
    destination.clear()
    objects = stored(object_storage, place)
    assert set(objects) == {"a", "sub/b", COMPLETE}
    assert is_whole(objects)
    assert not list(tmp_path.iterdir())


def test_later_results_replace_earlier_ones(place, object_storage):
    for files in ({"a": "1", "old": "2"}, {"a": "3", "new": "4"}):
        destination = made(place, **files)
        destination.deliver()
        destination.clear()
    objects = stored(object_storage, place)
    assert set(objects) == {"a", "new", COMPLETE}
    assert objects["a"] == b"3"
    assert is_whole(objects)


@pytest.mark.parametrize("method", ["put_file", "rm_file"])
def test_an_upload_that_dies_at_any_moment_is_completed(place, object_storage, monkeypatch, method):
    """Readers find results of one run, or no mark; the same command completes the second."""
    first = made(place, a="1", old="2")
    first.deliver()
    first.clear()
    left, real = [0], getattr(object_storage, method)

    def dies(*arguments, **options):
        if not left[0]:
            raise Killed
        left[0] -= 1
        return real(*arguments, **options)

    monkeypatch.setattr(object_storage, method, dies)
    for calls in range(20):
        left[0] = calls
        try:
            second = made(place, a="3", b="4", c="5")
            second.deliver()
        except Killed:
            objects = stored(object_storage, place)
            assert COMPLETE not in objects or is_whole(objects)
            continue
        break
    second.clear()
    objects = stored(object_storage, place)
    assert 1 < calls < 19
    assert set(objects) == {"a", "b", "c", COMPLETE}
    assert is_whole(objects)


def test_files_that_are_there_are_not_uploaded_again(place, object_storage, monkeypatch):
    names, real = [], object_storage.put_file

    def fails_once(path, url):
        names.append(url.rpartition("/")[2])
        if names.count("c") == 1 and names[-1] == "c":
            raise PermissionError(13, "Forbidden")
        return real(path, url)

    monkeypatch.setattr(object_storage, "put_file", fails_once)
    with pytest.raises(StorageError, match="Forbidden"):
        made(place, a="1", b="2", c="3").deliver()
    made(place, a="1", b="2", c="3").deliver()
    assert [names.count(name) for name in "abc"] == [1, 1, 2]
    assert is_whole(stored(object_storage, place))


def test_an_upload_that_ended_is_known_where_the_folder_is_left(place, object_storage):
    made(place, a="1").deliver()
    again = Destination.of(place, replaces=False)
    again.claim()
    again.deliver()
    assert set(stored(object_storage, place)) == {"a", COMPLETE}
    made(place, a="2").deliver()
    assert stored(object_storage, place)["a"] == b"2"


def test_another_run_in_the_same_place_is_noticed(place, tmp_path, monkeypatch):
    mine = made(place, a="1")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    made(place, a="2")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="another run"):
        mine.deliver()


def test_what_no_run_wrote_is_not_replaced(place, object_storage):
    object_storage.pipe(f"{place}/notes.txt", b"mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        Destination.of(place)
    object_storage.pipe(f"{place}/{COMPLETE}", b"[]")
    with pytest.raises(InputError, match="not created by visionshare"):
        Destination.of(place)
    assert stored(object_storage, place)["notes.txt"] == b"mine"


@pytest.mark.parametrize("name", ["../other", "a/../../b", "/etc/b", ""])
def test_a_mark_that_names_files_elsewhere_is_none(place, object_storage, name):
    made(place, a="1").deliver()
    mark = json.loads(object_storage.cat(f"{place}/{COMPLETE}"))
    mark["replaces"] = [name]
    object_storage.pipe(f"{place}/{COMPLETE}", json.dumps(mark).encode())
    with pytest.raises(InputError, match="not created by visionshare"):
        Destination.of(place)


@pytest.mark.parametrize(
    "url",
    ["https://example.org/run", "ftp://host/run", "s3://results", "s3://no-bucket/run",
     "s3://results/../run", "s3://results//run"],
)  # fmt: skip
@pytest.mark.usefixtures("place")
def test_places_that_take_no_results_are_refused_before_work(url, tmp_path, capsys):
    with pytest.raises(InputError, match="out: got"):
        Destination.of(url)
    for words in (["train", "digits", "--out", url], ["extract", "pixels", "x.png", "--out", url]):
        assert main(words) == 2
        assert url in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_training_ends_in_storage(place, object_storage, tmp_path):
    result = train(load_recipe("digits", SMALL), place)
    objects = stored(object_storage, place)
    assert result.out == place
    assert is_whole(objects)
    assert {"classifier.safetensors", "metrics.json", "report.html", "run.json"} < set(objects)
    assert not any(name.startswith("work/") or name.endswith(".lock") for name in objects)
    assert not list(tmp_path.iterdir())
    (tmp_path / "model").write_bytes(objects["classifier.safetensors"])
    there = CompactClassifier.load(tmp_path / "model")
    assert np.array_equal(there.weights, result.classifier.weights)


def test_a_training_whose_upload_fails_resumes(place, object_storage, monkeypatch, capsys):
    words = ["train", "digits", *(w for s in SMALL for w in ("--set", s)), "--out", place]
    with monkeypatch.context() as patch:
        real = object_storage.put_file

        def fails(path, url):
            if url.endswith("report.html"):
                raise PermissionError(13, "Forbidden")
            return real(path, url)

        patch.setattr(object_storage, "put_file", fails)
        assert main(words) == 2
    assert "Forbidden" in capsys.readouterr().err
    assert COMPLETE not in stored(object_storage, place)
    assert (local_place(place) / "work" / "rounds").exists()
    assert main([*words, "--resume"]) == 0
    assert f"{place}/report.html" in capsys.readouterr().out
    assert is_whole(stored(object_storage, place))


def test_an_extraction_ends_in_storage(place, object_storage, classifier, tmp_path):
    words = ["extract", str(classifier), str(tmp_path), "--out", place]
    assert main(words) == 0
    objects = stored(object_storage, place)
    assert is_whole(objects)
    assert {"manifest.json", "images.txt", "extraction.json"} < set(objects)
    assert not (tmp_path / "out").exists()
    family = CompactClassifier.load(classifier).family
    with pytest.raises(InputError, match="without results"):
        extract_features(family, [str(tmp_path / "0.png")], place)
    assert stored(object_storage, place) == objects


def test_predictions_end_in_storage(place, object_storage, classifier, tmp_path):
    words = ["predict", str(classifier), str(tmp_path), "--out"]
    assert main([*words, f"{place}/a.csv"]) == 0
    assert main([*words, "a.csv"]) == 0
    assert stored(object_storage, place) == {"a.csv": (tmp_path / "a.csv").read_bytes()}
    assert not (tmp_path / "out").exists()
    assert main([*words, "https://example.org/a.csv"]) == 2


def echo(url):
    """Write inputs as results; return those that were not there yet."""
    written = []
    with resumed_file(url, "") as file:
        for name in file.remaining("AB"):
            file.add(name, 1)
            written.append(name)
    return written


def test_predictions_whose_upload_fails_are_not_made_again(place, object_storage, monkeypatch):
    url = f"{place}/a.txt"
    with monkeypatch.context() as patch:

        def dies(*_, **__):
            raise Killed

        patch.setattr(object_storage, "put_file", dies)
        with pytest.raises(Killed):
            echo(url)
    assert echo(url) == []
    assert stored(object_storage, place)["a.txt"] == b"AB"


@pytest.mark.whole_report
def test_an_evaluation_ends_in_storage(place, object_storage, classifier, tmp_path):
    images = tmp_path / "images"
    for name in "ab":
        (images / name).mkdir(parents=True)
        Image.new("L", (9, 9), 200).save(images / name / "1.png")
    out = [f"{place}/report.html", f"{place}/errors.csv"]
    words = ["evaluate", str(classifier), str(images), "--report", out[0], "--errors", out[1]]
    assert main(words) == 0
    objects = stored(object_storage, place)
    assert b"<html" in objects["report.html"]
    assert objects["errors.csv"].count(b"\n") == 2
    assert main([*words[:3], "--errors", "ftp://host/errors.csv"]) == 2


def test_a_file_that_is_not_written_is_not_uploaded(place, object_storage):
    with pytest.raises(ZeroDivisionError), uploaded_file(f"{place}/a") as path:
        path.write_text(str(1 / 0))
    assert stored(object_storage, place) == {}
