"""The benchmark of extraction: features that are to be equal are."""

import json

import pytest

from benchmarks import extraction


def test_equal_features_are_equal(tmp_path, capsys):
    pytest.importorskip("cv2")
    out = tmp_path / "lines.json"
    options = ["--pictures", "3", "--cores", "1", "--repeats", "1", "--json", str(out)]
    extraction.main([*options, "--sides", "40"])
    lines = json.loads(out.read_text())
    found = [(line["features"], line["library"]) for line in lines]
    assert found == [(c.features, c.library) for c in extraction.CONTENDERS]
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(lines)
    for line in lines:
        if line["remark"]:
            assert line["remark"] == "not installed"
        else:
            assert line["rate"] > 0
            assert line["megabytes"] > 0
    apart = {line["library"]: line["difference"] for line in lines}
    for library in ("OpenCV `filter2D`", "SciPy `fftconvolve`"):
        assert apart[library] < 1e-5
    if apart["scikit-image"] is not None:
        # Points between pixels are rounded in other ways: a few patterns at ties differ.
        assert apart["scikit-image"] < 0.02
        assert apart["scikit-image `regionprops_table`"] < 0.02
        # It cuts filters at a smaller box.
        assert apart["scikit-image `gabor`"] < 0.05
