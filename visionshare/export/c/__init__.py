"""The C of each feature family: one emitter a family, and the registry of them."""

from visionshare.export.c.units import EMITTERS, Unit, Writer

__all__ = ["EMITTERS", "Unit", "Writer"]
