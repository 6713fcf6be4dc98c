"""What moves: features and scores, and the functions that are called where images are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.files.fingerprints import array_fingerprint
from visionshare.generators.lazy_images import image_batches
from visionshare.generators.tuning import Tunable
from visionshare.learners.fine_tuning.loss import Batch, TuningLoss
from visionshare.learners.fine_tuning.parts import ImagePart
from visionshare.learners.fine_tuning.product_scores import ProductScores

# What images leave in the layers, of those that go through them together.
_FORWARD_BYTES = 512 << 20
# Images whose scores are computed together.
_SCORED = 1024


def bytes_per_image(family: Any) -> float:
    """Return what the layers of a family hold for an image while its gradients are computed.

    Parameters
    ----------
    family : FeatureFamily
        Fitted.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> bytes_per_image(Pixels().fit(np.zeros((1, 8, 8))))
    1024.0
    """
    # Of a layer the values, where each maximum was, and the gradients; of an image its floats.
    held = sum(12.0 * float(np.prod(layer.shape)) for layer in family.layer_summaries())
    return held + 4.0 * float(np.prod(family.image_shape_))


@dataclass
class MovingClassifier:
    """Features, the scores of them, and the loss of these: it travels to where the images are."""

    features: Tunable
    scores: ProductScores
    loss: TuningLoss
    #: How often the parameters have moved.
    version: int = 0

    @property
    def parameters(self) -> list[np.ndarray]:
        """All that moves, in place; :meth:`moved` takes it on."""
        return [*self.features.parameters, self.scores.W, self.scores.c, self.scores.Q]

    def moved(self) -> None:
        """Take on the current parameters."""
        self.version += 1
        self.scores.drop()
        self.features.moved()

    def flat(self) -> np.ndarray:
        """Return all parameters, end to end."""
        return np.concatenate([p.ravel() for p in self.parameters])

    def at(self, version: int, flat: np.ndarray) -> MovingClassifier:
        """Return the same classifier with the parameters of a version."""
        if version != self.version:
            for parameter, values in zip(
                self.parameters, unflattened(flat, self.parameters), strict=True
            ):
                parameter[...] = values
            self.moved()
            self.version = version
        return self


def unflattened(flat: np.ndarray, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the parts of a flat array, in the shapes of others."""
    parts = []
    begin = 0
    for array in arrays:
        parts.append(flat[begin : begin + array.size].reshape(array.shape))
        begin += array.size
    return parts


# The functions below are called with each part, in the process that has it.


def digest(part: ImagePart, y: np.ndarray) -> np.ndarray:
    """Return a digest of the labels, the first images, and what a teacher says of them."""
    taught = part.taught(0)
    arrays = [y, part.images(0)] + ([] if taught is None else [taught])
    return np.frombuffer(array_fingerprint(*arrays).encode(), np.uint8)


def sample(part: ImagePart, epoch: int, stride: int) -> np.ndarray:
    """Return some of an epoch's images."""
    return part.images(epoch)[::stride]


def features_of(part: ImagePart, features: Tunable, epoch: int, stride: int) -> np.ndarray:
    """Return the features of some of an epoch's images."""
    return _values(features, part.images(epoch)[::stride], part.n_jobs)


def scores_of(part: ImagePart, model: MovingClassifier, epoch: int, rows: np.ndarray) -> np.ndarray:
    """Return scores (k, n) of some of an epoch's images."""
    images = part.images(epoch)
    scores = model.scores
    Z = [np.empty((len(scores.c), 0), np.float32)]
    for start in range(0, len(rows), _SCORED):
        chosen = images[rows[start : start + _SCORED]]
        values = _values(model.features, chosen, part.n_jobs)
        Z.append(scores.scores(scores.standardized(values))[0])
    return np.concatenate(Z, axis=1)


def batch_gradient(
    part: ImagePart,
    model: MovingClassifier,
    version: int,
    flat: np.ndarray,
    epoch: int,
    rows: np.ndarray,
    batch: Batch,
) -> tuple[np.ndarray, list[tuple[float, np.ndarray]]]:
    """Return the part of a step's gradient, flat, and its images' loss and scores (k, n)."""
    model = model.at(version, flat)
    scores = model.scores
    jobs = part.n_jobs
    if len(rows) == 0:
        zeros = np.zeros(sum(p.size for p in model.parameters), np.float32)
        return zeros, [(0.0, np.empty((len(scores.c), 0), np.float32))]
    # 1) the images of the step
    images = part.images(epoch)[rows]
    taught = part.taught(epoch)
    if taught is not None:
        batch = batch._replace(taught=taught[:, rows])
    # 2) forward: features, scores, loss
    values, seen = model.features.forward(images, jobs)
    X = scores.standardized(values)
    Z, seen_of_scores = scores.scores(X)
    loss, R = model.loss.residual(Z, batch)
    # 3) back: through the scores into the features
    G, of_scores = scores.gradients(X, seen_of_scores, R)
    of_features = model.features.backward(images, values, seen, G, jobs)
    gradient = np.concatenate([g.ravel() for g in (*of_features, *of_scores)])
    return gradient, [(loss, Z)]


def _values(features: Tunable, images: np.ndarray, n_jobs: int) -> np.ndarray:
    """Return the features of images, few at a time: what each leaves in the layers is a lot."""
    family = features.family()
    batches = image_batches(len(images), bytes_per_image(family), _FORWARD_BYTES)
    parts = [features.forward(images[rows], n_jobs)[0] for rows in batches]
    return np.concatenate([np.empty((0, family.n_features_), np.float32), *parts])
