"""An ONNX model run here, through the package onnxruntime."""

from __future__ import annotations

import numpy as np

from visionshare.codegen.onnx_graph import Graph
from visionshare.errors import ExportError
from visionshare.export.onnx.model import OnnxProgram

__all__ = ["run_onnx"]

_BATCH = 256


def run_onnx(
    program: OnnxProgram, images: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels (n,), probabilities (n, k) and scores (n, k) that a model gives for images.

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
        starts = range(0, max(1, len(images)), _BATCH)
        batches = [session.run(None, {Graph.IMAGES: images[i : i + _BATCH]}) for i in starts]
    except Exception as error:  # Its errors have no common base but this.
        raise ExportError(f"onnxruntime: {str(error).strip().splitlines()[0]}") from None
    labels, probabilities, scores = (np.concatenate(part) for part in zip(*batches, strict=True))
    return labels, probabilities, scores
