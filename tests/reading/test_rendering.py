"""Pages are rendered at their size; what is no font or no size is refused."""

import numpy as np
import pytest

from visionshare.datasets.fonts import matplotlib_fonts
from visionshare.errors import DataError, InputError
from visionshare.reading.rendering import render_page

FONT = next(path for path in matplotlib_fonts() if path.name == "DejaVuSans.ttf")


def test_pages_are_rendered_at_their_size():
    page = render_page(["HHH", "HHH"], FONT, 36, dpi=100, margin=0.2, spacing=2.0)
    rows = np.flatnonzero((page < 128).any(axis=1))
    starts = rows[np.flatnonzero(np.diff(rows, prepend=-9) > 1)]
    # 36 points at 100 dpi are 50 pixels, and DejaVu's capitals are 0.73 of that.
    assert np.diff(starts).tolist() == [100]
    assert rows[-1] - starts[1] + 1 == pytest.approx(0.73 * 50, abs=1.5)
    assert page.shape[0] == 2 * 100 + 2 * 20 + 1
    assert render_page([], FONT).min() == 255


def test_pages_of_no_font_or_size_are_refused(tmp_path):
    (tmp_path / "no.ttf").write_bytes(b"nothing")
    with pytest.raises(DataError, match="font"):
        render_page(["A"], tmp_path / "no.ttf")
    with pytest.raises(InputError, match="points"):
        render_page(["A"], FONT, 0.5)
