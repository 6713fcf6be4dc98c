"""Boxes lie in the picture, whatever preprocessing did."""

import io

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.batch import explain_picture, read_picture
from visionshare.datasets import Preprocessing
from visionshare.errors import DataError, InputError

STEPS = {
    "stretched": Preprocessing(),
    "centered": Preprocessing(fit="center"),
    "cropped": Preprocessing("automatic", crop=True, contrast=True, fit="box", margin=2),
    "by mass": Preprocessing("automatic", crop=True, fit="box", margin=2, center="mass"),
    "character": Preprocessing("automatic", fit="character", margin=2),
}


def _file(picture):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    return file


def _model(steps, shape=(20, 20)):
    family = Pixels().fit(np.zeros((1, *shape)))
    weights = np.ones((2, family.n_features_)) * [[1], [-1]]
    return CompactClassifier(family, weights, np.zeros(2), np.arange(2), preprocessing=steps)


@pytest.mark.parametrize("steps", STEPS)
def test_a_pixel_of_the_image_lies_on_its_ink(steps):
    # Ink that has a dot in a corner of its own, far from the middle of the picture.
    picture = np.full((120, 90), 230, np.uint8)
    picture[20:60, 30:36] = 20
    picture[20:26, 30:66] = 20
    explained = explain_picture(_model(STEPS[steps]), _file(picture))
    said, image = explained.explanation, explained.image
    assert (image == read_picture(_model(STEPS[steps]), _file(picture))).all()
    assert said.size == picture.shape
    dark = picture < 128
    ink_is_light = STEPS[steps].polarity == "automatic"
    is_ink = image > 200 if ink_is_light else (image > 10) & (image < 60)
    boxes = said.boxes.reshape(20, 20, 4)[is_ink]
    assert len(boxes) > 3
    shares = [
        dark[int(a) : int(np.ceil(b)), int(c) : int(np.ceil(d))].mean() for a, b, c, d in boxes
    ]
    assert np.mean(shares) > 0.6


def test_a_picture_that_is_turned_is_explained_upright():
    picture = np.zeros((10, 30, 3), np.uint8)
    picture[:, :10] = 255
    file, turned = io.BytesIO(), Image.fromarray(picture)
    turned.getexif()[0x0112] = 6
    turned.save(file, "jpeg", exif=turned.getexif())
    explained = explain_picture(_model(Preprocessing(), (3, 1, 3)), file)
    assert explained.picture.shape == (30, 10, 3)
    assert_allclose(explained.explanation.boxes[0], [0, 10, 0, 10])
    assert explained.image[0, 0, 0] > 200 > 50 > explained.image[2, 0, 0]


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(DataError, match="unknown format"):
        explain_picture(_model(Preprocessing()), io.BytesIO(b"no picture"))
    with pytest.raises(DataError, match="too many"):
        explain_picture(_model(Preprocessing()), _file(np.zeros((30, 30), np.uint8)), 100)
    with pytest.raises(InputError, match=r"^classifier"):
        explain_picture(_model(Preprocessing(), (5,)), _file(np.zeros((3, 3), np.uint8)))
