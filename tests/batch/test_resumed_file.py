"""Results that a stopped run keeps: each exactly once, whatever stopped it."""

import errno
import multiprocessing
import os
from contextlib import suppress

import pytest

from visionshare.batch.resumed_file import resumed_file
from visionshare.errors import StorageError, StoreError

NAMES = [f"{i}.png" for i in range(20)]


def _write(path, names, stop=None, identity="a", each=1):
    """Write a line for each input, some at a time; be stopped before one of them."""
    with resumed_file(path, identity, "name\n") as file:
        begun, waiting = file.inputs, []
        for name in file.remaining(names):
            if name == stop:
                raise KeyboardInterrupt
            waiting.append(name)
            if len(waiting) == each:
                file.add("".join(f"{n}\n" for n in waiting), each, read=each)
                waiting.clear()
        return begun, file.counts


def _text(names=NAMES):
    return "name\n" + "".join(f"{name}\n" for name in names)


@pytest.mark.parametrize("each", [1, 5])
def test_a_stopped_run_goes_on(tmp_path, each):
    path = tmp_path / "a.csv"
    for stop in ("0.png", "7.png", "13.png"):
        with pytest.raises(KeyboardInterrupt):
            _write(path, NAMES, stop, each=each)
        assert not path.exists()
    begun, counts = _write(path, NAMES, each=each)
    assert begun == 13 // each * each
    assert counts == {"read": 20}
    assert path.read_text() == _text()
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_results_of_an_incomplete_input_are_made_again(tmp_path):
    path = tmp_path / "a.csv"
    with suppress(KeyboardInterrupt), resumed_file(path, "a") as file:
        tars = file.remaining(["1.tar", "2.tar"])
        next(tars)
        file.add("1a\n", 0, read=1)
        file.add("1b\n", 1, read=1)
        next(tars)
        file.add("2a\n", 0, read=1)
        raise KeyboardInterrupt
    assert not path.exists()
    with resumed_file(path, "a") as file:
        for tar in file.remaining(["1.tar", "2.tar"]):
            assert tar == "2.tar"
            file.add("2a\n", 0, read=1)
            file.add("2b\n", 1, read=1)
    assert path.read_text() == "1a\n1b\n2a\n2b\n"
    assert file.counts == {"read": 4}


def test_of_other_inputs_or_settings_nothing_is_kept(tmp_path, caplog):
    path = tmp_path / "a.csv"
    with pytest.raises(KeyboardInterrupt):
        _write(path, NAMES, "7.png")
    assert _write(path, NAMES, identity="b")[0] == 0
    path.unlink()
    with pytest.raises(KeyboardInterrupt):
        _write(path, NAMES, "7.png")
    others = ["new.png", *NAMES]
    _write(path, others)
    assert "the inputs changed" in caplog.text
    assert path.read_text() == _text(others)
    path.unlink()
    with pytest.raises(KeyboardInterrupt):
        _write(path, NAMES, "7.png")
    _write(path, NAMES[:3])
    assert path.read_text() == _text(NAMES[:3])


@pytest.mark.parametrize("damage", ["{", "{}", '{"identity": "a"}', "[" * 9999])
def test_a_damaged_record_is_no_record(tmp_path, damage):
    path = tmp_path / "a.csv"
    with pytest.raises(KeyboardInterrupt):
        _write(path, NAMES, "7.png")
    (tmp_path / ".a.csv.unfinished.json").write_text(damage)
    assert _write(path, NAMES)[0] == 0
    assert path.read_text() == _text()


def _killed(path):
    with resumed_file(path, "a", "name\n") as file:
        file._written = 0.0
        for name in file.remaining(NAMES):
            file.add(f"{name}\n", 1, read=1)
            if name == "9.png":
                file._file.write(b"half a li")
                file._file.flush()
                os._exit(9)


def test_a_killed_run_loses_what_its_record_did_not_say(tmp_path):
    path = tmp_path / "a.csv"
    process = multiprocessing.get_context("spawn").Process(target=_killed, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == 9
    begun, counts = _write(path, NAMES)
    # A second had passed before the first input: its record was written.
    assert 1 <= begun <= 10
    assert counts == {"read": 20}
    assert path.read_text() == _text()


def test_two_writers_of_one_file(tmp_path):
    path = tmp_path / "a.csv"
    with resumed_file(path, "a"), pytest.raises(StoreError, match="another process writes"):
        _write(path, NAMES)


class _FullDisk:
    """A file of a disk that has no room: what is written fails when it leaves the buffer."""

    def __init__(self, path, mode):
        self._file = path.open(mode)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self):
        self._file.close()
        self.flush()


def test_a_disk_that_is_full_when_the_file_is_opened_is_a_typed_error(tmp_path, monkeypatch):
    def no_room(path, mode):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("visionshare.batch.resumed_file.open", no_room, raising=False)
    with pytest.raises(StorageError, match=r"labels.csv: No space left on device; free space"):
        _write(tmp_path / "labels.csv", NAMES)
    monkeypatch.undo()
    assert _write(tmp_path / "labels.csv", NAMES)[0] == 0
    assert (tmp_path / "labels.csv").read_text() == _text()


@pytest.mark.parametrize("stop", [None, NAMES[7]])
def test_a_disk_that_is_full_when_results_are_kept_hides_no_error(tmp_path, monkeypatch, stop):
    monkeypatch.setattr("visionshare.batch.resumed_file.open", _FullDisk, raising=False)
    # Of a run that is stopped, too, the disk is what the user is to know.
    with pytest.raises(StorageError, match=r"labels.csv: No space left on device; free space"):
        _write(tmp_path / "labels.csv", NAMES, stop)
    monkeypatch.undo()
    _write(tmp_path / "labels.csv", NAMES)
    assert (tmp_path / "labels.csv").read_text() == _text()
