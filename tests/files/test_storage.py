"""Files in storage: a server of S3 on this machine."""

import io
import json
import tarfile

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.cli.main import main
from visionshare.datasets import survey_shards
from visionshare.datasets.readers.tars import tar_contents
from visionshare.errors import DataError, InputError
from visionshare.files import storage
from visionshare.files.storage import file_size, is_url, matching_files, open_file

# Packages for S3 leave their connections to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module")
def tar():
    rng, file = np.random.default_rng(0), io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as opened:
        for i in range(6):
            png = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (4, 4), np.uint8)).save(png, "png")
            content = b"broken" if i == 3 else png.getvalue()
            member = tarfile.TarInfo(f"{i}.png")
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return file.getvalue()


@pytest.fixture(scope="module")
def bucket(object_storage, tar):
    """A bucket with two tars, as a URL."""
    object_storage.mkdir("pictures")
    for name in ("b.tar", "a.tar"):
        object_storage.pipe(f"pictures/shards/{name}", tar)
    return "s3://pictures/shards"


@pytest.fixture
def classifier(tmp_path):
    family = Pixels().fit(np.zeros((1, 4, 4), np.uint8)).take(np.arange(16))
    weights = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)
    model = CompactClassifier(family, weights, np.zeros(2), np.array(["a", "b"]))
    model.save(tmp_path / "c.safetensors")
    return str(tmp_path / "c.safetensors")


def test_files_of_a_bucket(bucket, tar):
    names = matching_files(f"{bucket}/*.tar")
    assert names == [f"{bucket}/a.tar", f"{bucket}/b.tar"]
    assert all(map(is_url, names))
    assert file_size(names[0]) == len(tar)
    with open_file(names[0]) as file:
        file.seek(512)
        assert file.read(100) == tar[512:612]
    assert len(list(tar_contents(names[1]))) == 6
    with pytest.raises(DataError, match="missing"), open_file(f"{bucket}/missing.tar"):
        pass


def test_predictions_of_a_bucket_are_those_of_its_files(bucket, tar, classifier, tmp_path, capsys):
    for name in ("a.tar", "b.tar"):
        (tmp_path / name).write_bytes(tar)
    rows = []
    for source, jobs in ((str(tmp_path), "1"), (bucket, "2")):
        out = tmp_path / "out.jsonl"
        words = ["predict", classifier, f"{source}/*.tar", "--out", str(out), "--jobs", jobs]
        code = main(words)
        assert code == 1
        assert "2 of 12 images skipped" in capsys.readouterr().err
        rows.append([json.loads(line) for line in out.read_text().splitlines()])
    assert [row["image"].rsplit("/", 1)[1] for row in rows[0]] == [
        f"{name}: {i}.png" for name in ("a.tar", "b.tar") for i in (0, 1, 2, 4, 5)
    ]
    assert [row["probabilities"] for row in rows[0]] == [row["probabilities"] for row in rows[1]]


def test_storage_that_fails_at_times_is_asked_again(monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr(storage, "_PAUSES", (0.0, 0.0))
    files = fsspec.filesystem("memory")
    files.pipe("/some.bin", b"0123456789")
    opened, failing = type(files).cat_file, [OSError("reset"), RuntimeError("slow down")]
    tried = []

    def failing_size(self, path):
        tried.append(path)
        if failing:
            raise failing.pop()
        return len(opened(self, path))

    monkeypatch.setattr(type(files), "size", failing_size)
    assert file_size("memory://some.bin") == 10
    assert len(tried) == 3
    failing += [OSError("reset")] * 3
    with pytest.raises(DataError, match="cannot be read"):
        file_size("memory://some.bin")


def test_storage_that_nothing_opens(classifier, capsys):
    with pytest.raises(InputError, match="visionshare"), open_file("nowhere://a.tar"):
        pass
    assert main(["predict", classifier, "nowhere://*.tar"]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert main(["extract", classifier, "s3://bucket/a.png", "--out", "store"]) == 2
    assert "files of this machine" in capsys.readouterr().err


def test_a_tar_that_is_cut_is_one_problem(tar, classifier, tmp_path, capsys):
    (tmp_path / "a.tar").write_bytes(tar[:5000])
    (tmp_path / "b.tar").write_bytes(tar)
    out = tmp_path / "out.csv"
    tars = [str(tmp_path / name) for name in ("a.tar", "b.tar")]
    assert main(["predict", classifier, *tars, "--out", str(out), "--jobs", "1"]) == 1
    assert "a.tar: cannot be read as a tar" in capsys.readouterr().err
    assert out.read_text().count("b.tar: ") == 5


def test_labeled_files_of_a_bucket_are_partitions(bucket):
    import fsspec

    images = np.random.default_rng(1).integers(0, 256, (6, 4, 4), np.uint8)
    files = fsspec.filesystem("s3")
    for i in range(2):
        content = io.BytesIO()
        np.savez(content, x=images[3 * i : 3 * i + 3], y=[0, 1, i])
        files.pipe(f"pictures/arrays/{i}.npz", content.getvalue())
    stored = survey_shards(f"{bucket.rsplit('/', 1)[0]}/arrays/*.npz", (4, 4))
    assert stored.labels.tolist() == [0, 1, 0, 0, 1, 1]
    read = [shard.images(stored.reading) for shard in stored.shards]
    assert np.array_equal(np.concatenate(read), images)
