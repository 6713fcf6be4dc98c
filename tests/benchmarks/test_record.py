"""What the peers' measurements are kept in, and the picture that is drawn of them."""

import json

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.peers.findings import better_peers, findings, most_accurate_peers
from benchmarks.peers.names import Name, place_names
from benchmarks.peers.neighbors import NearestNeighbors
from benchmarks.peers.page import row
from benchmarks.peers.peer import Trained
from benchmarks.peers.plot import PANELS, draw, points, short
from benchmarks.peers.record import Entry, Record, Run
from benchmarks.peers.timing import Times
from scripts.reproduce.results import commit
from visionshare.errors import InputError

CONDITIONS = {"set": "digits", "seconds": 2.0, "deformations": {"alpha": 1.0}}


def _run(errors, macs=100, n_bytes=10):
    return Run(errors, macs, "a cost", n_bytes, "settings", 1.5)


def test_what_is_kept_is_there_again(tmp_path):
    file = tmp_path / "folder" / "record.json"
    record = Record(file, CONDITIONS)
    assert not record.has("a", 0)
    assert record.choice("a") is None
    record.keep_choice("group", {"rate": np.float64(0.5), "n": np.int64(3)}, 9.0)
    assert not record.entries()
    record.keep_run("a", "group", 0, _run(3))
    record.keep_run("a", "group", 1, Run(4, None, "b", 1, "s", None, "digest"))
    record.keep_times({"a": Times(1.0, 2.0)}, "a processor")
    again = Record(file, CONDITIONS)
    assert again.choice("group") == {"rate": 0.5, "n": 3}
    assert again.has("a", 0)
    assert again.has("a", 1, "digest")
    assert not again.has("a", 1, "another")
    (entry,) = again.entries()
    assert entry == record.entries()[0]
    assert (entry.name, entry.group, entry.tuning) == ("a", "group", 9.0)
    assert entry.times == Times(1.0, 2.0)
    assert entry.timed_on == "a processor"
    assert entry.runs[0] == _run(3)


def test_a_run_says_which_commit_it_is_of():
    trained = Trained(lambda images: images, 100, "a cost", 10, "settings", 1.5)
    assert Run.of(trained, 4).commit == commit() != ""


def test_models_are_kept_beside_it(tmp_path):
    record, rng = Record(tmp_path / "record.json", CONDITIONS), np.random.default_rng(0)
    model = NearestNeighbors(rng.random((9, 4), np.float32), np.arange(9) % 3, 1)
    record.keep_model("3 neighbors, a/b", model)
    images = rng.integers(0, 256, (5, 2, 2), np.uint8)
    np.testing.assert_array_equal(record.model("3 neighbors, a/b")(images), model(images))
    assert record.model("another") is None


def test_other_conditions_are_refused(tmp_path):
    file = tmp_path / "record.json"
    Record(file, CONDITIONS).keep_run("a", "a", 0, _run(1))
    with pytest.raises(InputError, match=r"seconds 2\.0.*another file for seconds 3\.0"):
        Record(file, CONDITIONS | {"seconds": 3.0})
    with pytest.raises(InputError, match="threads"):
        Record(file, CONDITIONS | {"threads": 1})


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"version": 0})])
def test_what_is_no_record_is_refused(tmp_path, content):
    (tmp_path / "record.json").write_text(content)
    with pytest.raises(InputError, match="json: got"):
        Record(tmp_path / "record.json", CONDITIONS)


def test_the_picture_has_a_point_of_each_cost(tmp_path):
    record = Record(tmp_path / "record.json", CONDITIONS)
    record.keep_run("large", "networks", 0, _run(2, 500, 40))
    record.keep_run("small", "networks", 0, _run(10, 50, 4))
    record.keep_run("small", "networks", 1, _run(20, 50, 4))
    record.keep_run("trees", "trees", 0, _run(5, None))
    record.keep_run("visionshare, mine, C", "visionshare, C", 0, _run(1))
    record.keep_times({"small": Times(3.0, 1.0)}, "a processor")
    panels = [points(record.entries(), cost, 200) for cost in PANELS.values()]
    macs, times, size = panels
    assert [(p.name, p.cost, p.error) for p in macs["networks"]] == [
        ("small", 50, 7.5),
        ("large", 500, 1.0),
    ]
    # Of two errors, 5 and 10 percent, as a sample: the difference over the root of two.
    assert macs["networks"][0].deviation == pytest.approx(5 / 2**0.5)
    assert "trees" not in macs
    assert list(times) == ["networks"]
    assert [p.cost for p in size["trees"]] == [10]
    for name in ("a.svg", "b.svg"):
        draw(record.entries(), 200, tmp_path / name)
    picture = (tmp_path / "a.svg").read_bytes()
    # Text is drawn as paths, and kept in comments.
    said = picture.decode()
    for text in ("mine", "trees", "networks", *PANELS):
        assert f"<!-- {text} -->" in said
    assert picture == (tmp_path / "b.svg").read_bytes()
    assert picture.count(b"<svg") == 1


