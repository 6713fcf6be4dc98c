"""Compact classifiers in other forms: C99 sources, and the same compiled here."""

from visionshare.export.c.program import CProgram, c_program
from visionshare.export.compiled import CompiledClassifier, compile_classifier
from visionshare.export.project import object_size, write_program

# The field's word for it; as a name of this module it hides no builtin anywhere else.
compile = compile_classifier

__all__ = [
    "CProgram",
    "CompiledClassifier",
    "c_program",
    "compile",
    "compile_classifier",
    "object_size",
    "write_program",
]
