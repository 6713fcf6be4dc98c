"""The transferability matrix as picture and table."""

import csv

import numpy as np
import pytest
from PIL import Image

from visionshare.errors import InputError
from visionshare.reports.transferability import (
    draw_transferability,
    transferability_table,
    write_transferability,
)

WEIGHTS = np.array([[np.nan, 0.5, -0.25], [0.1, np.nan, 0.0]])
NAMES = ["a", "b"], ["a", "b", "c, d"]


def test_picture_and_table_are_written(tmp_path):
    write_transferability(tmp_path / "m.png", WEIGHTS, *NAMES)
    with Image.open(tmp_path / "m.png") as picture:
        assert min(picture.size) > 100
    with open(tmp_path / "m.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["target", "a", "b", "c, d"]
    assert rows[1] == ["a", "", "0.500000", "-0.250000"]
    assert rows[2] == ["b", "0.100000", "", "0.000000"]


def test_targets_are_columns_and_what_was_left_out_is_masked():
    axis = draw_transferability(WEIGHTS, *NAMES, "few").axes[0]
    shown = axis.images[0].get_array()
    assert shown.shape == (3, 2)
    assert shown.mask.T.tolist() == np.isnan(WEIGHTS).tolist()
    assert axis.images[0].get_clim() == (-0.5, 0.5)
    assert [t.get_text() for t in axis.get_xticklabels()] == ["a", "b"]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["a", "b", "c, d"]
    assert axis.get_title() == "few"


@pytest.mark.parametrize("weights", [np.zeros((2, 3)), np.full((2, 3), np.nan)])
def test_nothing_to_show_is_shown(weights):
    low, high = draw_transferability(weights, *NAMES).axes[0].images[0].get_clim()
    assert low < 0 < high


def test_names_that_do_not_fit_are_refused():
    for function in (draw_transferability, transferability_table):
        with pytest.raises(InputError, match=r"^weights: got"):
            function(WEIGHTS, NAMES[1], NAMES[0])
