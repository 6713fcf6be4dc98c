"""A small reader, learned in seconds from matplotlib's fonts but two families."""

from pathlib import Path

import pytest

from visionshare import PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import Fonts
from visionshare.datasets.fonts import matplotlib_fonts
from visionshare.datasets.glyphs import load_fonts

UNSEEN = ("dejavu serif", "cmss10")


@pytest.fixture(scope="session")
def reader():
    loaded = load_fonts("train", Fonts(per_class=56, tests=UNSEEN))
    family = PatchTemplates(7, 40, 4, (6.5,), cut=0.45, padding=2, n_patches=20_000)
    family.fit(loaded.images)
    columns = ArrayColumns.from_family(family, loaded.images)
    model = ShareBoost(rounds=30, criterion="orthogonal", alpha=1e-3, refit_tol=1e-4)
    return model.fit(columns, loaded.labels).to_classifier(family, list(loaded.classes))


@pytest.fixture(scope="session")
def font():
    """Return a font of a family that taught the reader nothing."""
    return next(path for path in matplotlib_fonts() if path.stem == "DejaVuSerif")


@pytest.fixture(scope="session")
def reader_file(reader, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("reader") / "reader.safetensors"
    reader.save(path)
    return path
