"""Compact classifiers in other forms: C99 sources, the same compiled here, and ONNX models."""

from visionshare.export.c.program import CProgram, c_program
from visionshare.export.compiled import CompiledClassifier, compile_classifier
from visionshare.export.files import object_size, write_onnx, write_program
from visionshare.export.onnx.model import OnnxProgram, onnx_program
from visionshare.export.onnx.runtime import OnnxResult, run_onnx
from visionshare.export.toolchain import ObjectSize

__all__ = [
    "CProgram",
    "CompiledClassifier",
    "ObjectSize",
    "OnnxProgram",
    "OnnxResult",
    "c_program",
    "compile_classifier",
    "object_size",
    "onnx_program",
    "run_onnx",
    "write_onnx",
    "write_program",
]
