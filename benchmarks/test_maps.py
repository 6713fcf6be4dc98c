"""Features of all windows of a larger image: responses shared, against window by window."""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Paired
from visionshare import GaborBank

SIDE, IMAGE, FILTERS = 16, 128, 30


def test_windows_that_share_responses(paired: Paired) -> None:
    """All windows at once, against a batch of the windows one by one."""
    rng = np.random.default_rng(0)
    image = rng.random((IMAGE, IMAGE), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(image, (SIDE, SIDE)).reshape(-1, SIDE, SIDE)
    windows = np.ascontiguousarray(windows)
    family = GaborBank(FILTERS, border="inside", step=1).fit(windows)
    positions = np.arange(IMAGE - SIDE + 1)
    paired(
        lambda: family.transform_windows(image, positions, positions),
        lambda: family.transform(windows),
        rounds=5,
    )
