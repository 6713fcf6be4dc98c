"""The harness of benchmarks/edge on digits: ours, trees, and C that somebody brings."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.edge.agreement import agreement
from benchmarks.edge.brought import brought
from benchmarks.edge.native import native_labels
from benchmarks.edge.rows import measured, of_seeds
from benchmarks.edge.running import main
from tests.generators.examples import INTEGERS
from visionshare import CompactClassifier, load
from visionshare.datasets import load_images
from visionshare.errors import InputError

ARCHIVE = Path(__file__).parents[1] / "archives" / "digits-v2.safetensors"
needs_tools = pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools"))) or shutil.which("cc") is None,
    reason="without a compiler or the packages of the extra edge",
)
# The column with most ink: a classifier of which everything is known.
PEER = """#include "peer.h"
int peer_classify(const uint8_t *image, struct peer_work *work, int32_t *scores)
{
    int i, best = 0;
    for (i = 0; i < 10; i++) scores[i] = 0;
    for (i = 0; i < 16; i++) {
        work->sums[i % 4] = image[i];
        scores[i % 4] += image[i];
    }
    for (i = 1; i < 10; i++) best = scores[i] > scores[best] ? i : best;
    return best;
}
"""
HEADER = """#include <stdint.h>
struct peer_work { int32_t sums[4]; };
int peer_classify(const uint8_t *image, struct peer_work *work, int32_t *scores);
"""
DESCRIBED = 'name = "columns"\nprefix = "peer"\nscore = "int32"\nheight = 4\nwidth = 4\n'


@pytest.fixture
def peer(tmp_path):
    folder = tmp_path / "peer"
    folder.mkdir()
    for name, text in (("peer.h", HEADER), ("peer.c", PEER), ("peer.toml", DESCRIBED)):
        (folder / name).write_text(text)
    return folder


@needs_tools
def test_brought_c(peer, tmp_path):
    contender = brought(peer, "digits", tmp_path)
    digits = load_images("digits", "test")
    assert contender.images.shape == (len(digits.images), 4, 4)
    expected = contender.images.astype(int).sum(axis=1).argmax(axis=1)
    assert native_labels(contender.sources, contender.images).tolist() == expected.tolist()
    row = measured(contender, ["cortex-m0plus"], "size", 10)
    assert sum(row["errors"]) == pytest.approx(100 * np.mean(expected != digits.labels))
    figures = row["cores"]["cortex-m0plus"]
    assert figures["ram"] == 16
    # The preparation of a frame before it takes its own memory, and a pass over 76,800 pixels.
    assert figures["prepared_flash"] > figures["flash"] + 2000
    assert figures["prepared_ram"] > 9216
    assert figures["prepared_instructions"] > 10 * 76_800
    (peer / "peer.toml").write_text('name = "columns"\n')
    with pytest.raises(InputError, match="height, prefix"):
        brought(peer, "digits", tmp_path)
    (peer / "peer.toml").unlink()
    with pytest.raises(InputError, match=r"peer\.toml"):
        brought(peer, "digits", tmp_path)


@needs_tools
@pytest.mark.skipif(find_spec("emlearn") is None, reason="emlearn is not installed")
def test_trees():
    from benchmarks.edge.emlearn_trees import learn_trees

    contender = learn_trees("digits", Path(), 5, 30)
    row = measured(contender, ["cortex-m4"], "speed", 10)
    assert 1 < row["errors"][0] < 40
    assert row["cores"]["cortex-m4"]["ram"] == 128


@needs_tools
def test_the_command(peer, tmp_path, capsys):
    file = tmp_path / "runs" / "digits.json"
    main(
        ["--data", str(tmp_path), "--set", "digits", "--ours", str(ARCHIVE), "--peer-c", str(peer),
         "--no-trees", "--targets", "cortex-m4", "--count", "5", "--json", str(file),
         "--out", str(tmp_path)]
    )  # fmt: skip
    rows = json.loads(file.read_text())["rows"]
    assert [row["name"] for row in rows] == ["archives, int8", "columns"]
    model, digits = load(ARCHIVE), load_images("digits", "test")
    truth = np.array(digits.classes, str)[digits.labels]
    error = 100 * np.mean(model.predict(digits.images).astype(str) != truth)
    assert abs(rows[0]["errors"][0] - error) < 1
    page = (tmp_path / "edge.md").read_text()
    assert "## digits" in page
    assert f"{rows[1]['cores']['cortex-m4']['instructions']:,}" in page


@needs_tools
def test_scores_are_compared_everywhere(tmp_path):
    pytest.importorskip("onnxruntime")
    train, test = (load_images("digits", split) for split in ("train", "test"))
    family, rng = INTEGERS["ternary"](train.images), np.random.default_rng(0)
    weights = rng.integers(-7, 8, (10, family.n_features_))
    model = CompactClassifier(family, weights, np.arange(10), np.array(train.classes))
    file = tmp_path / "few" / "classifier.safetensors"
    file.parent.mkdir()
    model.save(file)
    found = agreement(file, "digits", tmp_path, ["cortex-m0plus"], 5)
    ways = found["ways"]
    assert found["name"] == "few"
    assert [way["images"] for way in ways] == [len(test.images)] * 4 + [5]
    assert all(way["labels"] == way["scores"] == 0 for way in ways)
    with pytest.raises(InputError, match="whole numbers"):
        agreement(ARCHIVE, "digits", tmp_path, [], 5)


def test_seeds_share_a_row():
    cores = [{"wasm": {"target": "wasm", "flash": f, "instructions": 2 * f}} for f in (10, 13)]
    rows = [
        {"name": "a", "optimize": "-Os", "errors": [error], "images": 9, "macs": macs,
         "seconds": seconds, "memory": None, "cores": core}
        for error, macs, seconds, core in zip([0.5, 0.3], [4, 6], [2.0, None], cores, strict=True)
    ]  # fmt: skip
    other = {**rows[0], "optimize": "-O2"}
    both, alone = of_seeds([rows[0], other, rows[1]])
    assert alone == other
    assert (both["errors"], both["macs"], both["seconds"]) == ([0.5, 0.3], 5, 2.0)
    assert both["cores"] == {"wasm": {"target": "wasm", "flash": 13, "instructions": 23}}
