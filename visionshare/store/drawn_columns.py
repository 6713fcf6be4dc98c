"""Columns of random draws: evaluated when asked for, thrown away when scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from visionshare.columns.base import Columns, Span
from visionshare.columns.scaling import example_weights
from visionshare.errors import InputError
from visionshare.files.fingerprints import images_fingerprint
from visionshare.generators.base import FeatureFamily
from visionshare.generators.climbing import Ascent
from visionshare.generators.draws import Draws


class DrawnColumns(Columns):
    """The columns of an endless list of draws over images.

    A column gets its offset and scale when it is first evaluated, and is kept only until another
    round's columns are asked for; a learner keeps the columns that it chooses. Draws that a search
    moved stay where they are until the scaling is chosen again, which is when a fit begins.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import GaborBank
    >>> from visionshare.generators.draws import Draws
    >>> images = np.random.default_rng(0).random((5, 8, 8))
    >>> DrawnColumns(Draws(GaborBank().fit(images), n=3, rounds=10), images).shape
    (5, 30)
    """

    _cached_ids: np.ndarray

    def __init__(self, draws: Draws, images: np.ndarray, n_jobs: int = 1) -> None:
        super().__init__((len(images), draws.n_features_), "float32", draws.groups, n_jobs)
        self.draws = self._family = self._given = draws
        self._images = images
        self._cached = np.empty((0, len(images)), np.float32)
        self.fit_scaling("none")

    @property
    def fingerprint(self) -> str:
        """Identity of images and draws."""
        return images_fingerprint(self._images) + self.draws.fingerprint

    def check_rounds(self, rounds: int, entering: int = 1, searches: int = 1) -> None:
        """Raise an InputError if there are fewer rounds of draws."""
        if rounds * searches > self.draws.rounds:
            accepted = (
                f"at most {self.draws.rounds // searches}: the pool has {self.draws.rounds} draws"
            )
            raise InputError("rounds", rounds, accepted)

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield the columns in one buffer; the last request's are cached."""
        if ids is None:
            raise InputError("ids", None, "ids of columns: the draws have no end")
        if not np.isin(ids, self._cached_ids).all():
            values = self.draws.transform_columns(self._images, ids, self.n_jobs)
            self._cached_ids = ids.copy()
            self._cached = values
            new = np.flatnonzero(~self._known[ids])
            self._scale(ids[new], values[new])
        order = np.argsort(self._cached_ids, kind="stable")
        rows = order[np.searchsorted(self._cached_ids[order], ids)]
        yield Span(self._cached.reshape(-1), rows * self.shape[0], slice(0, len(ids)))

    def table(self) -> np.ndarray:
        """Return all columns, unscaled, (d, m): all draws are evaluated, and kept."""
        ids = np.arange(self.shape[1])
        if not np.array_equal(self._cached_ids, ids):
            self._cached_ids = ids[:0]
            list(self.spans(ids))
        return self._cached

    def fit_scaling(self, kind: str, omega: np.ndarray | None = None) -> None:
        """Set how columns are scaled when they are evaluated; draws are where they were drawn."""
        self.draws = self._family = self._given
        m, d = self.shape
        example_weights(kind, omega, m)
        self._omega = omega
        self._kind = kind
        self._scaling = np.zeros(d), np.ones(d), np.full(d, np.nan)
        self._known = np.zeros(d, bool)
        self._cached_ids = np.empty(0, np.int64)

    def climb(self, draw: int, residual: np.ndarray, steps: int) -> None:
        """Move a draw uphill: to parameters whose features have a larger gradient."""
        start = self.draws.of_draw(draw)
        family = self.draws.family

        def score(parameters: np.ndarray) -> np.ndarray:
            # Scaled as these columns are.
            other = family.at(parameters.astype(np.float32))
            return self._norms(other, self._images, self._omega, residual)

        self._put(draw, family.climb(start, Ascent(self._images, residual, score, steps)))

    def norms_on(
        self, rows: np.ndarray, weights: np.ndarray, residual: np.ndarray, draws: np.ndarray
    ) -> np.ndarray:
        """Return ‖XᵀR‖ over the features of each of some draws, on some examples, (n_draws,)."""
        width = self.draws.family.features_per_draw
        ids = (draws[:, None] * width + np.arange(width)).ravel()
        omega = weights if self._omega is None else weights * self._omega[rows]
        return self._norms(self.draws.take(ids), self._images[rows], omega, residual)

    @property
    def is_centered(self) -> bool:
        """Whether scaled columns have mean 0."""
        return self._kind == "unit_variance"

    def _norms(
        self, family: FeatureFamily, images: np.ndarray, omega: np.ndarray | None, R: np.ndarray
    ) -> np.ndarray:
        from visionshare.columns.arrays import ArrayColumns

        part = ArrayColumns(columns=family.transform_columns(images, None, self.n_jobs))
        part.fit_scaling(self._kind, omega)
        G = part.correlate(R)
        width = self.draws.family.features_per_draw
        return np.sqrt((G**2).reshape(-1, width * G.shape[1]).sum(axis=1))

    def _put(self, draw: int, parameters: np.ndarray) -> None:
        width = self.draws.family.features_per_draw
        moved = {**self.draws.moved, int(draw): np.asarray(parameters, np.float32)}
        # The draws that were given stay as they are.
        self.draws = self._family = self.draws.moved_to(moved)
        self._known[draw * width : (draw + 1) * width] = False
        self._cached_ids = np.empty(0, np.int64)

    def moved(self, candidates: np.ndarray) -> np.ndarray:
        if not self.draws.moved:
            return np.empty(0)
        return np.stack([self.draws.of_draw(int(c)) for c in candidates] or [np.empty(0)])

    def put(self, candidates: np.ndarray, moved: np.ndarray) -> None:
        for candidate, parameters in zip(candidates, moved, strict=True):
            self._put(int(candidate), parameters)

    @property
    def moved_draws(self) -> dict[int, np.ndarray]:
        return dict(self.draws.moved)

    def moved_to(self, moved: Mapping[int, np.ndarray]) -> DrawnColumns:
        return DrawnColumns(self.draws.moved_to(moved), self._images, self.n_jobs)

    def _scale(self, ids: np.ndarray, values: np.ndarray) -> None:
        from visionshare.columns.arrays import ArrayColumns

        if len(ids) == 0:
            return
        part = ArrayColumns(columns=values)
        part.fit_scaling(self._kind, self._omega)
        self.offset[ids] = part.offset
        self.scale[ids] = part.scale
        self.variance[ids] = part.variance
        self._known[ids] = True
