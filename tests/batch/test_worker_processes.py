"""Processes that call functions: results, errors, and ends at any moment."""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from visionshare.batch.worker_processes import DeadProcess, worker_processes


def large(n_bytes):
    return bytes(n_bytes)


def failing():
    raise ValueError("no such number")


def begun(value):
    os.environ["BEGUN"] = value


def value_begun():
    return os.environ["BEGUN"]


def test_calls_are_answered_in_processes_that_began():
    with worker_processes(2, begun, value="with this") as processes:
        roots = [processes.submit(math.sqrt, n) for n in range(20)]
        assert processes.submit(value_begun).result() == "with this"
        others = {processes.submit(os.getpid).result() for _ in range(20)}
        assert [root.result() for root in roots] == [math.sqrt(n) for n in range(20)]
        assert len(multiprocessing.active_children()) == 2
    assert os.getpid() not in others
    assert multiprocessing.active_children() == []


def test_errors_come_back_and_the_process_goes_on():
    with worker_processes(1) as processes:
        with pytest.raises(ValueError, match="no such number") as caught:
            processes.submit(failing).result()
        assert "in failing" in str(caught.value.__cause__)
        assert processes.submit(math.sqrt, 4).result() == 2


def test_killed_while_they_send_they_are_not_waited_for():
    """A part of a large result is in the pipe nearly always, and its rest never comes."""
    ended = threading.Event()

    def batches():
        with worker_processes(2) as processes:
            for result in [processes.submit(large, 1 << 24) for _ in range(100)]:
                yield len(result.result())

    def run():
        results = batches()
        assert next(results) == 1 << 24
        results.close()
        ended.set()

    for _ in range(3):
        ended.clear()
        threading.Thread(target=run, daemon=True).start()
        assert ended.wait(60)
    assert multiprocessing.active_children() == []


def test_a_process_that_dies_while_it_sends_is_an_error():
    with worker_processes(1) as processes:
        (process,) = multiprocessing.active_children()
        results = [processes.submit(large, 1 << 24) for _ in range(100)]
        results[0].result()
        process.kill()
        with pytest.raises(DeadProcess):
            [result.result(60) for result in results]


def test_a_process_that_cannot_begin_is_an_error(capfd):
    with worker_processes(1, failing) as processes, pytest.raises(DeadProcess):
        processes.submit(math.sqrt, 4).result(60)
    assert "no such number" in capfd.readouterr().err


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_they_start_is_heard(monkeypatch):
    process_type = multiprocessing.get_context("spawn").Process
    start, started = process_type.start, []

    def interrupted(process):
        os.kill(os.getpid(), signal.SIGINT)
        start(process)
        started.append(process)

    monkeypatch.setattr(process_type, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), worker_processes(2) as processes:
        processes.submit(math.sqrt, 4).result(60)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert len(started) == 2
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=str)
def test_they_end_with_their_parent(number):
    program = (
        "import os, time\n"
        "from visionshare.batch.worker_processes import worker_processes\n"
        "if __name__ == '__main__':\n"
        "    with worker_processes(1) as processes:\n"
        "        print(processes.submit(os.getpid).result(), flush=True)\n"
        "        processes.submit(time.sleep, 600).result()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        process = int(parent.stdout.readline())
        parent.send_signal(number)
        parent.wait(60)
        # The end of its output: nobody else has it open.
        assert parent.stdout.read() == ""
    for _ in range(600):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("it goes on")


def test_an_iterator_that_is_left_does_not_keep_the_interpreter():
    program = (
        "import os, math\n"
        "from visionshare.batch.worker_processes import worker_processes\n"
        "def roots():\n"
        "    with worker_processes(1) as processes:\n"
        "        while True:\n"
        "            yield processes.submit(math.sqrt, 4).result()\n"
        "if __name__ == '__main__':\n"
        "    values = roots()\n"
        "    print(next(values), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"2.0\n", b"")
