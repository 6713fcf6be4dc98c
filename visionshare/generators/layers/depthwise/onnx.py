"""Depthwise templates in ONNX: all channels at once, in as many groups as there are templates."""

from visionshare.generators.layers.templates.onnx import emit, emit_integers

__all__ = ["emit", "emit_integers"]
