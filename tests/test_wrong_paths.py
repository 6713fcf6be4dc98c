"""What is no path, and no file: public functions that read one say so by a typed error."""

import io

import pytest

import visionshare
from visionshare.datasets import decode_image, load_images, picture_header
from visionshare.errors import InputError
from visionshare.recipes import load_recipe
from visionshare.store import open_store, repair_store, store_info, verify_store

READERS = [
    load_images,
    load_recipe,
    open_store,
    repair_store,
    store_info,
    verify_store,
    visionshare.load,
    visionshare.ImageClassifier.load,
]


@pytest.mark.parametrize("given", [None, 3, [], b"x"], ids=repr)
def test_what_is_no_path(given):
    for read in READERS:
        with pytest.raises(InputError, match="accepted: a path"):
            read(given)


@pytest.mark.parametrize(
    "given", [None, 3, [], io.StringIO("x"), open], ids=lambda given: type(given).__name__
)
def test_what_is_no_picture(given):
    for read in (decode_image, picture_header):
        with pytest.raises(InputError, match="accepted: a path, bytes, or a file"):
            read(given)
