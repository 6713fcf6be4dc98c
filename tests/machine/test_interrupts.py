"""Ctrl-C that comes while processes start."""

import signal
import subprocess
import sys
import threading

import pytest

from visionshare.machine.interrupts import interrupts_held

pytestmark = pytest.mark.usefixtures("interruptible")


def test_an_interrupt_waits_for_the_end_of_the_block():
    done = []

    def interrupted_block():
        with interrupts_held():
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted_block()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(sys.platform == "win32", reason="Windows blocks no signals")
@pytest.mark.parametrize("in_a_thread", [False, True])
def test_processes_that_start_in_the_block_do_not_hear_it(in_a_thread):
    blocked = []

    def start():
        code = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
        with interrupts_held():
            blocked.append(subprocess.check_output([sys.executable, "-c", code], text=True))

    if in_a_thread:
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
    else:
        start()
    assert blocked == ["True\n"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
