"""Checkpoints: tensors are read, and nothing else."""

import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare.errors import DataError
from visionshare.generators.pretrained.checkpoint import read_checkpoint

MAGIC = 0x1950A86A20F9469CFC6C


def _pickled(strides=(1, 2), offset=1, size=7):
    """Return the pickle of {"w": a tensor (2, 3)}, written by hand."""
    numbers = b"".join(b"K" + bytes([n]) for n in strides)
    return (
        b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n("
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00aX\x03\x00\x00\x00cpu"
        + b"K" + bytes([size]) + b"NtQ"
        + b"K" + bytes([offset]) + b"(K\x02K\x03t(" + numbers + b"t\x89}tRs."
    )  # fmt: skip


def _file(tmp_path, body, size=7):
    data = b"".join(pickle.dumps(part, 2) for part in (MAGIC, 1001, {"little_endian": True}))
    data += body + pickle.dumps(["a"], 2)
    data += size.to_bytes(8, "little") + np.arange(size, dtype="<f4").tobytes()
    path = tmp_path / "network.pth"
    path.write_bytes(data)
    return path


def test_a_tensor_is_read_by_its_strides(tmp_path):
    found = read_checkpoint(_file(tmp_path, _pickled()))
    assert list(found) == ["w"]
    assert_array_equal(found["w"], [[1, 3, 5], [2, 4, 6]])


@pytest.mark.parametrize(
    "damage", [{"strides": (9, 9)}, {"offset": 200}, {"size": 100}, {"strides": (1,)}]
)
def test_a_tensor_outside_of_its_numbers_is_refused(tmp_path, damage):
    with pytest.raises(DataError, match="not a checkpoint of tensors alone"):
        read_checkpoint(_file(tmp_path, _pickled(**damage)))


class _Hostile:
    def __init__(self, call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("call", [(os.mkdir, ("ran",)), (eval, ("open('ran', 'w')",))])
def test_no_code_runs(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    for body in (pickle.dumps(_Hostile(call), 2), pickle.dumps({"w": _Hostile(call)}, 2)):
        with pytest.raises(DataError, match="not a checkpoint"):
            read_checkpoint(_file(tmp_path, body))
    assert not (tmp_path / "ran").exists()


def test_other_objects_and_cut_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="not a checkpoint"):
        read_checkpoint(_file(tmp_path, pickle.dumps(OrderedDict(w=1), 2)))
    path = _file(tmp_path, _pickled())
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_checkpoint(path)
    with pytest.raises(DataError, match="No such file"):
        read_checkpoint(tmp_path / "none.pth")
