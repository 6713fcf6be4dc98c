"""Penalties on a weight matrix: smooth ones, and norms that make weights zero.

``smooth`` has value, gradient and curvature; ``norms`` value, proximal operator and dual norm.
"""

from visionshare.penalties.norms import GroupNorm
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
    "PENALTIES",
    "GroupNorm",
    "NoPenalty",
    "Penalty",
    "Ridge",
    "SmoothL1",
    "SmoothMax",
    "make_penalty",
]
