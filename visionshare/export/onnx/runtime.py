"""An ONNX model run here, through the package onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from visionshare.codegen.onnx_graph import Graph
from visionshare.errors import ExportError
from visionshare.export.onnx.model import OnnxProgram
from visionshare.export.onnx.preparation import PICTURE

__all__ = ["OnnxResult", "run_onnx"]

_BATCH = 256


class OnnxResult(NamedTuple):
    """What a model gives for images: labels (n,), probabilities (n, k) and scores (n, k).

    Of a model that prepares pictures, ``images`` (n, *image_shape) is what these became.

    Examples
    --------
    >>> result = OnnxResult(np.array(["a"]), np.array([[0.9, 0.1]]), np.array([[2.2, 0.0]]))
    >>> result.labels.tolist()
    ['a']
    """

    labels: np.ndarray
    probabilities: np.ndarray
    scores: np.ndarray
    images: np.ndarray | None = None


def run_onnx(
    program: OnnxProgram, images: np.ndarray | Sequence[np.ndarray], threads: int = 1
) -> OnnxResult:
    """Return labels, probabilities and scores that a model gives for images.

    Parameters
    ----------
    program : OnnxProgram
    images : ndarray of shape (n, *image_shape), or sequence of pictures
        Of the type that the model was made for; pictures of any sizes where it prepares them.
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
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # Errors only: its warnings are about what its own optimizer does.
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            program.content, options, providers=["CPUExecutionProvider"]
        )
        if program.prepares:
            pictures = images if len(images) else [_smallest(session.get_inputs()[0].shape)]
            batches = [session.run(None, {PICTURE: picture}) for picture in pictures]
        else:
            starts = range(0, max(1, len(images)), _BATCH)
            batches = [session.run(None, {Graph.IMAGES: images[i : i + _BATCH]}) for i in starts]
    except Exception as error:  # Its errors have no common base but this.
        raise ExportError(f"onnxruntime: {str(error).strip().splitlines()[0]}") from None
    parts = zip(*batches, strict=True)
    return OnnxResult(*(np.concatenate(part)[: len(images)] for part in parts))


def _smallest(shape: Sequence[object]) -> np.ndarray:
    """Return a picture of one pixel: what a model gives for it has the shapes of all results."""
    return np.zeros([n if isinstance(n, int) else 1 for n in shape], np.uint8)
