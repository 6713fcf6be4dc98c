"""The benchmark of extraction: features that are to be equal are."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image

from benchmarks import extraction

#: What a difference may be, relative to the largest value. Points between pixels are rounded in
#: other ways: a few patterns at ties differ. scikit-image cuts Gabor filters at a smaller box.
ALLOWED = {"scikit-image": 0.02, "scikit-image `gabor`": 0.05}


def test_equal_features_are_equal(tmp_path):
    pytest.importorskip("cv2")
    (tmp_path / "pictures").mkdir()
    rng = np.random.default_rng(0)
    for number in range(2):
        picture = Image.fromarray(rng.integers(0, 256, (40, 40), np.uint8))
        picture.save(tmp_path / "pictures" / f"{number}.png")
    paths = sorted(map(str, (tmp_path / "pictures").iterdir()))
    extraction.make_masks(tmp_path / "masks", paths)
    work = extraction.Work(paths, str(tmp_path / "masks"), 1)
    ours = {}
    for contender in extraction.CONTENDERS:
        if find_spec(contender.module) is None or "500" in contender.features:
            continue
        found = contender.extract(work)
        expected = ours.setdefault(contender.features, found)
        if contender.is_equal:
            apart = np.abs(found - expected).max() / np.abs(expected).max()
            allowed = max([1e-5, *(v for k, v in ALLOWED.items() if k in contender.library)])
            assert apart < allowed, contender.library


def test_contenders_run_in_processes_of_their_own(tmp_path, capsys):
    pytest.importorskip("cv2")
    out = tmp_path / "lines.json"
    options = ["--pictures", "2", "--cores", "1", "--repeats", "1", "--sides", "40"]
    extraction.main([*options, "--features", "objects", "--json", str(out)])
    ours, other = json.loads(out.read_text())
    assert ours["library"] == "visionshare"
    assert min(ours["rate"], ours["milliseconds"], ours["megabytes"]) > 0
    assert ours["difference"] == 0
    assert other["remark"] == "not installed" or other["difference"] < 0.02
    assert len(capsys.readouterr().out.splitlines()) == 4
