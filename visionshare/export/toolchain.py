"""The C compiler of this machine, its failures as typed errors."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from visionshare.errors import ExportError

# -std=c99 alone forbids fused multiply-adds.
FLAGS = ("-std=c99", "-O3", "-march=native", "-ffp-contract=fast")
_SECONDS = 300


def compiler() -> list[str]:
    """Return the command of the C compiler: ``$CC``, else cc, gcc or clang."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        # A path of Windows has backslashes, which are none of a shell.
        words = [name] if shutil.which(name) else shlex.split(name)
        if words and shutil.which(words[0]):
            return words
    raise ExportError("no C compiler: install gcc or clang, or name one in the variable CC")


def run_compiler(arguments: Sequence[str | Path]) -> str:
    """Run the compiler with these arguments and return its standard output."""
    command = [*compiler(), *map(str, arguments)]
    return run_command(command, command[0])


def run_command(command: Sequence[str], called: str) -> str:
    """Run a command and return its standard output; errors say the first line that tells one."""
    try:
        return subprocess.run(
            command,
            check=True,
            capture_output=True,
            timeout=_SECONDS,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "NO_COLOR": "1"},
        ).stdout
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["no message"]
        telling = (line for line in lines if "error:" in line or " region `" in line)
        first = next(telling, lines[0])
        raise ExportError(f"{called} failed: {first}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExportError(f"{called} failed: {error}") from None


def target_macros() -> str:
    """Return what the compiler predefines: its version and this processor's instructions."""
    # A compiler is asked once per process.
    return _target_macros(tuple(compiler()))


@cache
def _target_macros(command: tuple[str, ...]) -> str:
    return run_command([*command, *FLAGS, "-dM", "-E", "-x", "c", os.devnull], command[0])


class ObjectSize(NamedTuple):
    """Bytes of code with constants, and of variables, in an object file.

    Examples
    --------
    >>> ObjectSize(constant=12_000, variable=0).constant
    12000
    """

    constant: int
    variable: int


def section_sizes(path: Path) -> ObjectSize | None:
    """Return the sizes of an object file."""
    # None where there is no program ``size``, or its output has another form.
    if shutil.which("size") is None:
        return None
    result = subprocess.run(["size", str(path)], capture_output=True, encoding="utf-8", check=False)
    lines = result.stdout.splitlines() if result.returncode == 0 else []
    words = lines[-1].split() if lines else []
    if len(words) < 3 or not all(word.isdigit() for word in words[:3]):
        return None
    text, data, bss = map(int, words[:3])
    # Pointers to the names of classes are data here, but constants on a small core.
    return ObjectSize(text + data, bss)
