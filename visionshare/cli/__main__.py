"""``python -m visionshare.cli``."""

import sys

from visionshare.cli.main import main

sys.exit(main())
