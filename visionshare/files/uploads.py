"""Results for object storage: made in a folder of this machine, then uploaded, the mark last."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from visionshare.errors import InputError, StorageError
from visionshare.files.durable import is_partial, remove_folder, write_text
from visionshare.files.fingerprints import stream_sha256
from visionshare.files.storage import (
    check_takes_results,
    is_url,
    object_names,
    put_file,
    read_object,
    remove_object,
)
from visionshare.machine.progress import stage

COMPLETE = "complete.json"
UPLOAD = "upload.json"

_FORMAT = "visionshare-upload"
_VERSION = 1


def local_place(out: str | os.PathLike[str]) -> Path:
    """Return where results are made: a path itself, or a name under ``out/`` for a URL."""
    text = os.fspath(out)
    if not is_url(text):
        return Path(text)
    protocol, _, path = text.partition("://")
    return Path("out", protocol, path.strip("/"))


@dataclass(frozen=True)
class Destination:
    """Where a folder of results goes: a path, or a place in object storage."""

    url: str | None
    folder: Path
    id: str = ""

    @classmethod
    def of(cls, out: str | os.PathLike[str], replaces: bool = True) -> Destination:
        """Return the place that a path or URL names, if it can take results; write nothing."""
        folder = local_place(out)
        if not is_url(os.fspath(out)):
            return cls(None, folder)
        url = os.fspath(out).rstrip("/")
        check_takes_results(url)
        ours = str(_read_record(folder).get("id") or uuid.uuid4().hex)
        claim, complete = _marks(url)
        if complete and not replaces and complete["id"] != ours:
            raise InputError("out", url, "a place without results; choose another")
        if complete and replaces and claim is None and complete["id"] == ours:
            # It ended after the last mark: what comes now is another upload.
            ours = uuid.uuid4().hex
        return cls(url, folder, ours)

    def claim(self) -> None:
        """Mark a place in storage as one that is written to."""
        if self.url is None:
            return
        claim, complete = _marks(self.url)
        if any(mark and mark["id"] == self.id for mark in (claim, complete)):
            return
        old = {name for mark in (claim, complete) if mark for name in _names_in(mark)}
        _put_json(f"{self.url}/{UPLOAD}", _mark(self.id, {}, sorted(old)))
        self._write_record({})

    def deliver(self, without: Collection[str] = ()) -> None:
        """Upload the folder, if the place is in storage."""
        # What a stopped upload did is not repeated.
        if self.url is None:
            return
        files = _listing(self.folder, without)
        claim, complete = _marks(self.url)
        if claim is None and complete and (complete["id"], complete["files"]) == (self.id, files):
            return
        if claim is None or claim["id"] != self.id:
            raise StorageError(f"{self.url}: another run writes there; choose another place")
        replaced = [name for name in _names_in(claim) if name not in files]
        _put_json(f"{self.url}/{UPLOAD}", _mark(self.id, files, replaced))
        remove_object(f"{self.url}/{COMPLETE}")
        done = _read_record(self.folder).get("done", {})
        with stage("uploading", len(files)) as advance:
            for name, found in files.items():
                if done.get(name) != found["sha256"]:
                    put_file(self.folder / name, f"{self.url}/{name}")
                    done[name] = found["sha256"]
                    self._write_record(done)
                advance(1)
        _put_json(f"{self.url}/{COMPLETE}", _mark(self.id, files, []))
        for name in replaced:
            remove_object(f"{self.url}/{name}")
        remove_object(f"{self.url}/{UPLOAD}")

    def clear(self) -> None:
        """Remove what was made on this machine for a place in storage."""
        if self.url is not None:
            remove_folder(self.folder)
            _record_file(self.folder).unlink(missing_ok=True)
            remove_empty_folders(self.folder.parent)

    def _write_record(self, done: dict[str, str]) -> None:
        write_text(_record_file(self.folder), json.dumps({"id": self.id, "done": done}))


def remove_empty_folders(folder: Path) -> None:
    """Remove a folder and those above it as far as they are empty."""
    with suppress(OSError):
        os.removedirs(folder)


@contextmanager
def uploaded_file(out: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield where to write one file: a path itself."""
    # For a URL another, uploaded when it is written.
    if not is_url(os.fspath(out)):
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="visionshare-upload-") as folder:
        path = Path(folder, local_place(out).name)
        yield path
        put_file(path, os.fspath(out))


def _listing(folder: Path, without: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return bytes and digest of each file that is a result, by its name from the folder on."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not is_partial(path) and name.parts[0] not in without:
            with open(path, "rb") as file:
                digest = stream_sha256(file)
            files[name.as_posix()] = {"bytes": path.stat().st_size, "sha256": digest}
    return files


def _mark(upload: str, files: dict[str, Any], replaces: list[str]) -> dict[str, Any]:
    return {
        "format": _FORMAT, "version": _VERSION, "id": upload, "files": files, "replaces": replaces,
    }  # fmt: skip


def _names_in(mark: dict[str, Any]) -> list[str]:
    """Return the names of files that an upload has written, or that it was to remove."""
    return [*mark["files"], *mark["replaces"]]


def _put_json(url: str, values: dict[str, Any]) -> None:
    with uploaded_file(url) as path:
        path.write_text(json.dumps(values, indent=2) + "\n", "utf-8")


def _marks(url: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the marks of an upload that is under way, and of one that is complete."""
    names = object_names(url)
    found = [_read_mark(f"{url}/{name}") if name in names else None for name in (UPLOAD, COMPLETE)]
    if names and not any(found):
        accepted = "an empty place, or one with earlier results; choose another"
        why = f"it has {names[0]!r} and was not created by visionshare"
        raise InputError("out", url, f"{accepted} ({why})")
    return found[0], found[1]


def _read_mark(url: str) -> dict[str, Any] | None:
    try:
        mark = json.loads(read_object(url) or b"")
        if mark["format"] != _FORMAT or mark["version"] != _VERSION:
            return None
        found = {"id": str(mark["id"]), "files": dict(mark["files"])}
        found["replaces"] = [str(name) for name in mark["replaces"]]
        # What a mark names may be removed: nothing beside the place.
        paths = map(PurePosixPath, _names_in(found))
        is_inside = (p.parts and not p.is_absolute() and ".." not in p.parts for p in paths)
        return found if all(is_inside) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _record_file(folder: Path) -> Path:
    """Return the file that says how far the upload of a folder is; it lies beside the folder."""
    return folder.with_name(f".{folder.name}.upload.json")


def _read_record(folder: Path) -> dict[str, Any]:
    try:
        record = json.loads(_record_file(folder).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
