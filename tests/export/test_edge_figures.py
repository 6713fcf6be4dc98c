"""No figure of a core grows unseen.

A change that makes one grow on purpose writes the new figure into ``edge_figures.json``; they are
those of ``visionshare export tests/archives/digits-v2.safetensors --target ... --json``.
"""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from visionshare import load
from visionshare.datasets import load_dataset
from visionshare.export import c_program
from visionshare.export.targets import device_sources, find_target, measure

STORED = json.loads((Path(__file__).parent / "edge_figures.json").read_text())
ARCHIVE = Path(__file__).parent.parent / "archives" / "digits-v2.safetensors"


@pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools"))),
    reason="without the packages of the extra edge",
)
@pytest.mark.parametrize("case", STORED["figures"], ids=lambda c: f"{c['quantize']}-{c['target']}")
def test_no_figure_grows(case):
    model = load(ARCHIVE)
    program = c_program(model, quantize=case["quantize"])
    images = load_dataset("digits", "test").images[:20]
    figures = measure(device_sources(model, program), find_target(case["target"]), images).figures
    # Compilers differ a little from version to version.
    limits = {name: case[name] * (1 + STORED["tolerance"]) for name in STORED["kept"]}
    grown = {
        name: getattr(figures, name) for name in limits if getattr(figures, name) > limits[name]
    }
    assert not grown, f"{grown}, stored were {case}"
    # A figure that fell far should be stored too, or it may grow again unseen.
    fallen = [name for name in STORED["kept"] if getattr(figures, name) < 0.7 * case[name]]
    assert not fallen, f"{fallen} of {figures}, stored were {case}"
