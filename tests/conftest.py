"""Settings that must stand before scipy is imported."""

import os

# scikit-learn leaves one of its estimator checks out without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from hypothesis import settings

# The same examples each time; `--hypothesis-profile default` looks for new ones.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")
