"""A model of TensorFlow Lite Micro: its error by the same reference kernels, run by LiteRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from visionshare.datasets import load_images

__all__ = ["tflite_row"]


def tflite_row(file: Path, set_name: str, data: Path) -> dict[str, Any]:
    """Return the row of a model whose inputs are gray images, in bytes that stand for 0 to 1.

    What it takes on a core is not counted: the interpreter is no C that is compiled here.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    test = load_images(set_name, "test", data)
    reference = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(str(file), experimental_op_resolver_type=reference)
    interpreter.allocate_tensors()
    (given,), first = interpreter.get_input_details(), interpreter.get_output_details()[0]
    values = test.images / 255
    if given["dtype"] != np.float32:
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
    return {
        "name": name, "optimize": "–", "errors": [error], "images": len(labels),
        "macs": None, "seconds": None, "memory": None, "cores": {},
    }  # fmt: skip
