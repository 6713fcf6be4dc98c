"""A classifier as an ONNX model."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.codegen.c_text import check_identifier
from visionshare.codegen.onnx_graph import Graph, require_onnx
from visionshare.errors import InputError
from visionshare.export.onnx.preparation import PICTURE, add_preparation, check_prepares

__all__ = ["OPSET", "OnnxProgram", "onnx_program"]

OPSET = 18
IR_VERSION = 9
_PIXELS = ("uint8", "float32")
_PREPROCESSING = {
    "uint8": "raster of image_shape as the classifier takes it; a byte v stands for v / 255",
    "float32": "raster of image_shape as the classifier takes it, on the scale of its training",
}
_PREPARED = "none: the model takes a picture of any size, of bytes, and prepares it"


@dataclass(frozen=True)
class OnnxProgram:
    """The ONNX model of a classifier.

    Parameters
    ----------
    name : str
        Of its graph.
    pixel : {"uint8", "float32"}
        Type of an image's values.
    content : bytes
        The file.
    opset : int
        Version of the operators.
    prepares : bool
        Whether its input is one picture of any size, which it prepares.
    """

    name: str
    pixel: str
    content: bytes
    opset: int = OPSET
    prepares: bool = False


def onnx_program(
    classifier: CompactClassifier,
    name: str = "classifier",
    pixel: str | None = None,
    preparation: bool = False,
) -> OnnxProgram:
    """Return the ONNX model of a classifier: opset 18, IR version 9, any number of images.

    Its input is ``images`` (n, *image_shape). Its outputs are ``label`` (n,), the classes in their
    own type: texts, booleans, or numbers as wide as they are; ``probabilities`` (n, k), the softmax
    of scores / temperature; and ``scores`` (n, k), both float32. With its preparation, the input is
    one ``picture`` (height, width), or (height, width, 3) in color, bytes, of any size; the outputs
    are those of a single image, and ``image`` (1, *image_shape) is what the picture became.

    Parameters
    ----------
    classifier : CompactClassifier
    name : str, default "classifier"
        Of the graph.
    pixel : {"uint8", "float32"}, optional
        Type of an image's values; bytes when omitted, floats where examples are vectors.
    preparation : bool, default False
        Whether the model prepares pictures, as the classifier's preprocessing does, to the bit; of
        a preprocessing with ``arithmetic="whole"``.

    Raises
    ------
    InputError
        If an argument is out of range or the classifier cannot be written as ONNX.
    ExportError
        If the package onnx is not installed.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> len(onnx_program(model).content) < 2000  # doctest: +SKIP
    True
    """
    check_identifier("name", name)
    pixel = pixel or ("float32" if len(classifier.image_shape) == 1 else "uint8")
    if pixel not in _PIXELS:
        raise InputError("pixel", pixel, " or ".join(map(repr, _PIXELS)))
    if classifier.n_features == 0:
        raise InputError("classifier", "no features", "one feature or more")
    if preparation:
        check_prepares(classifier, pixel)
    graph, classes = Graph(pixel, classifier.image_shape), _classes(classifier)
    if preparation:
        graph.images = add_preparation(graph, classifier)
    _add_outputs(classifier, graph, classes)
    onnx_graph = _onnx_graph(classifier, name, graph, classes, preparation)
    content = _serialized(classifier, pixel, onnx_graph, preparation)
    return OnnxProgram(name, pixel, content, prepares=preparation)


def _onnx_graph(
    classifier: CompactClassifier, name: str, graph: Graph, classes: np.ndarray, prepares: bool
) -> object:
    """Return the graph with its input and outputs."""
    onnx = require_onnx()
    types, info = onnx.TensorProto, onnx.helper.make_tensor_value_info
    label = onnx.helper.np_dtype_to_tensor_dtype(classes.dtype)
    kind = types.UINT8 if graph.bytes else types.FLOAT
    many, k = 1 if prepares else "batch", len(classes)
    images = [many, *classifier.image_shape]
    color = [3] if classifier.picture_mode == "color" else []
    taken = (
        info(PICTURE, types.UINT8, ["height", "width", *color])
        if prepares
        else info(Graph.IMAGES, kind, images)
    )
    outputs = [
        info("label", label, [many]),
        info("probabilities", types.FLOAT, [many, k]),
        info("scores", types.FLOAT, [many, k]),
    ]
    if prepares:
        outputs.append(info(graph.images, types.UINT8, images))
    return onnx.helper.make_graph(graph.nodes, name, [taken], outputs, graph.constants)


def _classes(classifier: CompactClassifier) -> np.ndarray:
    """Return the classes as a constant of the graph: texts are objects."""
    classes = classifier.classes_
    if classes.dtype.kind not in "UO":
        return classes
    for text in classes.tolist():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError("classes", ascii(text), "texts that UTF-8 holds") from None
    return classes.astype(object)


def _add_outputs(classifier: CompactClassifier, graph: Graph, classes: np.ndarray) -> None:
    """Add the nodes of features, scores, probabilities and labels."""
    with np.errstate(over="ignore"):
        temperature = np.float32(classifier.temperature)
    if not 0 < temperature < np.inf:
        raise InputError("temperature", classifier.temperature, "a number that a float32 holds")
    features = graph.add(classifier.family)
    weights, intercept = map(graph.constant, (classifier.weights, classifier.intercept))
    graph.node("Gemm", features, weights, intercept, name="scores", transB=1)
    scaled = graph.node("Div", "scores", graph.constant(temperature))
    graph.node("Softmax", scaled, name="probabilities", axis=1)
    best = graph.node("ArgMax", "scores", axis=1, keepdims=0)
    graph.node("Gather", graph.constant(classes), best, name="label", axis=0)


def _pictures(classifier: CompactClassifier) -> str:
    """Return how pictures become images: JSON of the steps, and the same in words."""
    if classifier.picture_size is None:
        return json.dumps(None)
    steps = classifier.preprocessing
    return json.dumps({**steps.to_values(), "steps": steps.describe(classifier.picture_mode)})


def _serialized(classifier: CompactClassifier, pixel: str, graph: object, prepares: bool) -> bytes:
    from visionshare import __version__

    onnx = require_onnx()
    model = onnx.helper.make_model(
        graph,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        producer_name="visionshare",
        producer_version=__version__,
    )
    properties = {
        "classes": json.dumps(classifier.classes_.tolist(), ensure_ascii=True),
        "image_shape": json.dumps(list(classifier.image_shape)),
        "pixel": pixel,
        "preprocessing": _PREPARED if prepares else _PREPROCESSING[pixel],
        "pictures": _pictures(classifier),
        "temperature": repr(classifier.temperature),
        "family": type(classifier.family).name,
        "features": str(classifier.n_features),
        "visionshare_version": __version__,
    }
    onnx.helper.set_model_props(model, properties)
    content: bytes = model.SerializeToString(deterministic=True)
    return content
