"""A classifier of integers as a TensorFlow Lite file, and the same run here by LiteRT."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.codegen.c_text import check_identifier
from visionshare.codegen.tflite_graph import TfliteGraph, require_flatbuffers
from visionshare.errors import ExportError, InputError


@dataclass(frozen=True)
class TfliteProgram:
    """The TensorFlow Lite file of a classifier.

    Parameters
    ----------
    name : str
    pixel : {"uint8", "float32"}
        Type of an image's values, from 0 to 255 in both.
    content : bytes

    Examples
    --------
    >>> from visionshare import load
    >>> tflite_program(load("mnist-4k")).content[4:8]  # doctest: +SKIP
    b'TFL3'
    """

    name: str
    pixel: str
    content: bytes


def tflite_program(
    classifier: CompactClassifier, name: str = "classifier", pixel: str | None = None
) -> TfliteProgram:
    """Return the TensorFlow Lite file of a network of integers: one image in, classes out.

    Its input is ``images`` (1, rows, columns, channels), values from 0 to 255. Its outputs are
    ``probabilities`` (1, k) and ``scores`` (1, k), float32. Layers compute in int8, the sums of
    classes in floats that hold whole numbers. Weights of up to four bits give the scores of
    Python exactly; of eight bits, a value that lies halfway may be rounded the other way. A rule
    of refusal is not part of the file.

    Parameters
    ----------
    classifier : CompactClassifier
        Of a network in integers; :func:`visionshare.classifier.quantize` makes one.
    name : str, default "classifier"
    pixel : {"uint8", "float32"}, default "uint8"
        Floats are bytes as numbers, as AI-on-the-edge gives them.

    Raises
    ------
    InputError
        If the classifier does not compute in integers, or has layers that cannot be written.
    ExportError
        If the package flatbuffers is not installed.

    Examples
    --------
    >>> from visionshare import load
    >>> tflite_program(load("mnist-4k")).pixel  # doctest: +SKIP
    'uint8'
    """
    from visionshare import __version__

    check_identifier("name", name)
    pixel = pixel or "uint8"
    if pixel not in ("uint8", "float32"):
        raise InputError("pixel", pixel, "'uint8' or 'float32'")
    family = classifier.family
    if not getattr(family, "in_whole_numbers", False):
        accepted = "a network of integers; give training images to calibrate one of floats"
        raise InputError("classifier", type(family).name, accepted)
    if classifier.answer is not None:
        raise InputError("classifier", "values or several labels", "one class per image")
    require_flatbuffers()
    graph = TfliteGraph()
    # 1) bytes that int8 holds
    layers = family.layers_
    shape = (1, *layers[0].in_shape)
    scale = 1 if pixel == "uint8" else None
    images = graph.tensor(shape, pixel, scale, name="images")
    values = graph.node("QUANTIZE", images, out=graph.like_bytes(shape))
    # 2) layers
    for layer in layers:
        values = layer.to_tflite(values, graph)
    # 3) scores: floats hold them exactly
    size = int(np.prod(values.shape))
    flat = graph.reshaped(values, 1, size)
    features = graph.node("DEQUANTIZE", flat, out=graph.tensor((1, size), "float32"))
    weights = np.zeros((len(classifier.classes), size), np.float32)
    np.add.at(weights.T, family.places_, classifier.weights.T)
    tables = graph.constant(weights / values.scale), graph.constant(classifier.intercept)
    scores = graph.tensor((1, len(weights)), "float32", name="scores")
    graph.node("FULLY_CONNECTED", features, *tables, out=scores, options=[None])
    out = graph.tensor(scores.shape, "float32", name="probabilities")
    graph.node("SOFTMAX", scores, out=out, options=[np.float32(1 / classifier.temperature)])
    described = {"producer": f"visionshare {__version__}", "classes": classifier.classes_.tolist()}
    return TfliteProgram(name, pixel, graph.content([images], [out, scores], json.dumps(described)))


def run_tflite(program: TfliteProgram, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities and scores (n, k) that LiteRT computes of images, one by one.

    Raises
    ------
    ExportError
        If the package ai-edge-litert is not installed, or cannot run the file.

    Examples
    --------
    >>> from visionshare import load
    >>> program = tflite_program(load("mnist-4k"))  # doctest: +SKIP
    >>> run_tflite(program, np.zeros((2, 28, 28), np.uint8))[1].shape  # doctest: +SKIP
    (2, 10)
    """
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        message = "the package ai-edge-litert is not installed: pip install 'visionshare[tflite]'"
        raise ExportError(message) from None
    try:
        interpreter = Interpreter(model_content=program.content)
        interpreter.allocate_tensors()
        given = interpreter.get_input_details()[0]
        outputs = [output["index"] for output in interpreter.get_output_details()]
        found = []
        for image in images:
            interpreter.set_tensor(given["index"], image.reshape(given["shape"]))
            interpreter.invoke()
            found.append([interpreter.get_tensor(output)[0] for output in outputs])
    except (RuntimeError, ValueError) as error:
        raise ExportError(f"LiteRT: {str(error).strip().splitlines()[0]}") from None
    probabilities, scores = np.swapaxes(np.array(found), 0, 1)
    return probabilities, scores
