"""Tensor files: what the safetensors package writes is read, strictly."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from safetensors.numpy import load, save

from visionshare.errors import DataError
from visionshare.files.tensors import read_tensor_file, tensor_file_format, write_tensor_file

ARRAYS = {
    "x": np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32),
    "ids": np.array([2**62, -5]),
    "none": np.empty((0, 2), np.float32),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensor_file(path, "example", 2, {"name": "π"}, ARRAYS)
    return path


def test_what_is_written_is_read_and_is_a_safetensors_file(path):
    values, arrays = read_tensor_file(path, "example", (1, 2), DataError)
    assert (values["name"], values["version"]) == ("π", 2)
    theirs = load(path.read_bytes())
    assert set(arrays) == set(ARRAYS) == set(theirs)
    for name, array in ARRAYS.items():
        assert_array_equal(arrays[name], array)
        assert_array_equal(theirs[name], array)
    assert tensor_file_format(path) == "example"


def test_other_formats_and_versions_say_what_is_accepted(path):
    with pytest.raises(DataError, match="format 'example'; accepted: 'other'"):
        read_tensor_file(path, "other", {2}, DataError)
    with pytest.raises(DataError, match="format version 2; this library reads 1, 3: install"):
        read_tensor_file(path, "example", {3, 1}, DataError)


@pytest.mark.parametrize("version", [True, "2", None, [2], 2.0])
def test_versions_are_integers(tmp_path, version):
    write_tensor_file(tmp_path / "a", "example", version, {}, {})
    with pytest.raises(DataError, match="format version"):
        read_tensor_file(tmp_path / "a", "example", {1, 2}, DataError)


def test_large_files_and_headers_are_refused_before_they_are_read(path):
    size = path.stat().st_size
    read_tensor_file(path, "example", {2}, DataError, max_bytes=size)
    with pytest.raises(DataError, match="bytes are too many"):
        read_tensor_file(path, "example", {2}, DataError, max_bytes=size - 1)
    (header,) = struct.unpack("<Q", path.read_bytes()[:8])
    read_tensor_file(path, "example", {2}, DataError, max_header_bytes=header)
    with pytest.raises(DataError, match="no safetensors header"):
        read_tensor_file(path, "example", {2}, DataError, max_header_bytes=header - 1)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64"}, {"shape": [3, 5]}, {"shape": [-3, -4]}, {"shape": [True, 12]},
        {"shape": [1] * 8 + [12]}, {"data_offsets": [0, 10**9]}, {"data_offsets": [48, 0]},
        {"data_offsets": [0]}, {"shape": None},
    ],
    ids=str,
)  # fmt: skip
def test_hostile_tables_are_typed_errors(path, entry):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    table = json.loads(content[8 : 8 + length])
    table["x"] |= entry
    text = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])
    with pytest.raises(DataError, match="invalid example file"):
        read_tensor_file(path, "example", {2}, DataError)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 30])
def test_numbers_that_no_array_holds_are_refused(tmp_path, number):
    text = f'{{"format": "example", "version": 2, "value": {number}}}'
    (tmp_path / "a").write_bytes(save({}, metadata={"visionshare": text}))
    with pytest.raises(DataError, match="invalid example file"):
        read_tensor_file(tmp_path / "a", "example", {2}, DataError)


@given(st.data())
def test_a_damaged_file_is_a_typed_error(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "damaged"
    write_tensor_file(path, "example", 2, {"name": "n"}, ARRAYS)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        values, arrays = read_tensor_file(path, "example", {2}, DataError)
    except DataError:
        return
    # A flip that changes no value: in the spaces that pad the header.
    assert values["name"] == "n"
    for name, array in ARRAYS.items():
        assert_array_equal(arrays[name], array)
