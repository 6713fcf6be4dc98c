"""``python -m visionshare`` is the command, and ends as one."""

import signal
import subprocess
import sys

import visionshare


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "visionshare", "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() == f"visionshare {visionshare.__version__}"


def test_an_interrupt_after_the_end_shows_no_traceback():
    code = (
        "import os, signal, visionshare.cli.main as m; m.command(); "
        "os.kill(os.getpid(), signal.SIGINT)"
    )
    command = [sys.executable, "-c", code, "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, "")
