"""Each feature family as ONNX nodes: one emitter a family, and the registry of them."""

from visionshare.export.onnx.graph import EMITTERS, Graph

__all__ = ["EMITTERS", "Graph"]
