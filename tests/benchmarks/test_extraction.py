"""The benchmark of extraction: features that are to be equal are."""

import pytest

from benchmarks import extraction


def _lines(capsys):
    lines = capsys.readouterr().out.splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_equal_features_are_equal(capsys):
    pytest.importorskip("cv2")
    extraction.main(["--pictures", "3", "--side", "40", "--cores", "1", "--repeats", "1"])
    lines = _lines(capsys)
    assert [line[:2] for line in lines] == [list(c[:2]) for c in extraction.CONTENDERS]
    compared = {
        (line[0], line[1]): line[5] for line in lines if line[5] not in ("", "other features")
    }
    assert float(compared["Gabor filters", "OpenCV filter2D"]) < 1e-5
    assert float(compared["Gabor filters", "SciPy fftconvolve"]) < 1e-5
    # Points between pixels are rounded in other ways: a few patterns at ties differ.
    assert float(compared["local binary patterns", "scikit-image"]) < 0.02
    assert all(float(line[3]) > 0 for line in lines if (line[0], line[1]) in compared)
