"""Checks that any feature family, columns or learner can be put through, ours or another's.

Each check raises an ``AssertionError`` that says what is wrong, and returns nothing. In a test::

    from visionshare.testing import check_family

    def test_my_family():
        check_family(MyFamily(), images)
"""

from visionshare.testing.columns import check_columns
from visionshare.testing.families import check_family
from visionshare.testing.learners import check_learner

__all__ = ["check_columns", "check_family", "check_learner"]
