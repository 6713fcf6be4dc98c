"""A model in ONNX as a teacher."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from visionshare.datasets import Preprocessing
from visionshare.datasets.intake import Intake, Rasters
from visionshare.errors import InputError
from visionshare.scores import softmax

_BATCH = 64
# Side of pictures where a model takes any.
_SIDE = 224


class OnnxTeacher:
    """A model in ONNX of one input, pictures, whose first output says how probable classes are.

    Files that visionshare wrote say how pictures are prepared and which classes there are. Others
    see (value − 127) / 128 of bytes, channels first or last, and have the classes in the order of
    their sorted names. Rows that are no probabilities become some by the softmax.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            import onnxruntime
        except ImportError:
            accepted = "a classifier file; ONNX needs: pip install onnxruntime"
            raise InputError("teacher", os.fspath(path), accepted) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._runs = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            given = f"{os.fspath(path)}: {str(error)[:200]}"
            raise InputError("teacher", given, "a model that onnxruntime opens") from None
        about = self._runs.get_modelmeta().custom_metadata_map
        self._is_own = "classes" in about and "image_shape" in about
        self._input, *others = self._runs.get_inputs()
        shape = [side if isinstance(side, int) else _SIDE for side in self._input.shape[1:]]
        self._first = not self._is_own and len(shape) == 3 and shape[0] in (1, 3)
        if self._first:
            shape = [*shape[1:], shape[0]]
        if others or len(shape) not in (2, 3) or shape[2:] not in ([], [1], [3]):
            given = f"{os.fspath(path)} of input {self._input.shape}"
            accepted = "a model of one input: (n, C, H, W), (n, H, W, C) or (n, H, W)"
            raise InputError("teacher", given, accepted)
        self.image_shape = tuple(shape)
        self.classes_ = np.array(json.loads(about["classes"]) if self._is_own else [])
        steps = json.loads(about.get("pictures", "null")) or {} if self._is_own else {}
        steps.pop("steps", None)
        self.preprocessing = Preprocessing(**steps)

    def predict_proba(self, images: Any, n_jobs: int = 1) -> np.ndarray:
        """Return probabilities (n, k) of pictures of any kind."""
        rasters = images
        if not isinstance(images, Rasters):
            rows, columns, *channels = self.image_shape
            intake = Intake((rows, columns), channels[0] if channels else 1, self.preprocessing)
            rasters = intake.apply(images)
        rasters = np.asarray(rasters).reshape(-1, *self.image_shape)
        output = "probabilities" if self._is_own else self._runs.get_outputs()[0].name
        # Models of a fixed number of pictures see them one by one.
        batch = 1 if isinstance(self._input.shape[0], int) else _BATCH
        parts = []
        for start in range(0, len(rasters), batch):
            shown = self._shown(rasters[start : start + batch])
            parts.append(self._runs.run([output], {self._input.name: shown})[0])
        said = np.concatenate(parts).reshape(len(rasters), -1)
        if (said >= 0).all() and np.allclose(said.sum(axis=1), 1, atol=1e-3):
            return said
        return softmax(said)

    def _shown(self, pictures: np.ndarray) -> np.ndarray:
        """Return pictures of bytes in the unit and the order of the model's input."""
        if "uint8" in self._input.type:
            return pictures
        shown = pictures.astype(np.float32)
        if self._is_own:
            return shown
        shown = (shown - 127) / np.float32(128)
        return np.ascontiguousarray(shown.transpose(0, 3, 1, 2)) if self._first else shown
