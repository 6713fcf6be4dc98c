"""Picture files as the images that a classifier takes."""

from __future__ import annotations

from visionshare.classifier import CompactClassifier
from visionshare.datasets.folders import read_image
from visionshare.datasets.intake import Rasters, as_rasters
from visionshare.datasets.opening import Source
from visionshare.errors import InputError


def read_picture(
    classifier: CompactClassifier,
    source: Source,
    max_pixels: int | None = None,
) -> Rasters:
    """Return the image of a picture file, preprocessed as the classifier takes it.

    Parameters
    ----------
    classifier : CompactClassifier
    source : path-like, bytes or binary file
    max_pixels : int, optional
        Larger pictures are refused before they are decoded.

    Returns
    -------
    ndarray of shape image_shape, uint8
        Marked as prepared: a classifier does not prepare it again.

    Raises
    ------
    DataError
        If it is no picture, broken or too large.
    InputError
        If the classifier's examples are vectors.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from PIL import Image
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> file = io.BytesIO()
    >>> Image.new("L", (20, 10), 7).save(file, format="png")
    >>> read_picture(model, file).tolist()
    [[7, 7], [7, 7]]
    """
    size = classifier.picture_size
    if size is None or classifier.image_shape[2:] not in ((), (1,), (3,)):
        accepted = "one of gray or RGB images"
        raise InputError("classifier", f"shape {classifier.image_shape}", accepted)
    limits = () if max_pixels is None else (max_pixels,)
    mode = classifier.picture_mode
    steps = classifier.preprocessing
    raster = read_image(source, size, mode, steps, *limits)
    return as_rasters(raster.reshape(classifier.image_shape))
