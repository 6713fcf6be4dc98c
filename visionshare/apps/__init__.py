"""What people do with features and classifiers."""

from __future__ import annotations

from visionshare.apps.explanation import ExplainedPicture, explain_picture
from visionshare.apps.extraction import FEATURES_FILE, Extraction, extract_features
from visionshare.apps.hub import from_hub, push_to_hub
from visionshare.apps.pictures import read_picture
from visionshare.apps.prediction import BatchLimits, Classified, classify_files
from visionshare.apps.segmentation import label_map, score_map
from visionshare.apps.sparsification import features_needed, sparsify

__all__ = [
    "FEATURES_FILE",
    "BatchLimits",
    "Classified",
    "ExplainedPicture",
    "Extraction",
    "classify_files",
    "explain_picture",
    "extract_features",
    "features_needed",
    "from_hub",
    "label_map",
    "push_to_hub",
    "read_picture",
    "score_map",
    "sparsify",
]
