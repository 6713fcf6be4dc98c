"""Small instances of kernel anchors, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.anchors.family import KernelAnchors

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], KernelAnchors]] = {
    "anchors": lambda: KernelAnchors(n_anchors=5, n_radii=3),
    "anchors-pca": lambda: KernelAnchors(n_anchors=5, n_radii=3, n_components=6),
    "anchors-tapered": lambda: KernelAnchors("tapered", n_anchors=5, n_radii=3, n_components=6),
    "gaussian": lambda: KernelAnchors("gaussian", n_anchors=20, n_radii=3),
}
