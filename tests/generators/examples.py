"""Small unfitted instances of families for gray images of 8x8, and small networks of integers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from visionshare.codegen.onnx_graph import require_onnx
from visionshare.generators.anchors.family import KernelAnchors
from visionshare.generators.base import FeatureFamily
from visionshare.generators.fourier.family import RandomFourier
from visionshare.generators.gabor.family import GaborBank
from visionshare.generators.layers.channels.layer import Channels
from visionshare.generators.layers.depthwise.layer import Depthwise
from visionshare.generators.layers.deslant.layer import Deslant
from visionshare.generators.layers.family.layer import Features
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.layer import Layer
from visionshare.generators.layers.means.layer import Means
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.residual.layer import Residual
from visionshare.generators.layers.templates.layer import Templates
from visionshare.generators.layers.tuning import quantized
from visionshare.generators.layers.units.layer import Units
from visionshare.generators.lbp.family import LocalBinaryPatterns
from visionshare.generators.monomials.family import Monomials
from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.pixels.family import Pixels
from visionshare.generators.pretrained.family import PretrainedNetwork
from visionshare.generators.products.family import Products
from visionshare.generators.sources.family import SourceClassifiers
from visionshare.generators.sources.scores import LinearSource
from visionshare.generators.stumps.family import Stumps
from visionshare.generators.union.family import UnionOfFamilies


def _grid(n: int = 8, grid: int = 2) -> Templates:
    return Templates(n, 2, grid=grid, n_patches=900)


_FACTORS = ((0,), (1, 1), (2, 9, 4), (15, 15, 0, 3)) * 8


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that lasts as long as the process."""
    return tempfile.TemporaryDirectory(prefix="visionshare-network-")


