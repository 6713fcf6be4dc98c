"""Product search: all columns, and the products of pairs of those already chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.monomials import ProductColumns
from visionshare.search.exhaustive import winners
from visionshare.search.pool import Candidate, Criterion, Pool, SearchState


@dataclass
class PairProducts:
    """Score every column that has an id by now, each monomial once.

    Columns are :class:`visionshare.generators.monomials.ProductColumns`.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §6.
    """

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the best columns or products.

        Raises
        ------
        InputError
            If the columns are no ProductColumns.
        """
        columns = pool.columns
        if not isinstance(columns, ProductColumns):
            accepted = "ProductColumns, for the search 'products'"
            raise InputError("X", type(columns).__name__, accepted)
        known = columns.d + columns.n_products
        numbers = np.flatnonzero(~excluded[:known] & columns.distinct)
        return winners(pool, numbers, criterion.score(pool, state, numbers), n)
