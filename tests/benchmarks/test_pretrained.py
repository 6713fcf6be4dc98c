"""The benchmark of pretrained networks: what is measured is kept, and measured once."""

import json

import numpy as np
import pytest
from PIL import Image

from benchmarks import pretrained
from visionshare.generators.pretrained.efficientnet import is_installed

# It trains for minutes, with PyTorch.
_LONG = ("CNN from scratch",)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(24):
        path = tmp_path / "d" / "ab"[number % 2]
        path.mkdir(parents=True, exist_ok=True)
        picture = rng.integers(0, 60, (24, 24, 3), np.uint8)
        picture[:: 2 + 3 * (number % 2)] += 120
        Image.fromarray(picture).save(path / f"{number}.png")
    return tmp_path / "d"


@pytest.mark.skipif(not is_installed(), reason="the extra is not installed")
def test_what_is_measured_is_kept(tmp_path, folder, capsys):
    methods = [name for name in pretrained.METHODS if name not in _LONG][:2]
    call = ["--data", str(folder), "--out", str(tmp_path / "f.json"), "--sizes", "5", "all"]
    pretrained.main([*call, "--draws", "1", "--methods", *methods])
    figures = json.loads((tmp_path / "f.json").read_text())
    assert sorted(figures) == sorted(f"{m}/{n}/0" for m in methods for n in (5, None))
    # Stripes of two widths.
    assert all(found["error"] <= 0.35 for found in figures.values())
    figures[f"{methods[0]}/5/0"]["error"] = 0.5
    (tmp_path / "f.json").write_text(json.dumps(figures))
    capsys.readouterr()
    pretrained.main([*call, "--draws", "1", "--methods", *methods])
    assert "HOG + SVM                               5  50.00 ± 0.00" in capsys.readouterr().out
