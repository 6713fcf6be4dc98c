"""Columns of a family and of products of what is already chosen: a countable pool."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from visionshare.columns.arrays import ArrayColumns
from visionshare.columns.base import Columns, Span, check_ids
from visionshare.columns.scaling import example_weights
from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily
from visionshare.generators.checks import check_whole
from visionshare.generators.monomials.family import Monomials
from visionshare.machine.resources import thread_limit

# Bytes of the products that are evaluated at once, and how many are at least.
_BATCH_BYTES = 1 << 20
_LEAST_BATCH = 64
# Keys of monomials are sums modulo this prime: two sums below it fit into 64 bits.
_PRIME = np.uint64((1 << 61) - 1)


class ProductColumns(Columns):
    """Other columns, and the products of pairs of those that a learner has chosen.

    With d other columns, id d + t(t + 1)/2 + s is the product of what entered as number t and as
    number s ≤ t, from 0; either may be a product itself. A product has an id for good once both
    have entered, and is evaluated when asked for, from the values of both: those of what entered
    are kept, 4 bytes an example each. Several pairs may give the same monomial, as (ab)c and a(bc)
    do: :attr:`distinct` says which ids are the first of theirs, and the search "products" scores
    no others.

    Parameters
    ----------
    base : Columns
        Without groups.
    family : FeatureFamily
        The fitted family of ``base``.
    entries : int, default 1000
        Candidates that may enter: rounds of learning times those of a round.
    degree_price : float, default 1.0
        By what a product of one more factor is divided, once scaled: its weight is penalized so
        much more. Above 1 a pool that grows has an end: high products stop to pay.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import Pixels, ShareBoost
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> family = Pixels().fit(X)
    >>> columns = ProductColumns(ArrayColumns(X), family, entries=20)
    >>> y = X[:, 1] + X[:, 2] + 2 * X[:, 1] * X[:, 2] > 0
    >>> model = ShareBoost(rounds=6, search="products").fit(columns, y)
    >>> [1, 2] in [m.tolist() for m in columns.monomials(model.support_)]
    True
    """

    grows = True

    def __init__(
        self,
        base: Columns,
        family: FeatureFamily,
        entries: int = 1000,
        degree_price: float = 1.0,
    ) -> None:
        if base.groups is not None:
            raise InputError("base", "columns in groups", "columns without groups")
        check_whole("entries", entries)
        if not 1 <= degree_price < math.inf:
            raise InputError("degree_price", degree_price, "a number of at least 1")
        self.degree_price = float(degree_price)
        m, self.d = base.shape
        self.base = base
        self.base_family = family
        self.entries = int(entries)
        super().__init__((m, self.d + entries * (entries + 1) // 2), "float32", None, base.n_jobs)
        self._base_keys = np.random.default_rng(0).integers(0, _PRIME, self.d, np.uint64)
        self.fit_scaling("none")

    def begin(self) -> None:
        """Forget what was chosen: a learner begins."""
        self._entered: list[int] = []
        self._factors: dict[int, np.ndarray] = {}
        # Of each that entered: its unscaled values, and the number of its factors.
        self._values = np.empty((0, self.shape[0]), np.float32)
        self._degrees = np.empty(0, np.int64)
        # Of each that entered: the key of its monomial, and which of its products are the first
        # of theirs; keys of all products.
        self._keys = np.empty(0, np.uint64)
        self._is_first: list[np.ndarray] = []
        self._seen: set[int] = set()

    def enter(self, ids: np.ndarray) -> None:
        """Learn that columns were chosen: their products with all chosen ones are columns now.

        One that left and was chosen again brings no new ones.
        """
        for j in np.atleast_1d(ids):
            n = len(self._entered)
            if int(j) in self._entered:
                continue
            if n == self.entries:
                accepted = f"at most {self.entries} candidates that enter"
                raise InputError("entries", self.entries, accepted)
            values, degree = self._evaluated(int(j))
            if n == len(self._values):
                room = min(max(16, 2 * n), self.entries)
                self._values = _resized(self._values, room)
                self._degrees = _resized(self._degrees, room)
                self._keys = _resized(self._keys, room)
            self._values[n] = values
            self._degrees[n] = degree
            self._keys[n] = self._key_of(int(j))
            self._entered.append(int(j))
            self._is_first.append(self._unseen((self._keys[: n + 1] + self._keys[n]) % _PRIME))

    def _key_of(self, j: int) -> np.uint64:
        """Return a monomial's key: the sum of random numbers of its factors, modulo a prime."""
        # It does not depend on their order. Two monomials that differ have the same key with a
        # chance of one in 2.3e18: of half a million, any two with one below 1e-7.
        if j < self.d:
            return np.uint64(self._base_keys[j])
        t, s = (self._keys[number[0]] for number in self._pairs(np.array([j])))
        return np.uint64((t + s) % _PRIME)

    def _unseen(self, keys: np.ndarray) -> np.ndarray:
        """Return which keys are of no product before, and remember them."""
        unseen = []
        for key in keys.tolist():
            unseen.append(key not in self._seen)
            self._seen.add(key)
        return np.array(unseen)

    def _evaluated(self, j: int) -> tuple[np.ndarray, int]:
        """Return a column's unscaled values (m,), and the number of its factors."""
        if j < self.d:
            return self.base.columns_of(np.array([j]), scaled=False)[0], 1
        ids = np.array([j])
        return self._products_of(ids)[0], int(self._degrees[np.concatenate(self._pairs(ids))].sum())

    def _pairs(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by which numbers t and s ≤ t the two factors of products entered."""
        numbers = ids - self.d
        if len(numbers) and numbers.max() >= self.n_products:
            accepted = f"columns below {self.d + self.n_products} by now"
            raise InputError("ids", int(ids.max()), accepted)
        # Exact: entries are few enough for the root of a float64.
        t = ((np.sqrt(8.0 * numbers + 1) - 1) // 2).astype(np.int64)
        return t, numbers - t * (t + 1) // 2

    def check_rounds(self, rounds: int, entering: int = 1, searches: int = 1) -> None:
        """Raise an InputError if there is no room for what may enter in so many rounds."""
        if rounds * entering > self.entries:
            given = f"{rounds} of {entering} candidates" if entering > 1 else rounds
            accepted = f"at most {self.entries // entering}: memory holds {self.entries} entries"
            raise InputError("rounds", given, accepted)

    @property
    def n_products(self) -> int:
        """Number of products that have an id by now."""
        n = len(self._entered)
        return n * (n + 1) // 2

    @property
    def distinct(self) -> np.ndarray:
        """Mask (n,) of the first id of each monomial, among the ids that are known by now."""
        return np.concatenate([np.ones(self.d, bool), *self._is_first])

    @property
    def fingerprint(self) -> str:
        """Identity of the other columns: products follow from what is chosen."""
        return f"products, each once, {self.degree_price:g} {self.base.fingerprint}"

    @property
    def family(self) -> Monomials:
        """The family of all columns that have an id by now."""
        return Monomials.of(self.base_family, self.monomials(np.arange(self.d + self.n_products)))

    def monomials(self, ids: np.ndarray) -> list[np.ndarray]:
        """Return the base ids of each column's factors, ascending."""
        return [self._monomial(int(j)) for j in ids]

    def _monomial(self, j: int) -> np.ndarray:
        if j < self.d:
            return np.array([j], np.int64)
        if j not in self._factors:
            t, s = (int(number[0]) for number in self._pairs(np.array([j])))
            both = [self._monomial(self._entered[t]), self._monomial(self._entered[s])]
            self._factors[j] = np.sort(np.concatenate(both))
        return self._factors[j]

    def macs(self, ids: np.ndarray) -> int | None:
        if self.base.macs(np.empty(0, np.int64)) is None:
            return None
        return Monomials.of(self.base_family, self.monomials(ids)).macs()

    def fit_scaling(self, kind: str, omega: np.ndarray | None = None) -> None:
        """Scale the other columns, and say how products are to be scaled; a learner begins."""
        m, total = self.shape
        example_weights(kind, omega, m)
        self.begin()
        self.base.n_jobs = self.n_jobs
        self.base.fit_scaling(kind, omega)
        self._kind = kind
        self._omega = omega
        offset, scale = (
            np.concatenate([a, np.zeros(total - self.d)]) for a in self.base.scaling_of()
        )
        scale[self.d :] = 1
        variance = np.concatenate([self.base.variance, np.full(total - self.d, np.nan)])
        self._scaling = offset, scale, variance
        self._known = np.arange(total) < self.d

    def scaling_of(self, ids: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return offsets and scales, evaluating products that were not seen yet."""
        if ids is not None and not self._known[ids].all():
            for _ in self.spans(ids[~self._known[ids]]):
                pass
        return super().scaling_of(ids)

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield the columns: the others where they lie, products in batches."""
        if ids is None:
            raise InputError("ids", None, "some columns: products follow from what is chosen")
        ids = check_ids(ids, self.shape[1])
        old = np.flatnonzero(ids < self.d)
        if len(old):
            for span in self.base.spans(ids[old]):
                yield Span(span.buffer, span.offsets, old[span.positions])
        new = np.flatnonzero(ids >= self.d)
        m = self.shape[0]
        at_once = max(_LEAST_BATCH, _BATCH_BYTES // max(1, 4 * m))
        for i in range(0, len(new), at_once):
            batch = new[i : i + at_once]
            values = self._products_of(ids[batch])
            yield Span(values.reshape(-1), np.arange(len(batch)) * m, batch)

    def _products_of(self, ids: np.ndarray) -> np.ndarray:
        """Return unscaled products (n, m), float32; learn their scaling."""
        from visionshare.generators.monomials.kernels import pair_products

        t, s = self._pairs(ids)
        out = np.empty((len(ids), self.shape[0]), np.float32)
        with thread_limit(self.n_jobs):
            pair_products(self._values, t, s, out)
        fresh = np.flatnonzero(~self._known[ids])
        if len(fresh) and self._scaling is not None:
            part = ArrayColumns(columns=out[fresh])
            part.fit_scaling(self._kind, self._omega)
            price = self.degree_price ** (self._degrees[t[fresh]] + self._degrees[s[fresh]] - 1.0)
            learned = (part.offset, part.scale / price, part.variance)
            for known, values_of in zip(self._scaling, learned, strict=True):
                known[ids[fresh]] = values_of
            self._known[ids[fresh]] = True
        return out


def _resized(rows: np.ndarray, n: int) -> np.ndarray:
    """Return an array of n rows that begins with the given ones."""
    longer = np.empty((n, *rows.shape[1:]), rows.dtype)
    longer[: len(rows)] = rows
    return longer
