"""An ONNX model run here, through the package onnxruntime."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare.codegen.onnx_graph import Graph
from visionshare.errors import ExportError
from visionshare.export.onnx.model import OnnxProgram

_BATCH = 256


class OnnxResult(NamedTuple):
    """Outputs of a model: labels (n,), probabilities (n, k) and scores (n, k).

    Of values also these, (n,); of several labels which of them an image has, (n, k).

    Examples
    --------
    >>> result = OnnxResult(np.array(["a"]), np.array([[0.9, 0.1]]), np.array([[2.2, 0.0]]))
    >>> result.labels.tolist()
    ['a']
    """

    labels: np.ndarray
    probabilities: np.ndarray
    scores: np.ndarray
    value: np.ndarray | None = None
    has: np.ndarray | None = None


def run_onnx(program: OnnxProgram, images: np.ndarray, threads: int = 1) -> OnnxResult:
    """Return labels, probabilities and scores that a model gives for images.

    Parameters
    ----------
    program : OnnxProgram
    images : ndarray of shape (n, *image_shape)
        Of the type that the model was made for.
    threads : int, default 1

    Raises
    ------
    ExportError
        If the package onnxruntime is not installed, or cannot run the model.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> from visionshare.export import onnx_program
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> image = np.array([[[0, 0], [0, 255]]], np.uint8)
    >>> run_onnx(onnx_program(model), image).labels  # doctest: +SKIP
    array(['b'], dtype=object)
    """
    try:
        import onnxruntime
    except ImportError:
        message = "the package onnxruntime is not installed: pip install onnxruntime"
        raise ExportError(message) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Errors only: its warnings are about what its own optimizer does.
    options.log_severity_level = 3
    starts = range(0, max(1, len(images)), _BATCH)
    try:
        session = onnxruntime.InferenceSession(
            program.content, options, providers=["CPUExecutionProvider"]
        )
        given = {output.name for output in session.get_outputs()}
        names = ["label", "probabilities", "scores", *sorted({"value", "has"} & given)]
        batches = [session.run(names, {Graph.IMAGES: images[i : i + _BATCH]}) for i in starts]
    except Exception as error:  # Its errors have no common base but this.
        raise ExportError(f"onnxruntime: {str(error).strip().splitlines()[0]}") from None
    found = [np.concatenate(part) for part in zip(*batches, strict=True)]
    return OnnxResult(*found[:3], **dict(zip(names[3:], found[3:], strict=True)))
