"""What scikit-learn's estimators are called with, by its version."""

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

# Where l1_ratio alone says which penalty.
RENAMED = parse_version("1.8")


@pytest.fixture
def l1_alone():
    """Parameters of a logistic regression with an ℓ1 penalty."""
    renamed = parse_version(sklearn.__version__) >= RENAMED
    return {"l1_ratio": 1.0} if renamed else {"penalty": "l1"}
