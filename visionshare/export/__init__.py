"""Compact classifiers in other forms: C99, compiled here too; ONNX and TensorFlow Lite."""

from visionshare.export.c.program import CProgram, c_program
from visionshare.export.compiled import CompiledClassifier, compile_classifier
from visionshare.export.files import object_size, write_model, write_program
from visionshare.export.onnx.model import OnnxProgram, onnx_program
from visionshare.export.onnx.runtime import OnnxResult, run_onnx
from visionshare.export.tflite.model import TfliteProgram, run_tflite, tflite_program
from visionshare.export.toolchain import ObjectSize

__all__ = [
    "CProgram",
    "CompiledClassifier",
    "ObjectSize",
    "OnnxProgram",
    "OnnxResult",
    "TfliteProgram",
    "c_program",
    "compile_classifier",
    "object_size",
    "onnx_program",
    "run_onnx",
    "run_tflite",
    "tflite_program",
    "write_model",
    "write_program",
]
