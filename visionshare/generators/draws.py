"""The random draws of a continuous family, numbered: what a search draws its candidates from."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from visionshare.errors import InputError
from visionshare.files.fingerprints import spec_fingerprint
from visionshare.generators.base import FeatureFamily, Ids, check_features
from visionshare.generators.checks import check_whole


class Draws:
    """What ``rounds`` rounds of ``n`` random draws each would give."""

    def __init__(
        self, family: FeatureFamily, n: int = 500, rounds: int = 1000, random_state: int = 0
    ) -> None:
        check_whole("n", n)
        check_whole("rounds", rounds)
        check_whole("random_state", random_state, least=0)
        if not family.is_continuous:
            raise InputError("family", family.name, "a family with continuous parameters")
        self.family = family
        self.n = int(n)
        self.rounds = int(rounds)
        self.random_state = int(random_state)
        self.image_shape_ = family.image_shape_
        self._width = family.features_per_draw
        self.n_features_ = self.n * self.rounds * self._width
        self._latest: tuple[int, np.ndarray] = (0, np.empty((0, 0)))
        self.moved: dict[int, np.ndarray] = {}

    @property
    def groups(self) -> np.ndarray | None:
        """Number of each feature's draw, None where a draw is one feature."""
        return None if self._width == 1 else np.arange(self.n_features_) // self._width

    @property
    def fingerprint(self) -> str:
        """Identity of every draw."""
        state, arrays = self.family.to_state()
        numbers = {"n": self.n, "random_state": self.random_state}
        return spec_fingerprint({"family": state, **numbers}, arrays)

    def of_round(self, number: int) -> np.ndarray:
        """Return the numbers of the draws (candidates) of one round, from 1."""
        if not 1 <= number <= self.rounds:
            raise InputError("rounds", number, f"at most {self.rounds} rounds of draws")
        return np.arange((number - 1) * self.n, number * self.n)

    def parameters(self, number: int) -> np.ndarray:
        """Return the parameters of all draws of one round, from 1."""
        if self._latest[0] != number:
            rng = np.random.default_rng([self.random_state, number])
            self._latest = (number, self.family.draw(self.n, rng))
        first = (number - 1) * self.n
        here = {d - first: p for d, p in self.moved.items() if 0 <= d - first < self.n}
        if not here:
            return self._latest[1]
        parameters = self._latest[1].copy()
        for i, moved in here.items():
            parameters[i] = moved
        return parameters

    def of_draw(self, draw: int) -> np.ndarray:
        """Return the parameters (p,) of one draw."""
        return self.parameters(draw // self.n + 1)[draw % self.n]

    def moved_to(self, moved: Mapping[int, np.ndarray]) -> Draws:
        """Return the same draws, of which only these are moved."""
        same = copy.copy(self)
        same.moved = dict(moved)
        return same

    def take(self, features: np.ndarray) -> FeatureFamily:
        """Return a finite family of these features, in this order."""
        ids = check_features(features, self.n_features_)
        draws, draw_of = np.unique(ids // self._width, return_inverse=True)
        number = draws // self.n + 1
        within = draws % self.n
        drawn = [self.parameters(int(t))[i] for t, i in zip(number, within, strict=True)]
        # No features have the parameters of no draw: (0, p).
        finite = self.family.at(np.array(drawn) if drawn else self.parameters(1)[:0])
        return finite.take(draw_of.reshape(-1) * self._width + ids % self._width)

    def transform_columns(
        self,
        images: np.ndarray,
        features: np.ndarray,
        n_jobs: int = 1,
        dtype: str = "float32",
    ) -> np.ndarray:
        """Return features (n, n_images) of the finite family that :meth:`take` gives."""
        return self.take(features).transform_columns(images, None, n_jobs, dtype)

    def macs(self, features: np.ndarray) -> int:
        """Return the multiply-accumulates per image of these features together."""
        return self.take(features).macs() if len(features) else 0

    def added_macs(
        self, chosen: np.ndarray, features: Ids = None, starts: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what features, or groups of them, add to the cost of the chosen ones, int64."""
        return self._finite(chosen, features).added_macs(*_apart(chosen, features), starts)

    def added_bytes(
        self, chosen: np.ndarray, features: Ids = None, starts: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what features, or groups of them, add to the bytes of the chosen ones, int64."""
        return self._finite(chosen, features).added_bytes(*_apart(chosen, features), starts)

    def _finite(self, chosen: np.ndarray, features: Ids) -> FeatureFamily:
        """Return the finite family of the chosen features and of others."""
        if features is None:
            raise InputError("ids", None, "ids of columns: the draws have no end")
        return self.take(np.concatenate([chosen, features]))


def _apart(chosen: np.ndarray, features: Ids) -> tuple[np.ndarray, np.ndarray]:
    """Return where chosen features and others stand among both together."""
    n = len(chosen)
    others = 0 if features is None else len(features)
    return np.arange(n), np.arange(n, n + others)
