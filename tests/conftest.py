"""Settings that must stand before scipy is imported."""

import os

# scikit-learn leaves one of its estimator checks out without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
