"""Compact classifiers in other forms: C99 sources, the same compiled here, and ONNX models."""

from visionshare.export.c.program import CProgram, c_program
from visionshare.export.compiled import CompiledClassifier, compile_classifier
from visionshare.export.onnx.model import OnnxProgram, onnx_program
from visionshare.export.onnx.runtime import run_onnx
from visionshare.export.project import object_size, write_onnx, write_program

# The field's word for it; as a name of this module it hides no builtin anywhere else.
compile = compile_classifier

__all__ = [
    "CProgram",
    "CompiledClassifier",
    "OnnxProgram",
    "c_program",
    "compile",
    "compile_classifier",
    "object_size",
    "onnx_program",
    "run_onnx",
    "write_onnx",
    "write_program",
]
