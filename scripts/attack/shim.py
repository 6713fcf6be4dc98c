"""Commands run in forked processes whose file operations are counted, refused or deadly."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.attack.power import record_flushes

__all__ = ["MODES", "Outcome", "Runner"]

MODES = {"count": 0, "kill": 1, "torn": 2, "full": 3, "fail": 4}
# Seconds.
_LEAVING = 10.0
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes
    ----------
    status : int
        Exit code; minus the signal where one ended it.
    operations : int
        File operations below the folder that was watched.
    output : str
        What it wrote to standard output and error.
    """

    status: int
    operations: int
    output: str


class Runner(AbstractContextManager["Runner"]):
    """A process that has the library loaded, and forks a child for each command.

    Parameters
    ----------
    seconds : float, default 120
        A command that takes longer is killed, and counts as hanging.
    """

    def __init__(self, seconds: float = 120) -> None:
        self._seconds = seconds
        self._made = tempfile.TemporaryDirectory()
        library = Path(self._made.name) / "shim.so"
        source = Path(__file__).with_name("shim.c")
        command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", str(source)]
        subprocess.run([*command, "-o", str(library), "-ldl"], check=True)
        # No threads: they do not survive a fork. Kernels run as Python, on few small images.
        own = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_DISABLE_JIT"), "1")
        # pandas imports pyarrow where it is installed, whose allocator would have one.
        own["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
        own |= {"LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scripts.attack.shim", str(library), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **own},
        )

    def run(
        self,
        argv: Sequence[str],
        folder: Path,
        mode: str = "count",
        at: int = 0,
        log: str = "",
        memory: Path | None = None,
    ) -> Outcome:
        """Run the command line with these arguments.

        Parameters
        ----------
        argv : sequence of str
            Of ``visionshare``.
        folder : path
            Where operations count.
        mode : {"count", "kill", "torn", "full", "fail"}
            What happens at operation ``at``: nothing; the process group is killed before it, or
            in the middle of a write; from it on the disk is full; it alone fails.
        at : int
            From 1.
        log : str, optional
            File that receives the name of each operation.
        memory : Path, optional
            What was flushed is recorded there, see :mod:`scripts.attack.power`.
        """
        order = {"argv": list(argv), "folder": str(folder), "mode": mode, "at": at, "log": log}
        order["memory"] = str(memory or "")
        return Outcome(**self._asked(order))

    def warm(self, argv: Sequence[str]) -> None:
        """Run a command in the process that forks: what it imports and compiles, children have."""
        if problem := self._asked({"warm": list(argv)})["problem"]:
            raise RuntimeError(f"{argv[0]} fails without an attack: {problem}")

    def run_together(
        self, argvs: Sequence[Sequence[str]], delays: Sequence[float]
    ) -> list[Outcome]:
        """Run commands at the same time, each after its delay in seconds; none is attacked."""
        order = {"together": [list(argv) for argv in argvs], "delays": list(delays)}
        return [Outcome(**ended) for ended in self._asked(order)["ended"]]

    def _asked(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the attacked process died")
        return json.loads(answer)

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._made.cleanup()


def _serve(library: str, seconds: float) -> None:
    """Answer orders from standard input, one line each, until it ends."""
    _keep_to_files()
    arm = ctypes.CDLL(library).attack_arm
    arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p]
    with tempfile.TemporaryDirectory() as made:
        counter = Path(made) / "count"
        output = Path(made) / "output"
        for line in sys.stdin:
            order: dict[str, Any] = json.loads(line)
            if "warm" in order:
                print(json.dumps({"problem": _warmed(order["warm"])}), flush=True)
                continue
            if "together" in order:
                ended = _together(order["together"], order["delays"], Path(made), seconds)
                print(json.dumps({"ended": ended}), flush=True)
                continue
            counter.write_bytes(bytes(8))
            child = os.fork()
            if child == 0:
                _write_to(output)
                texts = [os.fsencode(text) for text in (order["folder"], counter, order["log"])]
                if order["memory"]:
                    record_flushes(Path(order["memory"]))
                arm(texts[0], order["at"], MODES[order["mode"]], *texts[1:])
                _run_and_exit(order["argv"])
            status = _wait(child, seconds)
            (operations,) = struct.unpack("q", counter.read_bytes())
            said = output.read_text("utf-8", "replace")
            print(json.dumps({"status": status, "operations": operations, "output": said}),
                  flush=True)  # fmt: skip


def _write_to(output: Path) -> None:
    """Let a child be the head of its own group, and write to a file."""
    os.setsid()
    handle = os.open(output, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(handle, 1)
    os.dup2(handle, 2)


def _together(
    argvs: Sequence[Sequence[str]], delays: Sequence[float], made: Path, seconds: float
) -> list[dict[str, Any]]:
    """Return how commands ended that run at the same time."""
    children = []
    for number, (argv, delay) in enumerate(zip(argvs, delays, strict=True)):
        child = os.fork()
        if child == 0:
            _write_to(made / f"output-{number}")
            time.sleep(delay)
            _run_and_exit(argv)
        children.append(child)
    statuses = [_wait(child, seconds) for child in children]
    ended = []
    for number, status in enumerate(statuses):
        text = (made / f"output-{number}").read_text("utf-8", "replace")
        ended.append({"status": status, "operations": 0, "output": text})
    return ended


def _keep_to_files() -> None:
    """Leave out what touches no file: drawing takes longer than all else."""
    from visionshare.reports import figures

    for name in figures.__all__:
        setattr(figures, name, lambda *_: "")


def _warmed(argv: Sequence[str]) -> str:
    """Run a command in this process; return what is wrong."""
    from scripts.attack.commands import call

    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        status = call(argv)
    # A thread that was joined may take a moment more to leave the system.
    end = time.monotonic() + _LEAVING
    while (threads := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < end:
        time.sleep(0.01)
    if threads > 1:
        return "it leaves threads, which do not survive a fork"
    return text.getvalue() if status else ""


def _run_and_exit(argv: Sequence[str]) -> None:
    from scripts.attack.commands import call

    status = 70
    try:
        status = call(argv)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int, seconds: float) -> int:
    """Return the exit code of a child, -9 for one that was killed or took too long."""
    stop = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > stop:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return 124
        time.sleep(0.005)


if __name__ == "__main__":
    _serve(sys.argv[1], float(sys.argv[2]))
