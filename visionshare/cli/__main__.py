"""``python -m visionshare.cli``."""

import sys

from visionshare.cli.main import command

sys.exit(command())
