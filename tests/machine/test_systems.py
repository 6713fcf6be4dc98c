"""What other systems lack or refuse: taken away here, one by one and all at once."""

import ast
import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.machine.windows import LACKING
from visionshare.errors import StorageError
from visionshare.export.library_cache import library_folder
from visionshare.files.durable import new_folder, remove_folder, write_text
from visionshare.machine import system
from visionshare.machine.resources import available_memory

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "visionshare"
# What only ``system`` may call: it knows where these fail.
GUARDED = {"os.rename", "os.renames", "os.replace", "os.link", "os.symlink"}


def on(monkeypatch, platform):
    monkeypatch.setattr(system, "sys", SimpleNamespace(platform=platform, maxsize=sys.maxsize))


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system what is open")
def test_a_classifier_lives_without_what_windows_lacks(tmp_path):
    # Kernels run as Python, on few small images.
    own = {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    command = [sys.executable, "-X", "warn_default_encoding", "-W", "ignore::EncodingWarning"]
    ended = subprocess.run(
        [*command, ROOT / "tests" / "machine" / "windows.py", tmp_path],
        env={**os.environ, **own}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
    assert ended.stdout.endswith("done\n")


def _uses():
    """Yield the file, the name such as ``os.fork``, and the text of the file, of each use."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield path, f"{node.value.id}.{node.attr}", text
            elif isinstance(node, ast.Import):
                yield from ((path, alias.name, text) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield path, str(node.module), text


def test_what_windows_lacks_is_asked_for_before_it_is_used():
    for path, name, text in _uses():
        module, _, attribute = name.partition(".")
        if attribute and name in LACKING:
            assert f'hasattr({module}, "{attribute}")' in text, f"{path}: {name}"
        elif name in LACKING:
            assert path == PACKAGE / "machine" / "system.py", f"{path}: imports {name}"


def test_what_windows_refuses_is_called_in_one_place():
    found = {path for path, name, _ in _uses() if name in GUARDED}
    assert found == {PACKAGE / "machine" / "system.py"}


def test_a_file_is_written_where_folders_cannot_be_opened(tmp_path, monkeypatch):
    real = os.open

    def refusing(path, *arguments, **options):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing)
    write_text(tmp_path / "a", "one")
    with new_folder(tmp_path / "f") as folder:
        write_text(folder / "b", "two")
    assert (tmp_path / "a").read_text() == "one"
    assert (tmp_path / "f" / "b").read_text() == "two"


@pytest.mark.parametrize(("number", "refused"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_folder_that_cannot_be_flushed_is_no_error_and_a_failed_flush_is(
    tmp_path, monkeypatch, number, refused
):
    real = os.fsync

    def failing(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        real(handle)

    monkeypatch.setattr(os, "fsync", failing)
    if refused:
        with pytest.raises(StorageError, match="cannot be written"):
            write_text(tmp_path / "a", "one")
    else:
        write_text(tmp_path / "a", "one")
    assert (tmp_path / "a").read_text() == "one"


def held(monkeypatch, times, winerror=32):
    """Refuse to rename so many times, as where another process has the file open."""
    calls, real = [], os.replace

    def replace(source, target):
        calls.append(target)
        if len(calls) <= times:
            error = PermissionError(errno.EACCES, "used by another process", str(source))
            error.winerror = winerror
            raise error
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(system, "time", SimpleNamespace(sleep=lambda seconds: None))
    return calls


def test_a_file_is_replaced_when_its_reader_has_closed_it(tmp_path, monkeypatch):
    write_text(tmp_path / "a", "before")
    calls = held(monkeypatch, 3)
    write_text(tmp_path / "a", "after")
    assert (tmp_path / "a").read_text() == "after"
    assert len(calls) == 4


@pytest.mark.parametrize(("winerror", "tries"), [(32, 5), (None, 1)])
def test_a_file_that_stays_open_is_an_error_of_storage(tmp_path, monkeypatch, winerror, tries):
    write_text(tmp_path / "a", "before")
    calls = held(monkeypatch, 99, winerror)
    with pytest.raises(StorageError, match="used by another process"):
        write_text(tmp_path / "a", "after")
    assert len(calls) == tries
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "before"}


def test_no_process_is_sent_a_signal_on_windows(tmp_path, monkeypatch):
    on(monkeypatch, "win32")
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal"))
    monkeypatch.setitem(sys.modules, "psutil", SimpleNamespace(pids=lambda: [7]))
    for process in (7, 8):
        (tmp_path / f".work.{process}-0.partial").mkdir()
    remove_folder(tmp_path / "work")
    assert [path.name for path in tmp_path.iterdir()] == [".work.7-0.partial"]
    # Nothing says which processes run: what they left may be in use.
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert system.is_running(8)


def test_memory_is_known_without_the_modules_of_posix(monkeypatch):
    psutil = pytest.importorskip("psutil")
    total, peak = available_memory(), system.peak_memory()
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert available_memory() == total
    assert system.physical_memory() == psutil.virtual_memory().total
    assert 0 < system.peak_memory() <= 2 * peak
    used = SimpleNamespace(rss=1, peak_wset=9)
    fake = SimpleNamespace(Process=lambda: SimpleNamespace(memory_info=lambda: used))
    monkeypatch.setitem(sys.modules, "psutil", fake)
    assert system.peak_memory() == 9
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert system.peak_memory() == 0
    assert available_memory() <= system.physical_memory() == sys.maxsize


def test_a_folder_of_libraries_is_found_where_users_have_no_number(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "getuid", raising=False)
    folder = tmp_path / "compiled"
    folder.mkdir()
    # Bits of Windows say that everyone may write.
    folder.chmod(0o777)
    assert library_folder(folder) == folder
    assert system.user_label() == "user"


def test_a_library_of_windows_needs_no_option_of_elf(monkeypatch):
    on(monkeypatch, "win32")
    assert system.shared_library() == (".dll", ["-shared"])
    on(monkeypatch, "linux")
    assert system.shared_library() == (".so", ["-shared", "-fPIC", "-lm"])


def test_a_compiler_of_windows_is_found_by_its_path(tmp_path, monkeypatch):
    from visionshare.export import toolchain

    path = r"C:\Program Files\mingw\gcc.exe"
    monkeypatch.setenv("CC", path)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: name if name == path else None)
    assert toolchain.compiler() == [path]
