"""Scores that are linear in a few features and in the products of their pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.learners.fine_tuning.product_kernels import (
    form_matrices,
    pair_weights,
    quadratic_forms,
    quadratic_gradients,
)

# Below this fraction of a mean square a variance is taken as rounding.
_FLAT = 1e-6


@dataclass
class ProductScores:
    """z = W x̃ + Q p̃ + c, x̃ the standardized features and p̃ their standardized products."""

    W: np.ndarray
    Q: np.ndarray
    c: np.ndarray
    offset: np.ndarray
    scale: np.ndarray
    product_offset: np.ndarray
    product_scale: np.ndarray

    def __post_init__(self) -> None:
        self.kept = np.ones(self.Q.shape[1], bool)

    @classmethod
    def start(
        cls, weights: np.ndarray, intercept: np.ndarray, X: np.ndarray, products: bool
    ) -> ProductScores:
        """Return the scores of a linear classifier, with products that do not count yet."""
        k, n = weights.shape
        mean = X.mean(axis=0, dtype=np.float64)
        deviation = X.std(axis=0, dtype=np.float64)
        flat = deviation**2 <= _FLAT * np.mean(np.square(X), axis=0)
        scale = np.where(flat, 0.0, 1 / np.where(flat, 1.0, deviation))
        pairs = n * (n + 1) // 2 if products else 0
        made = cls(
            W=(weights * np.where(flat, 0.0, deviation)).astype(np.float32),
            Q=np.zeros((k, pairs), np.float32),
            c=(intercept + weights @ mean).astype(np.float32),
            offset=mean.astype(np.float32),
            scale=scale.astype(np.float32),
            product_offset=np.zeros(pairs, np.float32),
            product_scale=np.ones(pairs, np.float32),
        )
        if products:
            Z = made.standardized(X).astype(np.float64)
            i, j = np.triu_indices(n)
            mean = (Z.T @ Z / len(Z))[i, j]
            square = (np.square(Z).T @ np.square(Z) / len(Z))[i, j]
            spread = np.sqrt(np.maximum(square - mean**2, 0.0))
            made.product_offset = mean.astype(np.float32)
            made.product_scale = np.where(
                spread > _FLAT, 1 / np.maximum(spread, _FLAT), 0.0
            ).astype(np.float32)
        return made

    def standardized(self, X: np.ndarray) -> np.ndarray:
        """Return x̃ (m, n), float32, of unstandardized features."""
        return np.asarray((X - self.offset) * self.scale, np.float32)

    @property
    def used_weights(self) -> np.ndarray:
        """The weights of standardized features that scores are made with, (k, n)."""
        return self.W

    def scores(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Z (k, m), float32, of standardized features, and what its gradients need."""
        Z = np.ascontiguousarray(self.used_weights @ X.T + self.c[:, None])
        k, n = self.W.shape
        Y = np.empty((k, len(X), n) if self.Q.size else (0, 0, 0), np.float32)
        if self.Q.size:
            A = np.empty((k, n, n), np.float32)
            form_matrices(self.Q, self.product_scale, A)
            quadratic_forms(X, A, Y, Z)
            Z -= (self.Q @ (self.product_scale * self.product_offset))[:, None]
        return Z, Y

    def take(self, features: np.ndarray, X: np.ndarray) -> ProductScores:
        """Return the scores of some of the features, the others at their means."""
        n = self.W.shape[1]
        others = np.setdiff1d(np.arange(n), features)
        c = self.c + self.W[:, others] @ X[:, others].mean(axis=0, dtype=np.float64)
        i, j = np.triu_indices(n if self.Q.size else 0)
        pairs = np.flatnonzero(np.isin(i, features) & np.isin(j, features))
        return ProductScores(
            np.ascontiguousarray(self.W[:, features]), np.ascontiguousarray(self.Q[:, pairs]),
            c.astype(np.float32), self.offset[features], self.scale[features],
            self.product_offset[pairs], self.product_scale[pairs],
        )  # fmt: skip

    def sizes(self, X: np.ndarray) -> np.ndarray:
        """Return how much each feature moves the scores of examples, (n,), float64."""
        # The norm over classes of its weights, times its deviation; what all classes share moves
        # nothing. Its products count with it.
        n = self.W.shape[1]
        alone = np.square(self.W - self.W.mean(axis=0)).sum(axis=0, dtype=np.float64)
        spreads = alone * X.var(axis=0, dtype=np.float64)
        if self.Q.size:
            together = np.square(self.Q - self.Q.mean(axis=0)).sum(axis=0, dtype=np.float64)
            i, j = np.triu_indices(n)
            spreads += np.bincount(i, together, minlength=n)
            # A square has one feature.
            spreads += np.bincount(j, np.where(i == j, 0.0, together), minlength=n)
        return np.sqrt(spreads)

    def keep(self, most: int | None) -> None:
        """Let only so many products count from now on, those with the largest weights."""
        if most is None or self.kept.sum() <= most:
            return
        size = np.square(self.Q).sum(axis=0)
        self.kept = np.zeros(len(size), bool)
        self.kept[np.argsort(-size, kind="stable")[:most]] = True
        self.drop()

    def drop(self) -> None:
        """Take the weights off products that do not count any more."""
        if not self.kept.all():
            self.Q *= self.kept

    def gradients(
        self, X: np.ndarray, Y: np.ndarray, R: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the gradients of Σ R · Z."""
        G = np.ascontiguousarray(R.T @ self.used_weights)
        total = R.sum(axis=1)
        dQ = np.empty_like(self.Q)
        if self.Q.size:
            k, n = self.W.shape
            D = np.empty((k, n, n), np.float32)
            quadratic_gradients(X, Y, R, G, D)
            pair_weights(D, self.product_scale, self.product_offset, total, dQ)
        return np.asarray(G * self.scale), [R @ X, total, dQ]

    def plain(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return weights of unstandardized features and products, and intercepts, all float64."""
        W = self.W.astype(np.float64)
        Q = self.Q * self.product_scale.astype(np.float64)
        offset = self.offset.astype(np.float64)
        scale = self.scale.astype(np.float64)
        c = self.c - Q @ self.product_offset.astype(np.float64)
        n = W.shape[1]
        if Q.size:
            # x̃_i x̃_j = s_i s_j (x_i x_j − o_i x_j − o_j x_i + o_i o_j)
            i, j = np.triu_indices(n)
            c = c + Q @ (scale[i] * scale[j] * offset[i] * offset[j])
            Q = Q * (scale[i] * scale[j])
        weights = W * scale
        c = c - weights @ offset
        if Q.size:
            for q in range(len(weights)):
                np.add.at(weights[q], j, -Q[q] * offset[i])
                np.add.at(weights[q], i, -Q[q] * offset[j])
        return weights, Q, c
