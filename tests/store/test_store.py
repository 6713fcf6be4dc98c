"""Columns in memory and in a store: the same answers, the same bits, whatever happens to files."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import GaborBank, RandomFourier
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError, StorageError, StoreError
from visionshare.files.fingerprints import images_fingerprint, spec_fingerprint
from visionshare.generators.patches import PatchTemplates
from visionshare.generators.pixels import Pixels
from visionshare.learners import ShareBoost
from visionshare.store import (
    create_empty_store,
    create_store,
    open_store,
    repair_store,
    store_info,
    verify_store,
)
from visionshare.store.writer_lock import writer_lock


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (2500, 6, 6), np.uint8)


@pytest.fixture(scope="module")
def family(images):
    return PatchTemplates(3, 40, 2, (1.5,), n_patches=3000).fit(images)


def _backend(kind, dtype, family, images, folder, memory="64MiB"):
    if kind == "memory":
        return ArrayColumns.from_family(family, images, dtype)
    return create_store(folder / "store", family, images, dtype, memory)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("kind", ["memory", "store"])
def test_columns_answer_as_a_matrix(kind, dtype, family, images, tmp_path):
    columns = _backend(kind, dtype, family, images, tmp_path)
    X = family.transform(images).astype(dtype).astype(np.float64)
    assert columns.shape == X.shape
    rng = np.random.default_rng(1)
    R = rng.normal(size=(len(X), 3)).astype(np.float32)
    ids = rng.permutation(X.shape[1])[:37]
    assert_array_equal(columns.take(ids, scaled=False), X[:, ids])
    for scaling in ("none", "unit_variance", "max_abs"):
        columns.fit_scaling(scaling)
        scaled = (X - columns.offset) * columns.scale
        if scaling == "unit_variance":
            assert_allclose(scaled.mean(axis=0), 0, atol=1e-9)
            assert_allclose(scaled.std(axis=0), 1, rtol=1e-6)
        if scaling == "max_abs":
            assert_allclose(np.abs(scaled).max(axis=0), 1)
        expected = scaled.T @ R
        assert_allclose(columns.correlate(R), expected, atol=2e-3)
        assert_array_equal(columns.correlate(R, ids), columns.correlate(R)[ids])
        assert_allclose(columns.take(ids), scaled[:, ids], atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_bits_are_the_same_everywhere(dtype, family, images, tmp_path):
    y = np.random.default_rng(2).integers(3, size=len(images))
    results = []
    for kind, jobs in (("memory", 1), ("memory", 2), ("store", 1), ("store", 2)):
        folder = tmp_path / f"{kind}{jobs}"
        columns = _backend(kind, dtype, family, images, folder, memory="200kB")
        model = ShareBoost(rounds=4, n_jobs=jobs).fit(columns, y)
        results.append((model.support_, model.coef_, model.intercept_, columns.scale))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert_array_equal(one, two)


def test_a_store_is_lazy_and_resumes(family, images, tmp_path):
    columns = create_store(tmp_path / "s", family, images, memory="200kB")
    # Neither family nor images: it can read, and evaluate nothing.
    reader = open_store(tmp_path / "s")
    assert len(columns.missing) == columns.shape[1]
    columns.columns_of([5])
    left = columns.missing.tolist()
    assert 0 < len(left) < columns.shape[1]
    again = create_store(tmp_path / "s", family, images)
    assert again.missing.tolist() == left
    again.fill()
    assert len(again.missing) == 0
    # What another has committed is read, though the reader was opened before.
    assert_array_equal(reader.columns_of(), again.columns_of())
    assert_array_equal(columns.columns_of(), again.columns_of())
    assert verify_store(tmp_path / "s") == {}
    info = store_info(tmp_path / "s")
    assert (info["columns"], info["evaluated"]) == (columns.shape[1], columns.shape[1])


def test_several_shards_are_evaluated_at_once(family, images, tmp_path, monkeypatch):
    """What an image costs however few of its features are asked for is not paid for each shard."""
    asked = []
    evaluate = PatchTemplates.transform_columns

    def counted(self, images, features=None, *settings):
        asked.append(len(features))
        return evaluate(self, images, features, *settings)

    monkeypatch.setattr(PatchTemplates, "transform_columns", counted)
    columns = create_store(tmp_path / "s", family, images, "float16", memory="600kB")
    columns.fill()
    shards = list((tmp_path / "s" / "shards").iterdir())
    assert 2 * len(asked) <= len(shards)
    # No more at once than half of the memory holds.
    assert max(asked) * len(images) * 2 <= 300_000
    assert sum(asked) == columns.shape[1]
    monkeypatch.undo()
    assert_array_equal(
        columns.columns_of(scaled=False), family.transform(images).T.astype("float16")
    )


def test_a_store_refuses_others(family, images, tmp_path):
    create_store(tmp_path / "s", family, images)
    other = PatchTemplates(3, 40, 2, (1.5,), n_patches=3000, random_state=1).fit(images)
    with pytest.raises(StoreError, match="another pool"):
        open_store(tmp_path / "s", other, images)
    with pytest.raises(StoreError, match="other images"):
        open_store(tmp_path / "s", family, images[::-1])
    with pytest.raises(StoreError, match="holds float16"):
        create_store(tmp_path / "s", family, images, "float32")
    with pytest.raises(StoreError, match="not evaluated yet"):
        open_store(tmp_path / "s").columns_of([0])
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "notes.txt").touch()
    with pytest.raises(StoreError, match="not empty"):
        create_store(tmp_path / "t", family, images)


def test_an_empty_store_replaces_none(images, tmp_path):
    family, identity = Pixels().fit(images), images_fingerprint(images)
    folder = tmp_path / "s"
    columns = create_empty_store(folder, family, len(images), identity, "float32")
    columns.commit(np.array([1]), family.transform_columns(images, [1]))
    with pytest.raises(StoreError, match="holds a store already"):
        create_empty_store(folder, family, len(images), identity, "float32")
    assert 1 not in open_store(folder).missing
    with pytest.raises(InputError, match=r"^dtype: got"):
        create_empty_store(tmp_path / "t", family, len(images), identity, "float64")
    assert not (tmp_path / "t").exists()


def test_a_writer_that_was_killed_before_the_manifest_is_in_nobodys_way(images, tmp_path):
    (tmp_path / "writer.lock").touch()
    (tmp_path / ".manifest.json.1-0.partial").touch()
    assert create_store(tmp_path, Pixels().fit(images), images).shape == (2500, 36)


def test_one_writer_at_a_time(family, images, tmp_path):
    one = create_store(tmp_path / "s", family, images)
    two = open_store(tmp_path / "s", family, images)
    with writer_lock(tmp_path / "s"):
        for write in (two.fill, lambda: repair_store(tmp_path / "s")):
            with pytest.raises(StoreError, match="another process writes"):
                write()
    two.fill()
    assert_array_equal(one.columns_of([1]), two.columns_of([1]))


LOCKED = """
import sys, time
from pathlib import Path
from visionshare.store.writer_lock import writer_lock
with writer_lock(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_killed_process_is_free(family, images, tmp_path):
    columns = create_store(tmp_path / "s", family, images)
    command = [sys.executable, "-c", LOCKED, str(tmp_path / "s")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"locked\n"
        with pytest.raises(StoreError, match="another process writes"):
            columns.fill()
        writer.kill()
    columns.fill()
    assert len(columns.missing) == 0


def test_a_folder_that_cannot_be_locked_is_a_typed_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written to"), writer_lock(tmp_path / "file"):
        pass


def _signed(values):
    """Return a manifest with a digest that fits."""
    unsigned = {key: value for key, value in values.items() if key != "sha256"}
    return json.dumps({**unsigned, "sha256": spec_fingerprint(unsigned, {})})


def test_damage_that_keeps_size_and_time_is_found(family, images, tmp_path):
    create_store(tmp_path / "s", family, images).fill()
    shard = next((tmp_path / "s" / "shards").iterdir())
    content, about = shard.read_bytes(), shard.stat()
    for position in range(0, len(content), len(content) // 20):
        damaged = bytearray(content)
        damaged[position] ^= 1
        shard.write_bytes(damaged)
        os.utime(shard, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert list(verify_store(tmp_path / "s")) == [shard.name]
        with pytest.raises(StoreError, match="digest"):
            open_store(tmp_path / "s").columns_of([0])
    shard.write_bytes(content)
    assert verify_store(tmp_path / "s") == {}


def test_a_damaged_manifest_is_refused(family, images, tmp_path):
    create_store(tmp_path / "s", family, images).fill()
    path = tmp_path / "s" / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"ids": [0, 1', '"ids": [1, 0'))
    assert path.read_text() != text
    with pytest.raises(StoreError, match="digest"):
        open_store(tmp_path / "s")


def test_broken_shards_are_found_and_repaired(family, images, tmp_path):
    folder = tmp_path / "s"
    columns = create_store(folder, family, images, memory="400kB")
    whole = columns.columns_of()
    shards = sorted((folder / "shards").iterdir())
    assert len(shards) >= 3
    data = bytearray(shards[0].read_bytes())
    data[len(data) // 2] ^= 0xFF
    shards[0].write_bytes(data)
    os.truncate(shards[1], 1000)
    (folder / "shards" / ".00009.h5.1.partial").write_bytes(b"torn")
    assert set(verify_store(folder)) == {shards[0].name, shards[1].name}
    for broken in (0, 1):
        first = json.loads((folder / "manifest.json").read_text())["shards"][shards[broken].name]
        with pytest.raises(StoreError):
            open_store(folder, family, images).columns_of(np.array(first["ids"][:1]))
    dropped = repair_store(folder)
    assert {shards[0].name, shards[1].name, ".00009.h5.1.partial"} == set(dropped)
    assert verify_store(folder) == {}
    assert_array_equal(open_store(folder, family, images).columns_of(), whole)


def test_a_name_that_stands_for_another_shard_after_a_repair(family, images, tmp_path):
    folder = tmp_path / "s"
    writer = create_store(folder, family, images, memory="400kB")
    writer.fill(np.arange(writer.shape[1] // 2))
    reader = open_store(folder, family, images)
    reader.columns_of(np.setdiff1d(np.arange(reader.shape[1]), reader.missing))
    last = max((folder / "shards").iterdir())
    ids = json.loads((folder / "manifest.json").read_text())["shards"][last.name]["ids"]
    # The reader keeps what it has mapped; the name is free.
    last.unlink()
    last.write_bytes(b"broken")
    assert repair_store(folder) == [last.name]
    repaired = open_store(folder, family, images)
    repaired.fill(np.setdiff1d(repaired.missing, ids)[:1])
    again = json.loads((folder / "manifest.json").read_text())["shards"][last.name]["ids"]
    assert not set(again) & set(ids)
    expected = family.transform_columns(images, dtype="float16").astype(np.float32)
    assert_array_equal(reader.columns_of(), expected)


def test_a_copied_store_is_verified_before_it_is_mapped(family, images, tmp_path):
    columns = create_store(tmp_path / "s", family, images)
    whole = columns.columns_of()
    shutil.copytree(tmp_path / "s", tmp_path / "t", copy_function=shutil.copy)
    assert_array_equal(open_store(tmp_path / "t").columns_of(), whole)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"format": "visionshare-store", "version": 9}', "[" * 100_000,
        '{"format": "visionshare-store", "version": true}',
        '{"format": "visionshare-store", "version": 1}',
    ],
    ids=lambda t: t[:20],
)  # fmt: skip
def test_broken_manifests_are_typed_errors(text, tmp_path):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(StoreError) as caught:
        open_store(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("shape", [10, -1]), ("shape", [2**70, 1]), ("shape", [1, 2**32]), ("shape", [1]),
        ("dtype", "object"),
        ("shards", {"../../x.h5": {"ids": [0], "size": 1, "blake3": "0", "offsets": [0]}}),
        ("shards", {"00000.h5": {"ids": [10**9], "size": 1, "blake3": "0", "offsets": [0]}}),
        ("shards", {"00000.h5": {"ids": [0, 0], "size": 1, "blake3": "0", "offsets": [0]}}),
        ("shards", {"00000.h5": {"ids": "all", "size": 1, "blake3": "0", "offsets": [0]}}),
        ("shards", {"00000.h5": {"ids": [0], "size": 1, "blake3": "0", "offsets": [2]}}),
        ("shards", {"00000.h5": {"ids": [0], "size": 1, "blake3": None, "offsets": [0]}}),
        ("shards", {"00000.h5": {"ids": [0], "size": 1, "blake3": "0", "offsets": []}}),
        ("shards", []), ("family", 3),
    ],
    ids=str,
)  # fmt: skip
def test_hostile_manifests_are_refused(key, value, family, images, tmp_path):
    create_store(tmp_path / "s", family, images)
    path = tmp_path / "s" / "manifest.json"
    values = json.loads(path.read_text())
    path.write_text(_signed({**values, key: value}))
    with pytest.raises(StoreError) as caught:
        open_store(tmp_path / "s")
    assert "digest" not in str(caught.value) or "without a digest" in str(caught.value)


def test_a_foreign_shard_is_refused(family, images, tmp_path):
    import h5py

    columns = create_store(tmp_path / "s", family, images)
    columns.fill()
    shard = next((tmp_path / "s" / "shards").iterdir())
    with h5py.File(shard, "w") as file:
        file.create_dataset("columns", data=np.zeros((3, 3)))
    with pytest.raises(StoreError):
        open_store(tmp_path / "s").columns_of([0])


SIDE = 40
# Forks a writer for each line that it reads: what is imported once is none of their work.
WRITERS = f"""
import os, sys, numpy as np
from visionshare.generators.pixels.family import Pixels
from visionshare.store import create_store
images = np.random.default_rng(0).integers(0, 256, (300, {SIDE}, {SIDE}), np.uint8)
family = Pixels().fit(images)
family.block_ids = lambda ids: np.split(np.asarray(ids), len(ids) // 10)
for _ in sys.stdin:
    writer = os.fork()
    if writer == 0:
        create_store(sys.argv[1], family, images, memory="50kB").fill()
        os._exit(0)
    print(writer, flush=True)
    os.waitpid(writer, 0)
    print("ended", flush=True)
"""


@pytest.fixture
def writers(tmp_path):
    command = [sys.executable, "-c", WRITERS, str(tmp_path / "s")]
    # No threads: they do not survive a fork.
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=alone,
    ) as process:  # fmt: skip
        yield process


def written(folder):
    """Return how many shards there are."""
    return sum(name.endswith(".h5") for name in os.listdir(folder)) if folder.exists() else 0


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="writers are watched in /proc")
def test_a_killed_writer_loses_nothing_that_was_committed(writers, tmp_path):
    rng = np.random.default_rng(4)
    images = np.random.default_rng(0).integers(0, 256, (300, SIDE, SIDE), np.uint8)
    family, every = Pixels().fit(images), SIDE * SIDE
    expected = family.transform_columns(images, dtype="float16").astype(np.float32)
    folder, committed, torn = tmp_path / "s", 0, 0
    for _ in range(10):
        if committed == every:
            shutil.rmtree(folder)
            committed = 0
        writers.stdin.write("another\n")
        writers.stdin.flush()
        writer = int(writers.stdout.readline())
        # By what it has written, not by the time: this machine may be busy. Then a moment more,
        # so that it is killed in the middle of a shard as well.
        more = committed // 10 + rng.integers(1, 40)
        while Path(f"/proc/{writer}").exists() and written(folder / "shards") < more:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.005))
        with contextlib.suppress(ProcessLookupError):
            os.kill(writer, signal.SIGKILL)
        assert writers.stdout.readline() == "ended\n"
        if not (folder / "manifest.json").exists():
            continue
        now = store_info(folder)["evaluated"]
        assert now >= committed
        committed = now
        torn += 0 < committed < every
        assert verify_store(folder) == {}
        if committed:
            reader = open_store(folder)
            evaluated = np.setdiff1d(np.arange(every), reader.missing)
            assert_array_equal(reader.columns_of(evaluated), expected[evaluated])
    assert torn >= 2
    whole = create_store(folder, family, images).columns_of()
    assert_array_equal(whole, expected)


def test_a_shard_that_cannot_be_removed_is_named(family, images, tmp_path, monkeypatch):
    create_store(tmp_path / "s", family, images).fill()
    stray = tmp_path / "s" / "shards" / "stray.h5"
    stray.write_bytes(b"")

    def refused(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(StorageError, match=r"stray\.h5: cannot be written"):
        repair_store(tmp_path / "s")
    monkeypatch.undo()
    assert repair_store(tmp_path / "s") == ["stray.h5"]


def test_bad_arguments_are_named(images, tmp_path):
    with pytest.raises(InputError, match=r"^memory: got"):
        create_store(tmp_path / "s", Pixels().fit(images), images, memory="much")
    with pytest.raises(InputError, match=r"^dtype: got"):
        create_store(tmp_path / "s", Pixels().fit(images), images, "float64")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("family", [GaborBank(5, values=3), RandomFourier(5)])
def test_a_family_that_draws_its_features_has_a_store(images, tmp_path, family):
    family.fit(images)
    columns = create_store(tmp_path / "s", family, images, "float32")
    assert_array_equal(columns.columns_of(), family.transform_columns(images))
