"""What charts of the report say."""

import re

import pytest

from visionshare.reports.figures import learning_curves


@pytest.mark.parametrize(("n", "ticks"), [(1, ["0", "1"]), (2, ["0", "1", "2"])])
def test_epochs_are_whole_numbers(n, ticks):
    drawing = str(learning_curves({"one": [[0.4, 0.1, None]] * n}, "loss"))
    texts = re.findall(r">([^<>]*)</text>", drawing)
    assert texts[: texts.index("epoch")] == ticks
