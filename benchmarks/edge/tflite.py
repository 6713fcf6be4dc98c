"""A model of TensorFlow Lite: its error by LiteRT's reference kernels, and what Micro takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.edge.tflm import micro_cores
from visionshare.datasets import load_images

__all__ = ["tflite_row"]


def tflite_row(
    file: Path, set_name: str, data: Path, micro: Path | None, targets: Sequence[str], count: int
) -> dict[str, Any]:
    """Return the row of a model of gray images: bytes, or what stands for 0 to 1.

    Cores are counted where a folder ``micro`` has TensorFlow Lite Micro and the model takes bytes.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    test = load_images(set_name, "test", data)
    reference = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(str(file), experimental_op_resolver_type=reference)
    interpreter.allocate_tensors()
    (given,), first = interpreter.get_input_details(), interpreter.get_output_details()[0]
    values = test.images if given["dtype"] == np.uint8 else test.images / 255
    if given["dtype"] == np.int8:
        scale, zero = given["quantization"]
        values = values / scale + zero
    labels = []
    for image in values.astype(given["dtype"]):
        # Networks with a memory, such as an LSTM, begin anew with each image.
        interpreter.reset_all_variables()
        interpreter.set_tensor(given["index"], image.reshape(given["shape"]))
        interpreter.invoke()
        labels.append(int(interpreter.get_tensor(first["index"]).argmax()))
    error = 100 * float(np.mean(np.array(labels) != test.labels))
    name = f"{file.stem}, TFLite, {file.stat().st_size:,} bytes of model"
    cores: dict[str, dict[str, Any]] = {}
    if micro is not None and given["dtype"] == np.uint8:
        chosen = np.linspace(0, len(labels) - 1, min(count, len(labels))).astype(np.int64)
        name = f"{file.stem}, TFLite Micro"
        cores = micro_cores(micro, file, test.images[chosen], np.array(labels)[chosen], targets)
    return {
        "name": name, "optimize": "-Os" if cores else "–", "errors": [error], "images": len(labels),
        "macs": None, "seconds": None, "memory": None, "cores": cores,
    }  # fmt: skip
