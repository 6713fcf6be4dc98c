"""``python -m visionshare`` is the command."""

import subprocess
import sys

import visionshare


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "visionshare", "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() == f"visionshare {visionshare.__version__}"
