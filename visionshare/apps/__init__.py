"""What people do with features and classifiers."""

from __future__ import annotations

from visionshare.apps.extraction import FEATURES_FILE, Extraction, extract_features
from visionshare.apps.pictures import read_picture
from visionshare.apps.prediction import BatchLimits, Classified, classify_files
from visionshare.apps.segmentation import label_map, score_map
from visionshare.apps.sparsification import features_needed, sparsify

__all__ = [
    "FEATURES_FILE",
    "BatchLimits",
    "Classified",
    "Extraction",
    "classify_files",
    "extract_features",
    "features_needed",
    "label_map",
    "read_picture",
    "score_map",
    "sparsify",
]
