"""A classifier as an ONNX model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.answers import LabelRule, ValueRule
from visionshare.classifier import CompactClassifier
from visionshare.codegen.c_text import check_identifier
from visionshare.codegen.onnx_graph import Graph, require_onnx
from visionshare.errors import InputError
from visionshare.export.onnx.unknown import add_known

OPSET = 18
OLDEST_OPSET = 13
IR_VERSION = 9
# Of older operators: what runtimes of their time read.
_OLD_IR_VERSION = 7
_PREPROCESSING = {
    "uint8": "raster of image_shape as the classifier takes it; a byte v stands for v / 255",
    "float32": "raster of image_shape as the classifier takes it, on the scale of its training",
}


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

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> from visionshare.export import onnx_program
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> onnx_program(model).pixel
    'uint8'
    """

    name: str
    pixel: str
    content: bytes
    opset: int = OPSET


def onnx_program(
    classifier: CompactClassifier,
    name: str = "classifier",
    pixel: str | None = None,
    labels: str = "classes",
    opset: int = OPSET,
) -> OnnxProgram:
    """Return the ONNX model of a classifier: opset 18, IR version 9, any number of images.

    Its input is ``images`` (n, *image_shape). Its outputs are ``label`` (n,), the classes in their
    own type: texts, booleans, or numbers as wide as they are; ``probabilities`` (n, k), the softmax
    of scores / temperature; and ``scores`` (n, k), both float32. Of a classifier that refuses
    pictures of no class, ``label`` may be its label for these, and ``known`` (n,) is the share of
    known pictures that look as strange. One that says values has the output ``value`` (n,), and its
    classes are levels. One of several labels has the output ``has`` (n, k), booleans, and
    ``probabilities`` are of each label alone.

    Parameters
    ----------
    classifier : CompactClassifier
    name : str, default "classifier"
        Of the graph.
    pixel : {"uint8", "float32"}, optional
        Type of an image's values; bytes when omitted, floats where examples are vectors.
    labels : {"classes", "indices"}, default "classes"
        What ``label`` holds. Runtimes without texts, such as OpenCV, take ``"indices"``: numbers of
        the classes from 0, in the order of ``probabilities``.
    opset : int, default 18
        Version of the operators, from 13, for older runtimes.

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
    if pixel not in _PREPROCESSING:
        raise InputError("pixel", pixel, " or ".join(map(repr, _PREPROCESSING)))
    if labels not in ("classes", "indices"):
        raise InputError("labels", labels, "'classes' or 'indices'")
    if opset not in range(OLDEST_OPSET, OPSET + 1):
        raise InputError("opset", opset, f"a number from {OLDEST_OPSET} to {OPSET}")
    if classifier.n_features == 0:
        raise InputError("classifier", "no features", "one feature or more")
    graph = Graph(pixel, classifier.image_shape)
    classes = _classes(classifier) if labels == "classes" else np.arange(len(classifier.classes_))
    _add_outputs(classifier, graph, classes)
    if opset < OPSET:
        _use_old_operators(graph)
    return OnnxProgram(name, pixel, _serialized(classifier, name, graph, classes, opset), opset)


def _use_old_operators(graph: Graph) -> None:
    """Make axes attributes, as they were before opset 18; of sums before 13."""
    onnx = require_onnx()
    arrays = {constant.name: constant for constant in graph.constants}
    for node in graph.nodes:
        if (
            node.op_type.startswith("Reduce")
            and node.op_type != "ReduceSum"
            and len(node.input) > 1
        ):
            axes = onnx.numpy_helper.to_array(arrays[node.input.pop()]).ravel().tolist()
            node.attribute.append(onnx.helper.make_attribute("axes", axes))


def _classes(classifier: CompactClassifier) -> np.ndarray:
    """Return the classes as a constant of the graph: texts are objects."""
    classes = classifier.classes_
    if classifier.unknown is not None:
        classes = classifier.unknown.names(classes)
    if classes.dtype.kind not in "UO":
        return classes
    for text in classes.tolist():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError("classes", ascii(text), "texts that UTF-8 can encode") from None
    return classes.astype(object)


def _add_outputs(classifier: CompactClassifier, graph: Graph, classes: np.ndarray) -> None:
    """Add the nodes of features, scores, probabilities and labels."""
    with np.errstate(over="ignore"):
        temperature = np.float32(classifier.temperature)
    if not 0 < temperature < np.inf:
        raise InputError("temperature", classifier.temperature, "a number in the range of float32")
    features = graph.add(classifier.family)
    weights = graph.constant(classifier.weights)
    intercept = graph.constant(classifier.intercept)
    graph.node("Gemm", features, weights, intercept, name="scores", transB=1)
    scaled = graph.node("Div", "scores", graph.constant(temperature))
    if isinstance(classifier.answer, LabelRule):
        graph.node("Sigmoid", scaled, name="probabilities")
        least = graph.constant(np.array(classifier.answer.thresholds, np.float32))
        graph.node("Not", graph.node("Less", "probabilities", least), name="has")
    else:
        graph.node("Softmax", scaled, name="probabilities", axis=1)
    best = graph.node("ArgMax", "scores", axis=1, keepdims=0)
    if classifier.unknown is not None:
        refused = add_known(classifier, graph, features, scaled, best)
        number = graph.constant(np.int64(len(classifier.classes)))
        best = graph.node("Where", refused, number, best)
    graph.node("Gather", graph.constant(classes), best, name="label", axis=0)
    if isinstance(classifier.answer, ValueRule):
        _add_value(classifier.answer, graph)


def _add_value(rule: ValueRule, graph: Graph) -> None:
    """Add the output ``value`` (n,): the mean of levels, by their probabilities."""

    def constant(number: float) -> str:
        return graph.constant(np.float32(number))

    def mean(levels: np.ndarray, **named: str) -> str:
        return graph.node("MatMul", "probabilities", graph.constant(np.float32(levels)), **named)

    if rule.period is None:
        mean(rule.classes, name="value")
        return
    # The angle of a sine and a cosine, by the half of it: there is no operator of two arguments.
    angles = rule.classes * (2 * np.pi / rule.period)
    sine, cosine = mean(np.sin(angles)), mean(np.cos(angles))
    squares = [graph.node("Mul", part, part) for part in (sine, cosine)]
    length = graph.node("Sqrt", graph.node("Add", *squares))
    more = graph.node("Add", graph.node("Add", length, cosine), constant(1e-30))
    near = graph.node("Atan", graph.node("Div", sine, more))
    far = graph.node("Atan", graph.node("Div", graph.node("Sub", length, cosine), sine))
    half = graph.node("Where", graph.node("Less", cosine, constant(0)), far, near)
    value = graph.node("Mul", half, constant(rule.period / np.pi))
    later = graph.node("Add", value, constant(rule.period))
    graph.node("Where", graph.node("Less", value, constant(0)), later, value, name="value")


def _serialized(
    classifier: CompactClassifier, name: str, graph: Graph, classes: np.ndarray, opset: int
) -> bytes:
    """Return the file: the graph with its input and outputs, and what is said of it."""
    from visionshare import __version__

    onnx = require_onnx()
    types = onnx.TensorProto

    def described(name: str, kind: int, *shape: int) -> Any:
        return onnx.helper.make_tensor_value_info(name, kind, ["batch", *shape])

    k = len(classifier.classes)
    others = {"known": classifier.unknown is not None}
    others["value"] = isinstance(classifier.answer, ValueRule)
    more = [described(name, types.FLOAT) for name, has in others.items() if has]
    if isinstance(classifier.answer, LabelRule):
        more.append(described("has", types.BOOL, k))
    pixel = types.UINT8 if graph.bytes else types.FLOAT
    onnx_graph = onnx.helper.make_graph(
        graph.nodes,
        name,
        [described(Graph.IMAGES, pixel, *classifier.image_shape)],
        [
            described("label", onnx.helper.np_dtype_to_tensor_dtype(classes.dtype)),
            described("probabilities", types.FLOAT, k),
            described("scores", types.FLOAT, k),
            *more,
        ],
        graph.constants,
    )
    model = onnx.helper.make_model(
        onnx_graph,
        ir_version=IR_VERSION if opset == OPSET else _OLD_IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", opset)],
        producer_name="visionshare",
        producer_version=__version__,
    )
    pictures = None
    if classifier.picture_size is not None:
        steps = classifier.preprocessing
        pictures = {**steps.to_values(), "steps": steps.describe(classifier.picture_mode)}
    properties = {
        "classes": json.dumps(classifier.classes_.tolist(), ensure_ascii=True),
        "image_shape": json.dumps(list(classifier.image_shape)),
        "pixel": graph.pixel,
        "preprocessing": _PREPROCESSING[graph.pixel],
        "pictures": json.dumps(pictures),
        "temperature": repr(classifier.temperature),
        "family": type(classifier.family).name,
        "features": str(classifier.n_features),
        "visionshare_version": __version__,
    }
    onnx.helper.set_model_props(model, properties)
    return model.SerializeToString(deterministic=True)
