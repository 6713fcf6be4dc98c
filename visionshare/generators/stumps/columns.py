"""Columns of stumps: never stored, as they follow from the sorted order of each input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from visionshare.columns.base import Columns, Span
from visionshare.columns.scaling import example_weights, flat_noise
from visionshare.errors import InputError
from visionshare.files.fingerprints import array_fingerprint
from visionshare.generators.base import check_images
from visionshare.generators.inputs import flattened, rows_of
from visionshare.generators.stumps.family import Stumps
from visionshare.machine.resources import resolve_jobs, run_blocks, thread_limit

_BYTES = 64 << 20


class StumpColumns(Columns):
    """The columns of stumps over images, kept as an order per input and a count per stump.

    A stump is 1 on the first ``count`` examples of its input's order, so sums over the examples
    of all stumps of an input are prefix sums in that order. All thresholds of 1000 inputs are
    millions of columns: this keeps 12 bytes per stump, and 4 per input and example. Until
    :meth:`fit_scaling` columns are scaled as "none".

    Parameters
    ----------
    family : Stumps
        Fitted, its stumps ascending by input and threshold, as ``fit`` gives them.
    images : ndarray of shape (m, *family.image_shape_), uint8 or float
    n_jobs : int, default 1
        Threads of the sorting and the scans.
    span_bytes : int, default 64 MiB
        Of columns that are computed at a time.

    Attributes
    ----------
    family : Stumps
    order : ndarray of shape (p, m), int32
        Examples by ascending value of each input that has a stump, ties by ascending number.
    starts : ndarray of shape (p + 1,), int64
        First stump of each input.
    counts : ndarray of shape (d,), int32
        On how many examples each stump is 1.
    share : ndarray of shape (d,), float64
        The weight of these examples.
    centered : bool
        Whether columns are scaled to mean 0 and variance 1.
    noise : float
        A share closer to 1 than this is 1, and the column constant.

    Raises
    ------
    InputError
        If the family is another, is in another order, or the images do not fit.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §4.1.

    Examples
    --------
    >>> import numpy as np
    >>> columns = StumpColumns.from_images(np.array([[3.0], [1.0], [2.0]]))
    >>> columns.take(scaled=False).tolist()
    [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """

    def __init__(
        self, family: Stumps, images: np.ndarray, n_jobs: int = 1, *, span_bytes: int = _BYTES
    ) -> None:
        if not isinstance(family, Stumps) or not family.is_fitted:
            raise InputError("family", type(family).__name__, "fitted Stumps")
        flat = flattened(check_images(images, family.image_shape_))
        super().__init__((len(flat), family.n_features_), "float32", None, resolve_jobs(n_jobs))
        _check_ascending(family)
        self.family = self._family = family
        self._span_bytes = span_bytes
        changes = np.flatnonzero(np.diff(family.inputs_)) + 1
        self.starts = np.concatenate([[0], changes, [family.n_features_]])
        self._sort(flat, family)
        self.noise = flat_noise(self.dtype)
        self._identity: str | None = None
        self.fit_scaling("none")

    @classmethod
    def from_images(
        cls, images: np.ndarray, n_thresholds: int | None = None, n_jobs: int = 1
    ) -> StumpColumns:
        """Fit stumps to images and return their columns.

        Parameters
        ----------
        images : ndarray of shape (m, p), (m, H, W) or (m, H, W, C)
        n_thresholds : int, optional
            See :class:`visionshare.generators.stumps.Stumps`.
        n_jobs : int, default 1
        """
        return cls(Stumps(n_thresholds).fit(images), images, n_jobs)

    def _sort(self, flat: np.ndarray, family: Stumps) -> None:
        used = family.inputs_[self.starts[:-1]]
        self.order = np.empty((len(used), len(flat)), np.int32)
        self.counts = np.empty(family.n_features_, np.int32)

        def one(r: int, _: int) -> None:
            column = np.ascontiguousarray(flat[:, used[r]])
            self.order[r] = np.argsort(column, kind="stable")
            # In float64, as the family compares.
            values = rows_of(column[self.order[r]])[:, 0]
            stumps = slice(self.starts[r], self.starts[r + 1])
            thresholds = family.thresholds_[stumps].astype(np.float64)
            self.counts[stumps] = np.searchsorted(values, thresholds, side="right")

        run_blocks(one, len(used), 1, self.n_jobs)

    @property
    def fingerprint(self) -> str:
        """Identity of the scaled columns."""
        if self._identity is None:
            self._identity = array_fingerprint(self.order, self.starts, self.counts)
        scaling = np.frombuffer(f"{self._identity} {self.kind}".encode(), np.uint8)
        return array_fingerprint(scaling, self._omega)

    @property
    def variance(self) -> np.ndarray:
        varies = self.scale
        if self.centered:
            return np.asarray(np.sign(varies))
        return np.asarray(varies * self.share * (1 - self.share))

    def flat(self) -> np.ndarray:
        return np.asarray((self.share <= 0) | (1 - self.share <= self.noise))

    def scaling_of(self, ids: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        from visionshare.generators.stumps.kernels import share_scales

        share = self.share if ids is None else self.share[ids]
        offset = share.copy() if self.centered else np.zeros(len(share))
        scale = share_scales(share, self.noise, self.centered)
        if self.kind == "unit_norm":
            scale /= np.sqrt(np.where(scale > 0, self._total * share, 1.0))
        return offset, scale

    def fit_scaling(self, kind: str, omega: np.ndarray | None = None) -> None:
        from visionshare.generators.stumps.kernels import weight_shares

        self._omega, self._total = example_weights(kind, omega, self.shape[0])
        self.kind = kind
        self.centered = kind == "unit_variance"
        with thread_limit(self.n_jobs):
            self.share = weight_shares(
                self.order, self.starts, self.counts, self._omega.astype(np.float64)
            )

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield the columns, computed in batches."""
        from visionshare.generators.stumps.kernels import fill

        m, d = self.shape
        n = d if ids is None else len(ids)
        step = max(1, self._span_bytes // (4 * m))
        for first in range(0, n, step):
            part = slice(first, min(first + step, n))
            batch = np.arange(part.start, part.stop) if ids is None else ids[part]
            values = np.empty((len(batch), m), np.float32)
            fill(self.order, self._rows(batch), self.counts[batch], values)
            yield Span(values.reshape(-1), np.arange(len(batch)) * m, part)

    def _rows(self, ids: np.ndarray) -> np.ndarray:
        """Return the row of ``order`` that each stump belongs to."""
        return np.searchsorted(self.starts, ids, side="right") - 1

    def products(self, R: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
        from visionshare.generators.stumps.kernels import prefix_sums

        whole = np.ascontiguousarray(R, np.float32)
        if ids is None:
            rows = np.arange(len(self.order))
            return np.asarray(prefix_sums(self.order, rows, self.starts, self.counts, whole))
        distinct, index = np.unique(ids, return_inverse=True)
        rows, begins = np.unique(self._rows(distinct), return_index=True)
        starts = np.append(begins, len(distinct))
        sums = prefix_sums(self.order, rows, starts, self.counts[distinct], whole)
        return np.asarray(sums[index])


def _check_ascending(family: Stumps) -> None:
    """Raise an InputError unless stumps ascend by input, and by threshold in each."""
    same = np.diff(family.inputs_) == 0
    risen = np.diff(family.thresholds_) > 0
    if family.n_features_ == 0 or (np.diff(family.inputs_) < 0).any() or (same & ~risen).any():
        raise InputError("family", "stumps in another order", "stumps as fit numbers them")
