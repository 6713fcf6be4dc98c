"""No figure of a core grows unseen.

A change that makes one grow on purpose writes the new figure into ``edge_figures.json``; they are
those of ``visionshare export tests/archives/digits-v2.safetensors --target ... --json``, and of
structures of few bits, their weights drawn at random.
"""

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from visionshare import (
    CompactClassifier,
    Deslant,
    Network,
    Templates,
    load,
)
from visionshare.datasets import load_dataset
from visionshare.export import c_program
from visionshare.export.targets import device_sources, find_target, measure
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.tuning import quantized

STORED = json.loads((Path(__file__).parent / "edge_figures.json").read_text())
ARCHIVE = Path(__file__).parent.parent / "archives" / "digits-v2.safetensors"


# Maps of the second layer, templates of the last, bits of templates: those of the pipelines.
FEW_BITS = {"mnist-10k": (20, 56, 4), "mnist-4k": (10, 40, 2)}


@cache
def _of_few_bits(name):
    """Return a classifier of a pipeline's structure, and images of its size."""
    digits = load_dataset("digits", "train").images[:100]
    images = np.pad(digits.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))
    n_maps, n_templates, bits = FEW_BITS[name]
    layers = [
        Deslant(),
        Templates(4, 5, pool=2, n_patches=900),
        Templates(n_maps, 5, pool=2, n_patches=900),
        Templates(n_templates, 3, grid=2, n_patches=900),
    ]
    family = quantized(Network(layers).fit(images), images, Bits(bits, bits))
    weights = np.random.default_rng(0).integers(-7, 8, (10, family.n_features_))
    return CompactClassifier(family, weights, np.zeros(10), np.arange(10)), images[:5]


def _name(case):
    return f"{case.get('structure') or case['quantize']}-{case['target']}"


def _measured(case):
    """Return the figures of a case."""
    if "structure" in case:
        model, images = _of_few_bits(case["structure"])
        program = c_program(model)
    else:
        model, images = load(ARCHIVE), load_dataset("digits", "test").images[:20]
        program = c_program(model, quantize=case["quantize"])
    sources, optimize = device_sources(model, program), case.get("optimize", "speed")
    return measure(sources, find_target(case["target"]), images, optimize).figures


@pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools"))),
    reason="without the packages of the extra edge",
)
@pytest.mark.parametrize("case", STORED["figures"], ids=_name)
def test_no_figure_grows(case):
    figures = _measured(case)
    # Compilers differ a little from version to version.
    limits = {name: case[name] * (1 + STORED["tolerance"]) for name in STORED["kept"]}
    grown = {
        name: getattr(figures, name) for name in limits if getattr(figures, name) > limits[name]
    }
    assert not grown, f"{grown}, stored were {case}"
    # A figure that fell far should be stored too, or it may grow again unseen.
    fallen = [name for name in STORED["kept"] if getattr(figures, name) < 0.7 * case[name]]
    assert not fallen, f"{fallen} of {figures}, stored were {case}"
