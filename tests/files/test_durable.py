"""Files that are replaced atomically."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from visionshare.errors import InputError, StorageError
from visionshare.files.durable import (
    make_folder,
    new_folder,
    remove_folder,
    replace_file,
    write_bytes,
    write_text,
)  # fmt: skip


@pytest.fixture(scope="module")
def ended():
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def _interrupted_write(path):
    with replace_file(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt


def _interrupted_folder(path):
    with new_folder(path) as folder:
        (folder / "a").write_text("a")
        raise KeyboardInterrupt


def test_a_write_that_fails_leaves_the_file_of_before(tmp_path):
    write_text(tmp_path / "a", "before")
    with pytest.raises(KeyboardInterrupt):
        _interrupted_write(tmp_path / "a")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "before"}


def test_partial_files_of_ended_processes_go_and_those_of_others_stay(tmp_path, ended):
    names = [f".a.{ended}-0.partial", f".a.{os.getppid()}-0.partial", f".b.{ended}-0.partial"]
    for name in names:
        (tmp_path / name).write_text("half")
    write_bytes(tmp_path / "a", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[1:], "a"])


def test_a_name_with_wildcards_removes_no_other(tmp_path, ended):
    other = tmp_path / f".ab.{ended}-0.partial"
    other.write_text("half")
    write_bytes(tmp_path / "a*", b"whole")
    assert other.exists()


def test_a_new_folder_is_whole_or_absent(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        _interrupted_folder(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []
    with new_folder(tmp_path / "f") as folder:
        (folder / "a").write_text("a")
    assert (tmp_path / "f" / "a").read_text() == "a"
    with pytest.raises(InputError, match="a name that nothing has yet"), new_folder(tmp_path / "f"):
        pass


def test_a_removal_that_was_killed_is_completed(tmp_path, ended):
    rest = tmp_path / f".work.{ended}-0.partial"
    rest.mkdir()
    (rest / "a").write_text("a")
    remove_folder(tmp_path / "work")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file_is_an_error_of_storage(tmp_path):
    (tmp_path / "a").write_text("a")
    with pytest.raises(StorageError, match="cannot be written"):
        make_folder(tmp_path / "a" / "b")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs the file system of processes")
def test_a_file_system_without_new_folders_is_an_error_of_storage():
    with pytest.raises(StorageError, match=r"/proc/no-such-process/out: cannot be made"):
        make_folder("/proc/no-such-process/out")


def test_a_link_to_a_folder_is_not_removed(tmp_path):
    (tmp_path / "theirs").mkdir()
    write_text(tmp_path / "theirs" / "a", "a")
    (tmp_path / "work").symlink_to(tmp_path / "theirs")
    with pytest.raises(InputError, match="no link"):
        remove_folder(tmp_path / "work")
    assert (tmp_path / "work" / "a").read_text() == "a"
