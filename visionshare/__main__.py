"""``python -m visionshare`` is the command ``visionshare``."""

from __future__ import annotations

import sys

from visionshare.cli.main import command

if __name__ == "__main__":
    sys.exit(command())
