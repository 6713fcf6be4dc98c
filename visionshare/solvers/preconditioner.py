"""Preconditioners: the metric in which the accelerated gradient runs."""

from __future__ import annotations

import numpy as np

from visionshare.losses import Loss
from visionshare.penalties import Penalty
from visionshare.solvers.active_set import ActiveSet

# Below this number of weights the whole Hessian is cheaper than the iterations it saves.
_WHOLE_HESSIAN = 160
# Examples that estimate the class blocks of a larger problem: a metric needs no more digits.
_SAMPLE = 16384
_SHRINK = 0.3


class Preconditioner:
    """An approximate inverse Hessian at a given point.

    Small problems use the whole Hessian (each step is then a Newton step); larger ones its
    diagonal blocks, a class a block, estimated on a fixed sample of the examples. Relative to
    these blocks the Hessian's eigenvalues lie in [0, 2], whatever the columns' scaling and
    correlation: that is what makes a refit converge in tens of steps. Above ``max_weights`` a class
    only the diagonal is measured for each class; the correlations are measured for all classes
    together, within blocks of neighboring columns: a step is then about as cheap as its products
    with the columns, and more of them are needed.
    """

    def __init__(
        self,
        active: ActiveSet,
        loss: Loss,
        penalty: Penalty,
        W: np.ndarray,
        Z: np.ndarray,
        # Beyond, blocks for each class cost more than all the iterations of a refit: they grow
        # with the square of the columns, their inverses with the cube.
        max_weights: int = 1024,
        block: int = 256,
    ) -> None:
        k, p = W.shape
        diagonal = np.zeros((k, p))
        diagonal[:, 1:] = penalty.curvature(W[:, 1:])
        self.whole = k * p <= _WHOLE_HESSIAN
        if self.whole:
            H = active.hessian(loss, Z)
            # Its products are as precise as the columns: less is no curvature.
            noise = 16 * float(np.finfo(active.dtype).eps)
            floor = _floor(np.diag(H), max(noise, 1e-10))
            H.flat[:: len(H) + 1] += diagonal.ravel() + floor
            self.inverse = _inverse(H)
            return
        stride = max(1, active.m // _SAMPLE)
        self.block = block
        self.shared = p > max_weights
        if self.shared:
            # All classes estimate one set of blocks: half the examples suffice.
            self._share(*active.curvature_blocks(loss, Z, 2 * stride, block), diagonal)
            return
        blocks = active.curvature_grams(loss, Z, stride)
        entries = np.arange(p)
        for q in range(k):
            blocks[q, entries, entries] += diagonal[q] + _floor(np.diag(blocks[q]), 1e-6)
        self.inverse = np.linalg.inv(blocks)

    def apply(self, G: np.ndarray) -> np.ndarray:
        """Return P⁻¹G for a gradient G (k, n + 1)."""
        if self.whole:
            return (self.inverse @ G.ravel()).reshape(G.shape)
        if self.shared:
            scaled = (G * self.scale).T
            padded = np.pad(scaled, ((0, -len(scaled) % self.block), (0, 0)))
            solved = np.matmul(self.inverse, padded.reshape(-1, self.block, len(G)))
            return solved.reshape(-1, len(G))[: len(scaled)].T * self.scale
        return np.matmul(self.inverse, G[:, :, None])[:, :, 0]

    def _share(self, diagonals: np.ndarray, blocks: np.ndarray, added: np.ndarray) -> None:
        """Invert S C S for each class: C the correlations, S² the class's own diagonal."""
        for q, diagonal in enumerate(diagonals):
            diagonal += added[q] + _floor(diagonal, 1e-6)
        self.scale = 1 / np.sqrt(diagonals)
        within = np.einsum("bii->bi", blocks)
        within += _floor(within, 1e-6)
        unit = 1 / np.sqrt(within)
        correlations = blocks * unit[:, :, None] * unit[:, None, :]
        # What the sample does not know of a block's columns must not make the metric singular.
        correlations += _SHRINK * np.eye(self.block)
        self.inverse = np.linalg.inv(correlations)


def _inverse(H: np.ndarray) -> np.ndarray:
    """Return the inverse of a matrix, with more on its diagonal where it is not positive."""
    more = float(np.mean(np.diag(H)))
    for fraction in (0.0, 1e-5, 1e-3, 1e-1):
        raised = H + fraction * more * np.eye(len(H)) if fraction else H
        try:
            np.linalg.cholesky(raised)
        except np.linalg.LinAlgError:
            continue
        return np.linalg.inv(raised)
    return np.diag(1 / np.maximum(np.diag(H), 1e-12))


def _floor(diagonal: np.ndarray, fraction: float) -> float:
    # Keeps the metric positive along directions without curvature, such as adding a constant
    # to all classes or a class that is already certain.
    return fraction * float(np.mean(diagonal)) + 1e-12
