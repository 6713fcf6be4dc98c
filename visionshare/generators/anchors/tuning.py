"""Anchors and radii that gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.anchors.fitting import NO_LIMIT
from visionshare.machine.resources import run_blocks

if TYPE_CHECKING:
    from visionshare.generators.anchors.family import KernelAnchors

# Images whose gradients are summed together, in the same order on any number of threads.
_AT_ONCE = 64


class TunableAnchors:
    """Tapered linear functions, or Gaussians, whose anchors and radii move."""

    templates: tuple[int, ...] = ()

    def __init__(self, family: KernelAnchors) -> None:
        self._family = family.with_own_anchors()
        anchors = self._family.anchors_
        radii = self._family.radii_
        size = float(np.sqrt(np.mean(np.square(anchors)))) if anchors.size else 1.0
        self._size = np.float32(size if size > 0 else 1)
        self._limited = radii < NO_LIMIT
        logs = np.log(np.where(self._limited, radii, 1)).astype(np.float32)
        self.parameters: list[np.ndarray] = [anchors / self._size, logs]

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return features (n, n_features), float32, and the images' vectors."""
        V = self._family.vectors(images, n_jobs)
        return self._family._values(V, n_jobs), V

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: np.ndarray, G: np.ndarray,
        n_jobs: int = 1,
    ) -> list[np.ndarray]:  # fmt: skip
        """Return the gradients in the parameters of Σ_if G_if x_if, float32."""
        from visionshare.generators.anchors.tuning_kernels import anchor_gradients

        family = self._family
        n, q = family.anchors_.shape
        blocks = -(-len(seen) // _AT_ONCE)
        of_anchors = np.zeros((blocks, n, q))
        of_radii = np.zeros((blocks, n))
        G = np.ascontiguousarray(G, np.float32)
        anchors = family.anchors_.astype(np.float64)
        tapered = family.kind == "tapered"

        def block(start: int, stop: int) -> None:
            b = start // _AT_ONCE
            anchor_gradients(
                seen[start:stop], anchors, family._limits, family._pair, family._part,
                G[start:stop], tapered, of_anchors[b], of_radii[b],
            )  # fmt: skip

        run_blocks(block, len(seen), _AT_ONCE, n_jobs)
        anchors_total = of_anchors.sum(axis=0) * self._size
        radii_total = of_radii.sum(axis=0) * self._limited
        return [anchors_total.astype(np.float32), radii_total.astype(np.float32)]

    def moved(self) -> None:
        """Take on the current parameters."""
        anchors, logs = self.parameters
        limits = np.finfo(np.float32)
        radii = np.clip(np.exp(logs.astype(np.float64)), limits.tiny, limits.max)
        radii = np.where(self._limited, radii, NO_LIMIT).astype(np.float32)
        self._family = self._family.with_own_anchors(anchors * self._size, radii)

    def family(self) -> Any:
        """Return the family of these features with the current parameters."""
        return self._family.with_own_anchors()


tunable = TunableAnchors
