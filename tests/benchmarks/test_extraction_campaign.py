"""A killed extraction of many pictures, or of tiles of scans, ends in the same file."""

import subprocess
import sys

import pytest

OPTIONS = ["--pictures", "300", "--scans", "1", "--side", "600", "--tile", "30", "--kills", "1"]


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform == "win32", reason="no wait4")
def test_killed_and_resumed_to_the_same_file() -> None:
    pytest.importorskip("tifffile")
    # The system counts a process's memory from that of its parent, so the parent is a small one.
    command = [sys.executable, "-m", "benchmarks.extraction_campaign", *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [line[:2] for line in cells] == [["300 pictures", "300"], ["1 scans", "400"]]
    # The kill falls after the first of two parts.
    assert [line[4:] for line in cells] == [["1 of 1", "yes"], ["1 of 1", "yes"]]
    assert all(float(line[3]) < 1024 for line in cells)
