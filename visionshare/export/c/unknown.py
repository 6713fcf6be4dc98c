"""The rule for pictures of no class in C: a function of an image and its scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.classifier.unknown import FAINT, LARGEST, LEVELS, few_measures, view_matrix
from visionshare.codegen.templates import render_file

_FILE = Path(__file__).parent / "known.c.j2"


def sums_of(classifier: CompactClassifier) -> tuple[np.ndarray, np.ndarray, float]:
    """Return weights and intercepts of the scores, and of the sums that the rule needs."""
    # These are multiplied by a factor, the last value, so that both are as precise in few bits.
    rule = classifier.unknown
    if rule is None or rule.directions is None:
        return classifier.weights, classifier.intercept, 1.0
    largest = [np.abs(some).sum(axis=1).max() for some in (classifier.weights, rule.directions)]
    factor = float(2.0 ** np.floor(np.log2(max(largest[0], 1e-30) / largest[1])))
    weights = np.concatenate([classifier.weights, rule.directions * np.float32(factor)])
    intercept = np.concatenate([classifier.intercept, np.zeros(len(rule.directions), np.float32)])
    return weights, intercept, factor


def known_source(classifier: CompactClassifier, values: dict[str, Any], score_scale: float) -> str:
    """Return the function ``NAME_known``; nothing where the classifier has no rule."""
    rule = classifier.unknown
    if rule is None:
        return ""
    rows, columns = (view_matrix(side).astype(np.float32) for side in classifier.image_shape[:2])
    quantiles = rule.quantiles
    own = {
        "feature_means": rule.feature_means, "sum_unit": score_scale / sums_of(classifier)[2],
        "n_sums": len(rule.weights), "n_measures": rule.weights.shape[1],
        "rows": rows, "columns": columns, "side": len(rows),
        "means": rule.means, "whitening": rule.whitening, "center": rule.center,
        "scale": rule.scale, "weights": rule.weights, "offsets": rule.offsets,
        "quantiles": quantiles, "levels": np.array(LEVELS, np.float32),
        "n": len(rule.center), "n_seen": len(rule.whitening), "few": few_measures(),
        "faint": FAINT, "largest": LARGEST, "score_unit": score_scale / classifier.temperature,
        "tail": 1 / max(float(quantiles[-2] - quantiles[0]), 1e-6),
    }  # fmt: skip
    return render_file(_FILE, {**values, **own})
