"""A scheduler and two workers on this machine, a training on them, and their end."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["await_port", "free_port", "local_cluster", "main"]

# Seconds: until the scheduler listens, and until a process that was told to end has ended.
_START, _END = 60.0, 10.0


@contextlib.contextmanager
def local_cluster(workers: int, folder: Path) -> Iterator[str]:
    """Start a scheduler and workers of one thread; give the address; stop them.

    Parameters
    ----------
    workers : int
    folder : pathlib.Path
        For the workers' files and the logs.

    Raises
    ------
    RuntimeError
        If the scheduler does not listen in time.
    """
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        started = ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        scheduler = _start(stack, folder / "scheduler.log", *started)
        for number in range(1, workers + 1):
            options = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
            _start(stack, folder / f"worker-{number}.log", "worker", address, *options)
        await_port(port, scheduler)
        yield address


def _start(stack: contextlib.ExitStack, log: Path, *command: str) -> subprocess.Popen[bytes]:
    output = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_" + command[0], *command[1:]],
        stdout=output,
        stderr=subprocess.STDOUT,
    )
    stack.callback(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return a port of this machine that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def await_port(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until a process listens at a port of this machine.

    Raises
    ------
    RuntimeError
        If it does not in time, or has ended.
    """
    end = time.monotonic() + _START
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens at port {port}")


def main(arguments: list[str]) -> int:
    """Train on two workers; return the exit status of the training."""
    with tempfile.TemporaryDirectory() as name, local_cluster(2, Path(name)) as address:
        print(f"scheduler    {address}", flush=True)
        command = [sys.executable, "-m", "visionshare.cli", "train", "digits"]
        options = ["--scheduler", address, "--out", "out/digits-cluster", *arguments]
        with contextlib.ExitStack() as stack:
            training = subprocess.Popen([*command, *options])
            stack.callback(_stop, training)
            return training.wait()


if __name__ == "__main__":
    # Ends what was started also when this is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