def test_numbers_on_axes_are_short():
    assert [short(x) for x in (0.5, 30, 3e3, 1e5, 2e6, 1e9)] == [
        "0.5", "30", "3 k", "100 k", "2 M", "1 G",
    ]  # fmt: skip


def test_names_cover_neither_each_other_nor_points():
    figure = Figure(figsize=(6, 4))
    axis = figure.subplots()
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 90))
    axis.plot(x, y, "o", linestyle="none")
    names = [Name(f"name {i}", x[i], y[i], (0, 0, 0), i < 3) for i in range(90)]
    place_names(figure, {axis: [*names, names[0]]})
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = {text: text.get_window_extent(canvas.get_renderer()) for text in axis.texts}
    written = [text.get_text() for text in axis.texts]
    assert len(set(written)) == len(written)
    assert {"name 0", "name 1", "name 2"} < set(written)
    # Those that have no room are left out, most have some.
    assert 30 <= len(written) < 90
    optional = [box for text, box in boxes.items() if int(text.get_text().split()[1]) >= 3]
    centers = axis.transData.transform(np.column_stack([x, y]))
    for i, box in enumerate(optional):
        assert not any(box.overlaps(other) for other in optional[:i])
        assert not any(box.contains(*center) for center in centers)


def _compared(*rows):
    """Return entries of (name, group, errors of each seed, multiply-accumulates, µs)."""
    return [
        Entry(name, group, {i: _run(e, macs) for i, e in enumerate(errors)}, None, Times(us, us))
        for name, group, errors, macs, us in rows
    ]


OURS = [
    ("visionshare, small, C", "visionshare, C", [5, 7], 100, 2.0),
    ("visionshare, large, C", "visionshare, C", [3, 3], 500, 9.0),
]


def test_peers_better_in_error_and_cost_are_named():
    peers = [("net", "net", [4, 6], 400, 1.0), ("tree", "tree", [9, 9], None, 0.5)]
    entries = _compared(*OURS, *peers)
    assert better_peers(entries, "multiply-accumulates per image", 1000) == []
    ((name, better),) = better_peers(entries, "µs of one image", 1000)
    assert (name, better) == ("visionshare, small, C", ["net"])
    assert most_accurate_peers(entries, 1000) == []
    text = findings(entries, 1000)
    assert "better than one of ours in both error and multiply-accumulates." in text
    assert "Better in both error and µs of one image: `net` than `small, C`." in text
    assert "No other classifier has a lower error than the best of ours." in text


def test_times_of_two_processors_are_not_compared():
    entries = _compared(*OURS, ("net", "net", [4, 6], 400, 1.0))
    elsewhere = [*entries[:2], entries[2]._replace(timed_on="another")]
    assert better_peers(entries, "µs of one image", 1000)
    assert better_peers(elsewhere, "µs of one image", 1000) == []
    assert row(entries[2], 1000, "")[4].startswith("1.0 ")
    assert row(elsewhere[2], 1000, "")[4].startswith("1.0 \\*")


def test_peers_of_fewer_errors_than_all_of_ours_are_named():
    entries = _compared(*OURS, ("net", "net", [2], 400, 20.0), ("forest", "forest", [1], 900, 1.0))
    assert most_accurate_peers(entries, 1000) == ["forest", "net"]
    text = findings(entries, 1000)
    assert "both error and multiply-accumulates: `net` than `large, C`." in text
    assert "Lower error than all of ours: `forest`, `net`." in text
    assert findings(entries[2:], 1000) == ""
