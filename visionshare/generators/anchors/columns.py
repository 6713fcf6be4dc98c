"""Columns of linear functions around anchors: searched whole, never kept."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np

from visionshare.columns.base import Columns, Span
from visionshare.errors import InputError
from visionshare.generators.anchors.family import KernelAnchors
from visionshare.machine.resources import thread_limit

_LARGEST_TAKEN = 1 << 30
_SPAN_BYTES = 64 << 20


class AnchorColumns(Columns):
    """All columns of linear functions around anchors, from v and the distances alone.

    1500 anchors with 35 radii and 50 numbers have 2.7 million columns; over 60 000 examples they
    would fill 640 GB. What is kept is v, and for each anchor and example the first radius that
    holds it, a byte: 100 MB. A product with all columns of an anchor costs what one of its radii
    would: each example is added once, to the ring between two radii, and rings are added up.
    Values equal ``ArrayColumns.from_family``'s; sums differ by float32 rounding. Tapered
    columns are searched likewise, from two sums over each ring instead of one.

    Parameters
    ----------
    family : KernelAnchors
        Fitted, of kind "linear" or "tapered", with all its features.
    images : ndarray of shape (m, p), (m, H, W) or (m, H, W, C)
    n_jobs : int, default 1
        Threads; no result depends on it.
    span_bytes : int, default 64 MiB
        Of columns that are computed at a time.
    largest_taken : int, default 1 GiB
        Of columns that :meth:`columns_of` gives at once.

    Raises
    ------
    InputError
        If the family is of another kind, or restricted to a part of its features.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §4.2 and §7.5.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import KernelAnchors
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> family = KernelAnchors(n_anchors=5, n_radii=4).fit(X)
    >>> columns = AnchorColumns(family, X)
    >>> columns.shape, columns.correlate(np.ones((40, 2))).shape
    ((40, 80), (80, 2))
    """

    def __init__(
        self,
        family: KernelAnchors,
        images: np.ndarray,
        n_jobs: int = 1,
        *,
        span_bytes: int = _SPAN_BYTES,
        largest_taken: int = _LARGEST_TAKEN,
    ) -> None:
        if not isinstance(family, KernelAnchors):
            raise InputError("family", type(family).__name__, "KernelAnchors")
        v = family.vectors(images, n_jobs)
        self._rings = family.bins(v, n_jobs)
        super().__init__((len(v), family.n_features_), "float32", family.groups, n_jobs)
        self._family = family
        self._span_bytes = span_bytes
        self._largest_taken = largest_taken
        self._V = np.ones((len(v), v.shape[1] + 1), np.float32)
        self._V[:, :-1] = v
        self._n_radii = len(family.pairs_) // family.n_anchors_
        self._limits = family._limits.reshape(family.n_anchors_, self._n_radii)
        # Radii that hold every example make the same columns, whatever the anchor; tapered ones
        # those without a limit.
        self._full = np.arange(self._n_radii) >= self._rings.max(axis=1, initial=0)[:, None]
        if family.kind == "tapered":
            self._full = np.isinf(self._limits)
        self._one_ring = np.zeros((1, len(v)), np.uint8)

    def sample(self, rows: np.ndarray, old: Columns | None = None) -> AnchorColumns:
        # Of an example there are only v and a byte for each anchor.
        picked = copy(self)
        Columns.__init__(picked, (len(rows), self.shape[1]), self.dtype, self.groups, self.n_jobs)
        picked._V = self._V[rows]
        picked._rings = np.ascontiguousarray(self._rings[:, rows])
        picked._one_ring = self._one_ring[:, rows]
        picked.adopt_scaling(self)
        return picked

    def columns_of(self, ids: np.ndarray | None = None, scaled: bool = True) -> np.ndarray:
        """Return columns, see :meth:`visionshare.columns.Columns.columns_of`.

        Raises
        ------
        InputError
            If all are asked for and they take more than ``largest_taken``.
        """
        size = 4 * self.shape[0] * self.shape[1]
        if ids is None and size > self._largest_taken:
            raise InputError("ids", None, f"some columns: all of them take {size} bytes")
        return super().columns_of(ids, scaled)

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield the columns, computed in batches."""
        m, d = self.shape
        which = np.arange(d) if ids is None else ids
        V = np.ascontiguousarray(self._V.T)
        step = max(1, self._span_bytes // max(1, 4 * m))
        for start in range(0, len(which), step):
            part = which[start : start + step]
            values = np.empty((len(part), m), np.float32)
            self._write_columns(V, part, values)
            yield Span(values.reshape(-1), np.arange(len(part)) * m, slice(start, start + step))

    def _write_columns(self, V: np.ndarray, ids: np.ndarray, values: np.ndarray) -> None:
        """Write columns (n, m); V is that of all examples, transposed."""
        from visionshare.generators.anchors.column_kernels import ball_columns, tapered_columns

        if self._family.kind == "linear":
            ball_columns(V, self._rings, self._n_radii, ids, values)
            return
        anchors, position = np.unique(
            ids // (self._n_radii * self._V.shape[1]), return_inverse=True
        )
        squares = self._squares(anchors)
        tapered_columns(V, squares, self._limits, position.reshape(-1), ids, values)

    def _squares(self, anchors: np.ndarray) -> np.ndarray:
        """Return the squared distances (n, m) of all examples to some anchors."""
        from visionshare.generators.anchors.column_kernels import anchor_squares

        return anchor_squares(self._V, self._family._anchors, anchors.astype(np.int64))

    def products(self, R: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
        from visionshare.generators.anchors.column_kernels import ball_products, tapered_products

        anchors, columns = self._anchors_of(ids)
        R = np.ascontiguousarray(R, np.float32)
        with thread_limit(self.n_jobs):
            whole = ball_products(self._V, R, self._one_ring, np.zeros(1, np.int64), 1)
            if self._family.kind == "linear":
                G = ball_products(self._V, R, self._rings, anchors, self._n_radii)
            else:
                held = self._rings, self._limits
                G = np.concatenate([
                    tapered_products(self._V, R, held[0], self._squares(some), held[1], some)
                    for some in self._parts(anchors)
                ])  # fmt: skip
        # The same columns get the same bits: ties go to the lowest number, not to rounding.
        G[self._full[anchors]] = whole[0, 0]
        G = G.reshape(-1, R.shape[1])
        return G if columns is None else G[columns]

    def _parts(self, anchors: np.ndarray) -> list[np.ndarray]:
        """Return anchors in parts whose distances take no more than a span; one part at least."""
        step = max(1, self._span_bytes // max(1, 8 * self.shape[0]))
        return [anchors[i : i + step] for i in range(0, max(1, len(anchors)), step)]

    def _anchors_of(self, ids: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the anchors of columns, ascending."""
        # And where the columns are among all of theirs. None stands for all columns in order.
        n = len(self._rings)
        d = self.shape[1]
        if ids is None or (len(ids) == d and np.array_equal(ids, np.arange(d))):
            return np.arange(n), None
        anchor, part = np.divmod(ids, d // n)
        used = np.zeros(n, bool)
        used[anchor] = True
        return np.flatnonzero(used), (np.cumsum(used) - 1)[anchor] * (d // n) + part

    def moments(self, omega: np.ndarray) -> np.ndarray:
        from visionshare.generators.anchors.column_kernels import ball_moments, tapered_moments

        omega = np.ascontiguousarray(omega, np.float64)
        with thread_limit(self.n_jobs):
            if self._family.kind == "linear":
                moments = ball_moments(self._V, omega, self._rings, self._n_radii)
            else:
                moments = np.concatenate([
                    tapered_moments(
                        self._V, omega, self._rings[some], self._squares(some), self._limits[some]
                    )
                    for some in self._parts(np.arange(len(self._rings)))
                ])  # fmt: skip
            moments[self._full] = ball_moments(self._V, omega, self._one_ring, 1)[0, 0]
        return moments.reshape(-1, 3)
