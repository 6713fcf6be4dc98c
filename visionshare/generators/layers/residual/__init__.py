"""Residual sums: what templates respond, added to what they see."""

from visionshare.generators.layers.residual.layer import Residual, ResidualLayer

__all__ = ["Residual", "ResidualLayer"]
