"""The command: python -m scripts.fuzz."""

import sys

from scripts.fuzz.running import main

sys.exit(main())
