"""Explanations of picture files: boxes lie in the picture, not in what became of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.classifier import CompactClassifier, Explanation, explain
from visionshare.datasets.decoding import decode_image
from visionshare.datasets.intake import as_rasters
from visionshare.datasets.opening import MAX_PIXELS, Source, open_picture
from visionshare.errors import InputError


@dataclass(frozen=True, eq=False)
class ExplainedPicture:
    """A picture and the contributions of the features.

    Attributes
    ----------
    picture : ndarray of shape (H, W, 3), uint8
        The picture, upright.
    image : ndarray of shape image_shape, uint8
        What the classifier took.
    explanation : Explanation
        With boxes in pixels of the picture.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> file = io.BytesIO()
    >>> Image.new("L", (20, 10), 7).save(file, format="png")
    >>> explained = explain_picture(model, file)
    >>> explained.picture.shape, explained.image.shape
    ((10, 20, 3), (2, 2))
    """

    picture: np.ndarray
    image: np.ndarray
    explanation: Explanation


def explain_picture(
    classifier: CompactClassifier,
    source: Source,
    max_pixels: int = MAX_PIXELS,
) -> ExplainedPicture:
    """Explain a picture file: what each feature adds to the scores, and where it responded.

    Parameters
    ----------
    classifier : CompactClassifier
    source : path-like, bytes or binary file
    max_pixels : int, default 67108864
        Larger pictures are refused before they are decoded.

    Raises
    ------
    DataError
        If it is no picture, broken or too large.
    InputError
        If the classifier's examples are no gray or RGB images.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> file = io.BytesIO()
    >>> Image.new("L", (20, 10), 7).save(file, format="png")
    >>> explain_picture(model, file).explanation.boxes.tolist()
    [[0.0, 5.0, 0.0, 10.0], [5.0, 10.0, 10.0, 20.0]]
    """
    size = classifier.picture_size
    shape = classifier.image_shape
    if size is None or shape[2:] not in ((), (1,), (3,)):
        raise InputError("classifier", f"shape {shape}", "one of gray or RGB images")
    steps = classifier.preprocessing
    opened = open_picture(source, max_pixels)
    shown = decode_image(opened, "color", steps)
    taken = shown
    if classifier.picture_mode == "gray":
        taken = decode_image(opened, "gray", steps)
    raster, placement = steps.place(taken, size)
    image = as_rasters(raster.reshape(shape))
    said = explain(classifier, image)
    picture_size = (shown.shape[0], shown.shape[1])
    boxes = placement.in_picture(said.boxes)
    return ExplainedPicture(shown, image, said.placed(boxes, picture_size))
