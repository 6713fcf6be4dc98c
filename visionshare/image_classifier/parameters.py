"""Parameters of ImageClassifier: checked before any work, in the form that a search takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from visionshare.datasets import Augmentation
from visionshare.errors import InputError
from visionshare.errors.inputs import input_errors
from visionshare.generators import FeatureFamily
from visionshare.image_classifier.following import teller
from visionshare.image_classifier.state import SearchSettings, check_seconds
from visionshare.learners.class_weights import check_class_weight
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import FeaturePart


def checked_settings(model: Any) -> SearchSettings:
    """Return the settings of an estimator's search, checked."""
    features = model.features
    if not isinstance(features, (str, FeatureFamily)):
        raise InputError("features", features, "'auto', the name of a pool, or a family")
    if isinstance(features, str) and features != "auto":
        read_pool(FeaturePart(pool=features), 0).check_parameters()
    check_seconds(model.time)
    check_class_weight(model.class_weight)
    is_cluster = isinstance(model.cluster, str) or hasattr(model.cluster, "submit")
    if model.cluster is not None and not is_cluster:
        accepted = 'an address such as "tcp://host:8786", a distributed.Client, or None'
        raise InputError("cluster", model.cluster, accepted)
    augment = model.augment
    if not isinstance(augment, Augmentation) and augment not in ("auto", True, False):
        raise InputError("augment", augment, "'auto', True, False, or an Augmentation")
    return SearchSettings(
        features,
        augment,
        model.time,
        tried=teller(model.verbose),
        variants=model.variants,
        optimizer=model.optimizer,
    )


def weights_of_numbers(class_weight: Any, classes: list[Any]) -> dict[Any, float] | str | None:
    """Return the weights of classes by the names that a search has for them: their numbers."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    numbers = {label: f"{i}" for i, label in enumerate(classes)}
    return {numbers[label]: float(weight) for label, weight in class_weight.items()}


def seed_of(random_state: Any) -> int:
    """Return the seed of a parameter."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    accepted = "a whole number of at least 0, a RandomState, or None"
    with input_errors("random_state", random_state, accepted):
        return int(check_random_state(random_state).randint(2**31 - 1))
