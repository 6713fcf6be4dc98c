"""Where benchmarks find data and classifiers; those that need what is missing are skipped."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from visionshare import CompactClassifier, PatchTemplates, load

__all__ = ["data_folder", "synthetic", "trained"]

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


def synthetic(cut: float) -> CompactClassifier:
    """Return a classifier of 75 patch features of noise, under masks cut at a level."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (500, 28, 28), np.uint8)
    family = PatchTemplates(n_templates=1000, widths=(6.5,), cut=cut, n_patches=20_000).fit(images)
    chosen = family.take(rng.permutation(family.n_features_)[:75])
    weights = rng.normal(size=(10, 75)).astype(np.float32)
    return CompactClassifier(chosen, weights, np.zeros(10, np.float32), np.arange(10))
