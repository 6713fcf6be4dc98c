"""Templates under masks, added where their maxima are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare import PatchTemplates

IMAGES = np.random.default_rng(0).integers(0, 256, (30, 9, 8, 2), np.uint8)


@pytest.mark.parametrize("padding", [0, 2])
def test_templates_are_added_where_maxima_are(padding):
    family = PatchTemplates(
        3, 4, 2, (2.0,), 0.3, padding=padding, n_patches=500
    ).fit(IMAGES)  # fmt: skip
    family = family.take(np.array([0, 7, 3, 12, 5]))
    moving = family.tunable()
    values, seen = moving.forward(IMAGES)
    assert (seen >= 0).any()
    G = np.random.default_rng(1).normal(size=seen.shape).astype(np.float32)
    expected = np.zeros((len(IMAGES), 9 + 2 * padding, 8 + 2 * padding, 2))
    for i, f in np.ndindex(seen.shape):
        if seen[i, f] >= 0:
            row, col = divmod(int(seen[i, f]), family.positions_[1])
            t, a, b = family.layout_[f]
            weight = G[i, f] * family.row_masks_[a, row] * family.col_masks_[b, col]
            expected[i, row : row + 3, col : col + 3] += weight * family.templates_[t]
    out = moving.image_gradients(IMAGES, values, seen, G)
    inside = expected[:, padding : padding + 9, padding : padding + 8]
    assert_allclose(out, inside, rtol=1e-4, atol=1e-5)
