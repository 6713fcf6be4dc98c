"""Penalties on a weight matrix: smooth ones, and norms that make weights zero.

``smooth`` has value, gradient and curvature; ``norms`` value, proximal operator and dual norm.
"""

from visionshare.penalties.norms import GroupNorm, HalfSquares, RowPenalty
from visionshare.penalties.registry import NORMS, make_norm
from visionshare.penalties.smooth import (
    PENALTIES,
    NoPenalty,
    Penalty,
    Ridge,
    SmoothL1,
    SmoothMax,
    make_penalty,
)

__all__ = [
    "NORMS",
    "PENALTIES",
    "GroupNorm",
    "HalfSquares",
    "NoPenalty",
    "Penalty",
    "Ridge",
    "RowPenalty",
    "SmoothL1",
    "SmoothMax",
    "make_norm",
    "make_penalty",
]
