"""Where benchmarks find real data and trained classifiers; without them they are skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from visionshare import CompactClassifier, load

__all__ = ["data_folder", "trained"]

ROOT = Path(__file__).resolve().parents[1]


def data_folder(name: str) -> Path:
    """Return the data folder that holds ``name``: VISIONSHARE_DATA, or ../shared/data."""
    folder = Path(os.environ.get("VISIONSHARE_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / name).is_dir():
        pytest.skip(f"no data folder: {folder} has no {name}; set VISIONSHARE_DATA")
    return folder


def trained(pipeline: str) -> CompactClassifier:
    """Return the classifier that a pipeline left under out/."""
    file = ROOT / "out" / pipeline / "classifier.safetensors"
    if not file.is_file():
        pytest.skip(f"no {file.name}: visionshare train {pipeline} --data DIR")
    return load(file)