def _tiny() -> FeatureFamily:
    """Return a network of two convolutions of random weights."""
    onnx = require_onnx()
    helper = onnx.helper
    rng = np.random.default_rng(0)
    nodes, constants = [], []
    for name, below, shape in (("low", "images", (3, 1, 3, 3)), ("high", "low.up", (5, 3, 3, 3))):
        weights = rng.normal(size=shape).astype(np.float32)
        constants.append(onnx.numpy_helper.from_array(weights, f"{name}.weight"))
        nodes.append(helper.make_node("Conv", [below, f"{name}.weight"], [name]))
        nodes.append(helper.make_node("Relu", [name], [f"{name}.up"]))
    kind = onnx.TensorProto.FLOAT
    given = helper.make_tensor_value_info("images", kind, ["n", 1, 8, 8])
    made = helper.make_tensor_value_info("high.up", kind, ["n", 5, 4, 4])
    graph = helper.make_graph(nodes, "tiny", [given], [made], constants)
    opset = helper.make_opsetid("", 13)
    path = Path(_folder().name, "tiny.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), str(path))
    return PretrainedNetwork(path, ["low.up", "high.up"], 8, [127.0], [128.0])


def _source(family: FeatureFamily, name: str, n_features: int = 25, k: int = 4) -> LinearSource:
    """Return a predictor of random weights: sources come fitted, so their images are made up."""
    rng = np.random.default_rng(7)
    fitted = family.fit(rng.integers(0, 256, (60, 8, 8), np.uint8))
    chosen = fitted.take(rng.permutation(fitted.n_features_)[:n_features])
    weights = rng.normal(size=(k, chosen.n_features_)).astype(np.float32)
    classes = [f"class {c}" for c in range(k)]
    return LinearSource(chosen, weights, rng.normal(size=k).astype(np.float32), name, classes)


def _patches_and_stumps() -> SourceClassifiers:
    patches = _source(PatchTemplates(3, 10, 2, (2.0,), n_patches=2000), "patches")
    return SourceClassifiers([patches, _source(Stumps(3), "stumps")])


_EXAMPLES: dict[str, dict[str, Callable[[], FeatureFamily]]] = {
    "anchors": {
        "anchors": lambda: KernelAnchors(n_anchors=5, n_radii=3),
        "anchors-pca": lambda: KernelAnchors(n_anchors=5, n_radii=3, n_components=6),
        "anchors-tapered": lambda: KernelAnchors("tapered", n_anchors=5, n_radii=3, n_components=6),
        "gaussian": lambda: KernelAnchors("gaussian", n_anchors=20, n_radii=3),
    },
    "fourier": {
        "fourier": lambda: RandomFourier(30, bandwidths=(4.0, 8.0)),
    },
    "gabor": {
        "gabor": lambda: GaborBank(30, sigmas=(0.5, 2.0), phases=True, zero_mean=True),
        "gabor-inside": lambda: GaborBank(30, sigmas=(0.5, 1.0), border="inside", pooling="max"),
        "gabor-at": lambda: GaborBank(20, pooling="mean", positions=((0, 7), (1, 2, 6))),
    },
    "lbp": {
        "lbp": LocalBinaryPatterns,
        "lbp-uniform": lambda: LocalBinaryPatterns("uniform", radius=1.5, points=6, grid=1),
    },
    "network": {
        "network": lambda: Network([_grid(12, 3)]),
        "network-of-few": lambda: Network(
            [Templates(3, 3, pool=2, padding=1, n_patches=900), _grid()]
        ),
        "network-of-many": lambda: Network(
            [
                Templates(11, 2, n_patches=900),
                Templates(9, 3, padding=1, pool=3, n_patches=900),
                _grid(),
            ]
        ),
        "network-deslanted": lambda: Network([Deslant(), Templates(4, 3, n_patches=900), _grid()]),
        "network-of-channels": lambda: Network(
            [Channels(("gray", "orientations"), 4, pool=2), _grid()]
        ),
        "network-normalized": lambda: Network(
            [
                Channels(("orientations", "gray", "magnitude"), 3, normalization="local", window=5),
                Features(Pixels()),
            ]
        ),
        "network-depthwise": lambda: Network(
            [
                Templates(3, 2, padding=1, n_patches=900),
                Depthwise(2, 3, padding=1, pool=2, n_patches=400),
                Depthwise(3, 2, grid=2, n_patches=400),
            ]
        ),
        "network-residual": lambda: Network(
            [Templates(5, 2, n_patches=900), Residual(3, n_patches=900), Residual(1), _grid()]
        ),
        "network-strided": lambda: Network(
            [
                Templates(5, 3, padding=1, stride=2, n_patches=900),
                Depthwise(2, 3, stride=2, n_patches=400),
                Means(),
            ]
        ),
        "network-of-units": lambda: Network([Deslant(), _grid(), Units(20)]),
        "network-squared": lambda: Network(
            [Features(PatchTemplates(3, 12, 2, (2.0,), n_patches=900)), Units(15, "square")]
        ),
    },
    "monomials": {
        "monomials": lambda: Monomials(RandomFourier(8, bandwidths=(6.0,)), _FACTORS),
    },
    "patches": {
        "patches": lambda: PatchTemplates(3, 40, 3, (2.0, 3.0), n_patches=3000),
        "patches-wide": lambda: PatchTemplates(
            5, 30, 2, (20.0,), cut=0.1, padding=5, n_patches=3000
        ),
    },
    "pixels": {"pixels": Pixels},
    "pretrained": {"pretrained": _tiny},
    "products": {"products": Products},
    "sources": {"sources": _patches_and_stumps},
    "stumps": {"stumps": lambda: Stumps(3)},
    "union": {
        "union": lambda: UnionOfFamilies(
            [PatchTemplates(3, 10, 2, (2.0,), n_patches=2000), Stumps(1), RandomFourier(5)]
        ),
    },
}


def family_examples(name: str) -> dict[str, Callable[[], FeatureFamily]]:
    """Return the examples of a family by name; none of a family of another package."""
    return _EXAMPLES.get(name, {})


def _integers(bits: int | str, *layers: Layer) -> Callable[[np.ndarray], Network]:
    def made(images: np.ndarray) -> Network:
        return quantized(Network(list(layers)).fit(images), images, Bits(bits, bits))

    return made


#: Small networks of integers, made of images of bytes.
INTEGERS: dict[str, Callable[[np.ndarray], Network]] = {
    "ternary": _integers("ternary", Templates(6, 2, grid=3, padding=1, n_patches=900)),
    "maps": _integers(
        8,
        Deslant(),
        Templates(5, 2, n_patches=900),
        Templates(4, 3, padding=1, n_patches=900),
        _grid(7),
    ),
    # The C of these two has loops of its own for pairs of positions: its tables are no tiny ones.
    "two-bits": _integers(2, Templates(9, 3, pool=2, padding=1, n_patches=900), _grid(100)),
    "units": _integers(8, Deslant(), Templates(4, 3, pool=2, n_patches=900), _grid(7), Units(40)),
    "depthwise": _integers(
        4,
        Templates(3, 2, n_patches=900),
        Depthwise(2, 3, padding=1, pool=2, n_patches=400),
        Depthwise(1, 3, padding=1, n_patches=400),
        _grid(7),
    ),
    "residual": _integers(
        8,
        Deslant(),
        Templates(4, 2, n_patches=900),
        Residual(3, n_patches=900),
        Depthwise(1, 3, padding=1, n_patches=400),
        Residual(3, n_patches=900),
        _grid(7),
        Units(9),
    ),
    "strided": _integers(4, Templates(5, 3, padding=1, stride=2, n_patches=900), _grid(7)),
    "means": _integers(
        4,
        Templates(5, 2, stride=2, n_patches=900),
        Depthwise(2, 2, stride=2, n_patches=400),
        Means(),
        Units(9),
    ),
    "squares": _integers(8, _grid(7), Units(9, "square")),
}
