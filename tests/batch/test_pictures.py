"""Picture files as images of a classifier."""

import io
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.batch.pictures import read_picture
from visionshare.datasets import Preprocessing
from visionshare.errors import DataError, InputError


def _classifier(shape):
    family = Pixels().fit(np.zeros((1, *shape), np.uint8)).take([0, 3])
    return CompactClassifier(family, np.eye(2), np.zeros(2), np.arange(2))


@pytest.mark.parametrize("shape", [(8, 8), (8, 6, 1), (5, 8, 3)])
def test_a_picture_becomes_an_image(shape, tmp_path):
    Image.fromarray(np.full((20, 30), 7, np.uint8)).save(tmp_path / "a.png")
    expected = np.full(shape, 7, np.uint8)
    assert_array_equal(read_picture(_classifier(shape), tmp_path / "a.png"), expected)
    file = io.BytesIO((tmp_path / "a.png").read_bytes())
    assert_array_equal(read_picture(_classifier(shape), file, max_pixels=600), expected)


def test_it_is_preprocessed_as_the_classifier_says(tmp_path):
    picture = np.full((20, 30), 250, np.uint8)
    picture[5:15, 10:14] = 10
    Image.fromarray(picture).save(tmp_path / "a.png")
    steps = Preprocessing("automatic", crop=True, fit="box", margin=1, center="mass")
    model = replace(_classifier((8, 8)), preprocessing=steps)
    assert_array_equal(read_picture(model, tmp_path / "a.png"), steps.apply(picture, (8, 8)))


def test_what_cannot_be_read_is_refused(tmp_path):
    model = _classifier((8, 8))
    Image.fromarray(np.full((20, 30), 7, np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(DataError, match="too many"):
        read_picture(model, tmp_path / "a.png", max_pixels=599)
    with pytest.raises(DataError, match="cannot be read"):
        read_picture(model, io.BytesIO(b"no picture"))
    for shape in ((4,), (4, 4, 2)):
        with pytest.raises(InputError, match=r"^classifier"):
            read_picture(_classifier(shape), tmp_path / "a.png")
