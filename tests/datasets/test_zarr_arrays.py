"""Zarr groups that are not what they should be."""

import numpy as np
import pytest

from visionshare.datasets.zarr_arrays import read_zarr_rows, zarr_blocks
from visionshare.errors import DataError, MemoryLimitError

zarr = pytest.importorskip("zarr", reason="needs the extra [zarr]")


def test_a_group_of_groups_is_refused(tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_group("images")
    group.create_group("labels")
    with pytest.raises(DataError, match="are no arrays"):
        zarr_blocks(str(tmp_path / "a.zarr"))


def test_a_chunk_that_does_not_fit_is_not_read(tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    side = 1 << 20
    group.create_array("images", shape=(4, side, side), dtype=np.uint8, chunks=(4, side, side))
    group.create_array("labels", data=np.arange(4))
    (block,) = zarr_blocks(str(tmp_path / "a.zarr"))
    with pytest.raises(MemoryLimitError, match="smaller chunks"):
        read_zarr_rows(block)
