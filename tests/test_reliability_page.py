"""The page of reliability is made of counts and of the service's figures."""

import json

from scripts.attack.results import Ending, Result
from scripts.reproduce import reliability


def _spread(most, failed=0):
    return {"median": 1.0, "high": 2.0, "most": most, "slow": 0, "failed": failed, "asked": 9}


def _found():
    machine = {"load before and after": [0.5, 0.6], "cores": 2, "python": "3.11", "granian": "1.2"}
    attacked = [
        {
            "attack": name, "health": _spread(health), "predict": _spread(30.0, failed=1),
            "echo": _spread(3.0), "late": _spread(1.0), "peak": 280.0, "resident": 270.0,
        }
        for name, health in (("none", 99.0), ("idle", 7.5), ("bodies", 4.0))
    ]  # fmt: skip
    speeds = [
        {"request": f"/{what}, PNG", "connections": n, "per_second": 1000.0 * n,
         "median": 1.0, "high": 2.0}
        for n in (1, 8)
        for what in ("echo", "predict")
    ]  # fmt: skip
    sizes = [
        {"requests": n, "resident": 200.0 + n, "anonymous": 100.0, "peak": 300.0,
         "answered": {"200": n}, "seconds": 1.0}
        for n in (0, 50)
    ]  # fmt: skip
    return {
        "attacks": {"attacks": attacked, "machine": machine},
        "speed": {"speed": speeds, "machine": machine},
        "memory": {"memory": sizes, "machine": machine},
    }


def test_the_page_of_reliability(tmp_path):
    kills, images = Result(), Result()
    kills.add(Ending("survived", part="train", point=2, points=3))
    kills.add(Ending("lost", "shard left behind", part="train", point=1, points=3))
    images.add(Ending("survived", part="image"))
    reliability.write(tmp_path, {"kills": kills, "images": images}, _found())
    text = (tmp_path / "reliability.md").read_text(encoding="utf-8")
    assert "2 of 3 tries survived" in text
    assert "| kills, at file operations of every command | 2 | 1 | 1 | 0 | 0 |" in text
    # Without an attack the service is not under one.
    assert "7.5 ms (3 ms)" in text
    assert "| 1,000 and 8,000 |" in text
    assert "| PNG | 8 | 8000.0 | 8000.0 | 2.0 |" in text
    assert "| memory before and after 50 requests (peak) | 200 and 250 MiB (300) |" in text
    assert "| idle | 1 / 7.5 | 1 / 30 | 1 | 280.0 |" in text
    raw = json.loads((tmp_path / "reliability.json").read_text(encoding="utf-8"))["runs"]
    assert raw["attacks"]["kills"]["faults"] == ["1 train: shard left behind"]


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path):
    first = reliability.campaign("images", 2, tmp_path)
    assert (first.tries, first.survived) == (2, 2)
    assert reliability.campaign("images", 3, tmp_path).tries == 3


def test_the_service_is_measured_again_and_the_counts_stay(tmp_path, monkeypatch):
    images = Result()
    images.add(Ending("survived", part="image"))
    reliability.write(tmp_path, {"images": images}, _found())
    found = _found()
    found["attacks"]["attacks"][1]["health"]["most"] = 8.5
    for what, figures in found.items():
        (tmp_path / f"service-{what}.json").write_text(json.dumps(figures), encoding="utf-8")
    arguments = [
        "reliability",
        "--only",
        "service",
        "--runs",
        str(tmp_path),
        "--out",
        str(tmp_path),
    ]
    monkeypatch.setattr("sys.argv", arguments)
    reliability.main()
    text = (tmp_path / "reliability.md").read_text(encoding="utf-8")
    assert "1 of 1 tries survived" in text
    assert "8.5 ms (3 ms)" in text
