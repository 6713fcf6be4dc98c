"""The page of extraction is made of the benchmarks' figures."""

import json

from scripts.reproduce import extraction
from scripts.reproduce.results import RESULTS, kept_runs


def _line(library, cores, milliseconds, difference=None, remark=""):
    return {
        "features": "patterns", "library": library, "side": 112, "cores": cores, "rate": 1234.4,
        "milliseconds": milliseconds, "megabytes": 80.2, "difference": difference, "remark": remark,
    }  # fmt: skip


def _campaign(equal):
    return {"rows": 9000, "seconds": 3.0, "rate": 3000.0, "megabytes": 99.7, "kills": 2,
            "equal": equal}  # fmt: skip


def test_the_page_of_extraction(tmp_path):
    lines = [
        _line("visionshare", 1, 0.4, 0.0), _line("visionshare", 2, 0.4, 0.0),
        _line("peer", 1, 1.6, 1e-3), _line("other", 1, 0.8),
        _line("none", 1, 0.0, remark="not installed"),
    ]  # fmt: skip
    found = {"beside": lines, "pictures": {"9 pictures": _campaign(True)},
             "scans": {"1 scans": _campaign(False)}}  # fmt: skip
    extraction.write(tmp_path, found)
    text = (tmp_path / "extraction.md").read_text(encoding="utf-8")
    assert "| patterns, 112 | visionshare | 0.4 |  | 80 |  |" in text
    assert "| patterns, 112 | peer | 1.6 | 4.0 × | 80 | 1e-03 |" in text
    assert "| patterns, 112 | other | 0.8 | 2.0 × | 80 | other features |" in text
    assert "| patterns, 112 | none | not installed |  |  |  |" in text
    assert "| patterns | 112 | 1234 | 1234 |" in text
    assert "| 9 pictures | 9,000 | 3000 | 100 | 2 | yes |" in text
    assert "| 1 scans | 9,000 | 3000 | 100 | 2 | NO |" in text
    raw = json.loads((tmp_path / "extraction.json").read_text(encoding="utf-8"))["runs"]
    assert raw == found


def test_the_figures_on_the_page_are_those_of_its_runs():
    found = kept_runs(RESULTS, "extraction")
    text = (RESULTS / "extraction.md").read_text(encoding="utf-8")
    for part in (
        extraction.beside(found["beside"]), extraction.clock(found["beside"]),
        extraction.campaign(found["pictures"], found["scans"]),
    ):  # fmt: skip
        assert part in text
