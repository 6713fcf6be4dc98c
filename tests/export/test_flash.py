"""Flash of whole-number classifiers: estimates hold what the compiler makes."""

from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest

from visionshare import CompactClassifier, Deslant, Network, Pixels, Templates, Units
from visionshare.errors import InputError
from visionshare.export.targets import flash, flash_bytes
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.tuning import quantized

needs_zig = pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "elftools"))), reason="without the extra edge"
)
IMAGES = np.random.default_rng(0).integers(0, 256, (60, 14, 13), np.uint8)


def _templates():
    return Templates(12, 3, grid=2, padding=2, n_patches=800)


def _maps():
    return Templates(4, 3, pool=2, n_patches=800)


def _classifier(family, bits, k=10):
    fitted = quantized(family.fit(IMAGES), IMAGES, bits)
    largest = {2: 3, 4: 7, 8: 127, "ternary": 1}[bits.weights]
    weights = np.random.default_rng(1).integers(-1, 2, (k, fitted.n_features_)) * largest
    names = np.array([f"{i}" for i in range(k)])
    return CompactClassifier(fitted, weights.astype(np.float32), np.arange(float(k)), names)


FAMILIES = {
    "one": lambda: Network([_templates()]),
    "two": lambda: Network([_maps(), _templates()]),
    "deslanted": lambda: Network([Deslant(), _maps(), _templates()]),
    "hidden": lambda: Network([_maps(), _templates(), Units(5)]),
    "squares": lambda: Network([_templates(), Units(5, "square")]),
}


# Every kind with one number of bits, every number of bits with and without a hidden layer.
CASES = [
    (kind, bits)
    if bits == Bits(4, 4) or kind in ("two", "hidden")
    else pytest.param(kind, bits, marks=pytest.mark.exhaustive)
    for kind, bits in product(FAMILIES, [Bits(4, 4), Bits(2, 4), Bits(8, 8), Bits("ternary", 2)])
]


@needs_zig
@pytest.mark.parametrize(("kind", "bits"), CASES)
def test_estimates_are_a_little_more_than_what_is_compiled(kind, bits, monkeypatch):
    model = _classifier(FAMILIES[kind](), bits)
    compiled = flash_bytes(model)
    monkeypatch.setattr(flash, "find_spec", lambda name: None)
    assert compiled <= flash_bytes(model) <= 1.1 * compiled + 700


def test_floats_have_no_such_flash():
    family = Pixels().fit(IMAGES)
    names = np.array(["a", "b"])
    with pytest.raises(InputError, match="whole numbers"):
        flash_bytes(CompactClassifier(family, np.ones((2, 182)), np.zeros(2), names))
