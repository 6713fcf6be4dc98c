"""What is left out while pictures are read: further pages of files, and files of other kinds."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

_SHOWN = 5
# What commonly lies beside pictures and is none: texts, tables, and data sets.
_BESIDE = {
    ".cfg", ".cls", ".csv", ".db", ".gz", ".h5", ".hdf5", ".htm", ".html", ".ini", ".json",
    ".jsonl", ".log", ".lst", ".md", ".ndjson", ".npy", ".npz", ".parquet", ".pdf", ".py", ".rst",
    ".safetensors", ".sh", ".tar", ".tgz", ".toml", ".tsv", ".txt", ".xlsx", ".xml", ".yaml",
    ".yml", ".zip",
}  # fmt: skip


@dataclass
class Notices:
    """What was left out."""

    pages: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """Return what a user should know."""
        made = (pages_sentence(self.pages), kinds_sentence(self.kinds.values()))
        return [sentence for sentence in made if sentence]


# Those that listen, the innermost last.
_listening: list[Notices] = []
_lock = threading.Lock()


@contextmanager
def collect_notices(pass_on: bool = True) -> Iterator[Notices]:
    """Collect what all threads leave out in the block; those around it are told too."""
    notices = Notices()
    with _lock:
        _listening.append(notices)
    try:
        yield notices
    finally:
        with _lock:
            place = next(i for i, listener in enumerate(_listening) if listener is notices)
            del _listening[place]
            if pass_on and place > 0:
                _listening[place - 1].pages.update(notices.pages)
                _listening[place - 1].kinds.update(notices.kinds)


def notices_told(sentence: str) -> None:
    """Forget what a sentence of :class:`Notices` has told, so that it is not told again."""
    with _lock:
        for notices in _listening[-1:]:
            if sentence == pages_sentence(notices.pages):
                notices.pages.clear()
            if sentence == kinds_sentence(notices.kinds.values()):
                notices.kinds.clear()


def note_pages(name: str, n: int) -> None:
    """Note that so many pages of a file are left out; none where it has one page."""
    if n > 0:
        with _lock:
            for notices in _listening[-1:]:
                notices.pages[name] = n


def note_kind(path: str) -> None:
    """Note a file beside pictures, if it may be one of a kind that is not read."""
    ending = os.path.splitext(path)[1].lower()
    if ending and ending not in _BESIDE:
        with _lock:
            for notices in _listening[-1:]:
                notices.kinds[path] = ending


def pages_sentence(pages: Mapping[str, int]) -> str:
    """Return how many pages of which files are left out; nothing where none is."""
    if not pages:
        return ""
    named = ", ".join(f"{name} {n}" for name, n in list(pages.items())[:_SHOWN])
    more = f" and {len(pages) - _SHOWN} more files" if len(pages) > _SHOWN else ""
    n = sum(pages.values())
    left_out = f"{n} {'is' if n == 1 else 'are'} left out ({named}{more})"
    if len(pages) == 1:
        return f"1 file has several pages or frames: the first is used, {left_out}"
    return f"{len(pages)} files have several pages or frames: the first of each is used, {left_out}"


def kinds_sentence(endings: Iterable[str]) -> str:
    """Return how many files of which kinds are not used; nothing where there is none."""
    counts = Counter(endings)
    if not counts:
        return ""
    named = ", ".join(f"{ending} {n}" for ending, n in counts.most_common(10))
    files = "1 file of an unsupported kind is" if counts.total() == 1 else (
        f"{counts.total()} files of unsupported kinds are"
    )  # fmt: skip
    return f"{files} not used: {named}"
