"""The safety net tested: deliberate faults, each of which an attack or a test must notice.

A fault is a change of the source in a copy of the checkout. Its check, a short campaign or some
tests, passes without the fault, and must fail with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from visionshare.files.durable import write_text

__all__ = ["Mutation", "Noticed", "mutation_table", "run_mutations"]

_ROOT = Path(__file__).parents[2]
# What tests and attacks need of the checkout.
_FOLDERS = ("data", "features", "pipelines", "scripts", "tests", "visionshare")
_FILES = ("CONTRIBUTING.md", "pyproject.toml")
# What a check begins with that is no test.
_ATTACK = "attack "
# More than the checks without a fault take on a busy machine.
_SECONDS = 900


@dataclass(frozen=True)
class Mutation:
    """A deliberate fault.

    Attributes
    ----------
    name : str
    file : str
        Of the package.
    before, after : str
        Text that the file has once, and what replaces it.
    check : str
        What must notice it: tests as pytest takes them, or ``attack`` with its arguments.
    """

    name: str
    file: str
    before: str
    after: str
    check: str

    def apply(self, checkout: Path) -> Callable[[], None]:
        """Change a checkout; return what changes it back.

        Raises
        ------
        ValueError
            If the file does not have the text once: the source has changed, and this must, too.
        """
        path = checkout / "visionshare" / self.file
        source = path.read_text("utf-8") if path.is_file() else ""
        if source.count(self.before) != 1:
            raise ValueError(f"{self.name}: its text is {source.count(self.before)} × in {path}")
        about = path.stat()
        path.write_text(source.replace(self.before, self.after), "utf-8")

        def restore() -> None:
            path.write_text(source, "utf-8")
            # Byte code and compiled kernels are those of a source of this time.
            os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))

        return restore


class Noticed(NamedTuple):
    """How a check of a fault ended: what failed first, empty where nothing did."""

    check: str
    said: str
    seconds: float


def run_mutations(
    faults: Sequence[Mutation], out: Path | None, report: Callable[[str], None], jobs: int = 2
) -> dict[str, Noticed]:
    """Apply each fault to a copy of the checkout and run its check; return how they ended.

    Parameters
    ----------
    faults : sequence of Mutation
    out : Path or None
        File of results. Those of the same source are kept: a run that was stopped goes on.
    report : callable
        Called with a line for each fault.
    jobs : int, default 2
        Checks at the same time, each in a copy of its own.

    Raises
    ------
    ValueError
        If a fault does not apply, or a check fails without one.
    """
    source = _digest()
    results = _read(out, source)
    remaining = [fault for fault in faults if fault.name not in results]
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(jobs) as pool:
        copies = SimpleQueue[Path]()
        for number in range(jobs):
            copies.put(_copied(Path(made) / str(number)))
        # 1) faults apply
        for fault in remaining:
            fault.apply(Path(made) / "0")()
        # 2) checks pass without them
        for done in as_completed([pool.submit(_passes, c, copies) for c in _checks(remaining)]):
            done.result()
        # 3) checks fail with them
        tasks = {pool.submit(_tried, fault, copies): fault.name for fault in remaining}
        for task in as_completed(tasks):
            noticed = results[tasks[task]] = task.result()
            said = noticed.said or "NOT NOTICED"
            report(f"{tasks[task]}: {said} ({noticed.seconds:.0f} s)")
            if out is not None:
                write_text(out, json.dumps({"source": source, "faults": results}, indent=1) + "\n")
    return {fault.name: results[fault.name] for fault in faults}


def mutation_table(results: dict[str, Noticed]) -> str:
    """Return a table of what noticed each fault."""
    rows = [("fault", "noticed by", "what was said")]
    for name, noticed in results.items():
        rows.append((name, noticed.check, noticed.said or "NOT NOTICED"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    found = sum(bool(noticed.said) for noticed in results.values())
    return "\n".join([*lines, f"{found} of {len(results)} noticed"])


def _digest() -> str:
    """Return the digest of all that decides how checks end."""
    files = [_ROOT / name for name in _FILES]
    files += [path for name in _FOLDERS for path in sorted((_ROOT / name).rglob("*.*"))]
    digest = hashlib.sha256()
    for path in files:
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(_ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


def _read(out: Path | None, source: str) -> dict[str, Noticed]:
    if out is None or not out.exists():
        return {}
    values = json.loads(out.read_text("utf-8"))
    if values.get("source") != source:
        raise ValueError(f"{out}: results of another source; accepted: a new file, or remove it")
    return {name: Noticed(*found) for name, found in values["faults"].items()}


def _copied(target: Path) -> Path:
    # Byte code and compiled kernels, which stand beside the source, are copied and stay valid.
    for name in _FOLDERS:
        shutil.copytree(_ROOT / name, target / name)
    for name in _FILES:
        shutil.copy2(_ROOT / name, target / name)
    return target


def _checks(faults: Sequence[Mutation]) -> list[str]:
    """Return the checks of faults: each attack once, all tests together."""
    checks = sorted({fault.check for fault in faults})
    attacks = [check for check in checks if check.startswith(_ATTACK)]
    tests = " ".join(check for check in checks if not check.startswith(_ATTACK))
    return [tests, *attacks] if tests else attacks


def _passes(check: str, copies: SimpleQueue[Path]) -> None:
    copy = copies.get()
    try:
        if said := _run(check, copy):
            raise ValueError(f"{check}: fails without a fault: {said}")
    finally:
        copies.put(copy)


def _tried(fault: Mutation, copies: SimpleQueue[Path]) -> Noticed:
    copy = copies.get()
    begun = time.monotonic()
    restore = fault.apply(copy)
    try:
        said = _run(fault.check, copy)
    finally:
        restore()
        copies.put(copy)
    return Noticed(fault.check, said, round(time.monotonic() - begun, 1))


def _run(check: str, checkout: Path) -> str:
    """Run a check; return the first line of what failed, empty where it passed.

    Raises
    ------
    ValueError
        If it could not even be made: that is no failure.
    """
    is_attack = check.startswith(_ATTACK)
    words = shlex.split(check.removeprefix(_ATTACK))
    if is_attack:
        command = ["-m", "scripts.attack", *words, "--stop", "--json"]
    else:
        command = ["-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *words]
    temporary = checkout / "tmp"
    temporary.mkdir(exist_ok=True)
    own = {"PYTHONPATH": str(checkout), "TMPDIR": str(temporary)}
    ended = _ended([sys.executable, *command], checkout, own)
    if ended is None:
        return f"takes more than {_SECONDS} s"
    lines = ended.stdout.splitlines()
    whole = lines and (lines[-1].startswith("{") if is_attack else True)
    if ended.returncode not in (0, 1) or not whole:
        last = "\n".join([*lines[-20:], *ended.stderr.splitlines()[-20:]])
        raise ValueError(f"{check}: ended with {ended.returncode}: {last}")
    if ended.returncode == 0:
        return ""
    if is_attack:
        return ended.stderr.splitlines()[0].replace(str(temporary), "")
    failures = (line for line in lines if line.startswith(("FAILED ", "ERROR tests")))
    return next(failures, "a test fails")


def _ended(
    command: list[str], checkout: Path, own: Mapping[str, str]
) -> subprocess.CompletedProcess[str] | None:
    """Run a command; return how it ended, None where it took too long."""
    process = subprocess.Popen(
        command, cwd=checkout, env={**os.environ, **own}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        stdout, stderr = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # What it started and did not end holds the copy.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
