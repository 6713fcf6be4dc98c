"""The rule for pictures of no class in C: a function of an image and its scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.classifier.unknown import FAINT, LARGEST, LEVELS, few_measures, view_matrix
from visionshare.codegen.templates import render_file

__all__ = ["known_source"]

_FILE = Path(__file__).parent / "known.c.j2"


def known_source(classifier: CompactClassifier, values: dict[str, Any], score_scale: float) -> str:
    """Return the function ``NAME_known``; nothing where the classifier has no rule."""
    rule = classifier.unknown
    if rule is None:
        return ""
    rows, columns = (view_matrix(side).astype(np.float32) for side in classifier.image_shape[:2])
    quantiles = rule.quantiles
    own = {
        "rows": rows, "columns": columns, "side": len(rows),
        "means": rule.means, "whitening": rule.whitening, "center": rule.center,
        "scale": rule.scale, "weights": rule.weights, "offsets": rule.offsets,
        "quantiles": quantiles, "levels": np.array(LEVELS, np.float32),
        "n": len(rule.center), "n_seen": len(rule.whitening), "few": few_measures(),
        "faint": FAINT, "largest": LARGEST, "score_unit": score_scale / classifier.temperature,
        "tail": 1 / max(float(quantiles[-2] - quantiles[0]), 1e-6),
    }  # fmt: skip
    return render_file(_FILE, {**values, **own})
