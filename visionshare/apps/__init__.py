"""What people do with features and classifiers."""

from __future__ import annotations

from visionshare.apps.extraction import FEATURES_FILE, Extraction, extract_features
from visionshare.apps.segmentation import label_map, score_map

__all__ = ["FEATURES_FILE", "Extraction", "extract_features", "label_map", "score_map"]
