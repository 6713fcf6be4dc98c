"""Search for stumps: all thresholds of all inputs, one walk along each input's order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.stumps import StumpColumns
from visionshare.machine.resources import thread_limit
from visionshare.search.criteria import CRITERIA, Gradient
from visionshare.search.exhaustive import winners
from visionshare.search.pool import Candidate, Criterion, Pool, SearchState


@dataclass
class StumpScan:
    """Score every stump by the norm of the gradient.

    Columns are :class:`visionshare.generators.stumps.StumpColumns`.

    Prefix sums of the residual's rows, in an input's order, give ‖g‖₁ of all its thresholds in
    O(mk): what "exhaustive" finds, without a column.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import ShareBoost
    >>> X = np.random.default_rng(0).random((200, 3))
    >>> columns = StumpColumns.from_images(X)
    >>> model = ShareBoost(rounds=1, search="stumps").fit(columns, X[:, 1] <= 0.4)
    >>> columns.family.describe(model.support_[0])["position"]
    (1,)
    """

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the best stumps that are not excluded, at most one per input.

        Raises
        ------
        InputError
            If the columns are no StumpColumns, or the criterion is not "gradient".
        """
        from visionshare.search.stump_kernels import best_stumps

        columns = pool.columns
        if not isinstance(columns, StumpColumns):
            raise InputError("X", type(columns).__name__, "StumpColumns, for the search 'stumps'")
        if not isinstance(criterion, Gradient):
            accepted = "'gradient'; the search 'screened' takes other criteria"
            names = [name for name, kind in CRITERIA.items() if kind is type(criterion)]
            given = names[0] if names else type(criterion).__name__
            raise InputError("criterion", given, accepted)
        R = np.ascontiguousarray(state.residual, np.float32)
        # What centering takes from a column's product: its mean times the residual's sum.
        offset_sum = R.sum(axis=0, dtype=np.float64) * columns.centered
        with thread_limit(columns.n_jobs):
            numbers, scores = best_stumps(
                columns.order, columns.starts, columns.counts, columns.share, excluded,
                R, offset_sum, columns.noise, columns.centered,
            )  # fmt: skip
        return winners(pool, numbers[numbers >= 0], scores[numbers >= 0], n)
