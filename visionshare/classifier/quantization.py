"""Integers in place of floats, without learning anew: post-training quantization."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from visionshare.classifier.compact import CompactClassifier
from visionshare.codegen.rounding import round_by_moments
from visionshare.datasets.intake import as_rasters
from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.integers.rounding import FORMATS, best_exponents
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.tuning import ByteNetwork, check_quantizable
from visionshare.generators.union.family import UnionOfFamilies
from visionshare.machine.resources import single_threaded_blas

_MOST_IMAGES = 1000
# Of the features' mean variance: how near integer weights stay to the floats.
_RIDGE = 0.01
# Whole numbers up to this are exact in float32.
_LARGEST_SCORE = 2**24


def can_be_quantized(classifier: CompactClassifier) -> bool:
    """Return whether :func:`quantize` takes the features of a classifier.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2)))
    >>> can_be_quantized(CompactClassifier(family, np.eye(4), np.zeros(4), np.arange(4)))
    False
    """
    try:
        _check_parts(classifier)
    except InputError:
        return False
    return True


def quantize(
    classifier: CompactClassifier, images: np.ndarray, bits: int = 8, n_jobs: int = 1
) -> CompactClassifier:
    """Return a classifier whose templates, features and weights are integers.

    It computes the same in Python, in C and in ONNX, to the bit, without floats from a pixel to a
    score; scores are integers, which its temperature brings to the scale of probabilities. With 8
    bits errors change little; with 4 it is better to learn in them, see
    :class:`visionshare.learners.fine_tuning.Quantization`. It has no path and no exit rule.

    Parameters
    ----------
    classifier : CompactClassifier
        Of a network: deslanting or nothing, layers of templates, then units; and means of such
        classifiers.
    images : ndarray of shape (n, *image_shape), uint8
        Training images that say how large values become; of more than a thousand, as many are
        taken, evenly.
    bits : {8, 4}, default 8
        Of templates and weights; values between layers have 8.
    n_jobs : int, default 1
        Threads.

    Raises
    ------
    InputError
        If the classifier has other features, an image another shape or type, or a score of such
        integers could be more than 2^24, beyond which floats of 32 bits are not exact.

    References
    ----------
    B. Jacob et al., "Quantization and training of neural networks for efficient
    integer-arithmetic-only inference", CVPR 2018, §2: scales are powers of two here; E. Frantar,
    S. Ashkboos, T. Hoefler, D. Alistarh, "GPTQ", ICLR 2023: how weights are rounded.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import Network, ShareBoost, Templates
    >>> X, y = load_digits(return_X_y=True)
    >>> images = (X.reshape(-1, 8, 8) * 15).astype(np.uint8)
    >>> family = Network([Templates(20, 3, grid=2, n_patches=2000)]).fit(images)
    >>> learner = ShareBoost(rounds=20).fit(family.transform(images), y)
    >>> chosen = family.take(learner.support_)
    >>> model = CompactClassifier(chosen, learner.coef_, learner.intercept_, learner.classes_)
    >>> integers = quantize(model, images)
    >>> bool((integers.weights == integers.weights.round()).all())
    True
    >>> bool((integers.predict(images) == model.predict(images)).mean() > 0.97)
    True
    """
    images = as_rasters(classifier.rasters(images))
    if bits not in (8, 4):
        raise InputError("bits", bits, "8 or 4")
    if classifier.n_features == 0:
        raise InputError("classifier", "no features", "one feature or more")
    _check_parts(classifier)
    fits = images.dtype == np.uint8 and images.shape[1:] == classifier.image_shape
    if not fits or len(images) == 0:
        shape = ", ".join(map(str, classifier.image_shape))
        given = f"{images.dtype} of shape {images.shape}"
        raise InputError("images", given, f"training images of shape (n, {shape}), uint8")
    # 1) Features; images may be sorted by class.
    chosen = np.linspace(0, len(images) - 1, min(len(images), _MOST_IMAGES)).astype(np.int64)
    images = images[chosen]
    family, exponents, order = _in_integers(classifier.family, images, bits, n_jobs)
    # 2) Weights, so that scores stay what they were.
    rounded = family.transform(images, n_jobs=n_jobs).astype(np.float64)
    scores = classifier.decision_function(images, n_jobs).astype(np.float64)
    start = np.ldexp(classifier.weights[:, order].astype(np.float64), exponents)
    with single_threaded_blas():
        weights, intercept, exponent = _whole_weights(start, rounded, scores, bits)
    largest = int((255 * np.abs(weights).sum(axis=1) + np.abs(intercept)).max())
    if largest > _LARGEST_SCORE:
        accepted = f"scores up to {_LARGEST_SCORE}: fewer features, or fewer bits"
        raise InputError("classifier", f"scores up to {largest}", accepted)
    return replace(
        classifier,
        family=family,
        weights=weights,
        intercept=intercept,
        temperature=float(np.ldexp(classifier.temperature, -exponent)),
        metadata={**classifier.metadata, "quantized_bits": bits},
        path=(),
        exit_rule=None,
    )


def _in_integers(
    family: FeatureFamily, images: np.ndarray, bits: int, n_jobs: int
) -> tuple[FeatureFamily, np.ndarray, np.ndarray]:
    """Return a family in integers, its features' exponents, and which feature each of them was."""
    networks = []
    exponents = []
    parts = _parts_of(family)
    for part, _ in parts:
        assert isinstance(part, Network)
        features = ByteNetwork(part)
        features.quantize(Bits(bits, bits), images, n_jobs)
        networks.append(features.family())
        exponents.append(np.asarray(features.exponents))
    is_union = isinstance(family, UnionOfFamilies)
    made = UnionOfFamilies.of(networks) if is_union else networks[0]
    return made, np.concatenate(exponents), np.concatenate([ids for _, ids in parts])


def _parts_of(family: FeatureFamily) -> list[tuple[FeatureFamily, np.ndarray]]:
    """Return the families of a union with the numbers of their features; or the family itself."""
    if not isinstance(family, UnionOfFamilies):
        return [(family, np.arange(family.n_features_))]
    numbers = [np.flatnonzero(family.part_ == p) for p in range(len(family.parts_))]
    return [(part, ids) for part, ids in zip(family.parts_, numbers, strict=True) if len(ids)]


def _check_parts(classifier: CompactClassifier) -> None:
    """Raise an InputError unless all features can be computed in integers."""
    for part, _ in _parts_of(classifier.family):
        check_quantizable(part, "classifier")


def _whole_weights(
    start: np.ndarray, rounded: np.ndarray, scores: np.ndarray, bits: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return whole weights and intercepts that keep the scores of images, and their exponent."""
    # 1) What rounding took from the features, weights make good as far as they can: by least
    #    squares, near those at the start.
    means = rounded.mean(axis=0)
    mean_scores = scores.mean(axis=0)
    centered = rounded - means
    moments = centered.T @ centered / len(rounded)
    missing = centered.T @ (scores - mean_scores - centered @ start.T) / len(rounded)
    ridge = max(_RIDGE * float(np.diag(moments).mean()), 1e-30)
    moved = start + np.linalg.solve(moments + ridge * np.eye(len(moments)), missing).T
    # 2) What rounding takes from a weight, those after it make good.
    exponent = int(best_exponents(moved.reshape(1, -1), FORMATS[bits])[0])
    scale = 2.0**exponent
    weights = round_by_moments(moved, np.full(len(moved), scale), bits, moments)
    intercept = np.rint(mean_scores / scale - weights @ means).astype(np.int64)
    return weights, intercept, exponent
