"""What features cost, alone and beside chosen ones: multiply-accumulates and bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from visionshare.generators.checks import Ids, check_features


def held_bytes(family: Any) -> int:
    """Return the bytes of a fitted family's arrays, and of what files only name."""
    _, arrays = family.to_state()
    return sum(int(array.nbytes) for array in arrays.values()) + int(family.bytes_elsewhere)


class Costs(ABC):
    """The costs of a family's features."""

    name: ClassVar[str]
    n_features_: int

    @abstractmethod
    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image of these features together."""

    @property
    def bytes_elsewhere(self) -> int:
        """Bytes that prediction needs and that a classifier's file only names."""
        return 0

    def nbytes(self, features: Ids = None) -> int:
        """Return the bytes that a classifier of these features holds, without weights."""
        # Those of all arrays of the restricted family, as files hold them: a table that several
        # features share counts once. No features hold nothing.
        ids = check_features(features, self.n_features_)
        family: Any = self
        return held_bytes(family.take(ids)) if len(ids) else 0

    def added_macs(
        self, chosen: np.ndarray, features: Ids = None, starts: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each feature, or group, adds to what the chosen ones cost."""
        return self._added(self._added_macs, self.macs, chosen, features, starts)

    def added_bytes(
        self, chosen: np.ndarray, features: Ids = None, starts: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each feature, or group, adds to what the chosen ones cost."""
        return self._added(self._added_bytes, self.nbytes, chosen, features, starts)

    def _added(
        self,
        alone: Callable[[np.ndarray, np.ndarray], np.ndarray],
        together: Callable[[np.ndarray], float],
        chosen: np.ndarray,
        features: Ids,
        starts: np.ndarray | None,
    ) -> np.ndarray:
        """Return what candidates add, from what each feature adds alone and all cost together."""
        chosen = check_features(chosen, self.n_features_)
        ids = check_features(features, self.n_features_)
        if starts is None:
            return alone(chosen, ids)
        sizes = np.diff(np.append(starts, len(ids)))
        added = alone(chosen, ids[starts])
        before = together(chosen)
        # Features that enter together may share work and tables among themselves.
        for group in np.flatnonzero(sizes > 1):
            members = ids[starts[group] : starts[group] + sizes[group]]
            added[group] = together(np.concatenate([chosen, members])) - before
        return added

    def _added_macs(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return what each feature alone adds to the cost of the chosen ones, (n,) int64."""
        # Ids are checked. A family whose pools are large overrides this with something faster.
        before = self.macs(chosen)
        return np.array([self.macs(np.append(chosen, j)) - before for j in features], np.int64)

    def _added_bytes(self, chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return what each feature alone adds to the bytes of the chosen ones, (n,) int64."""
        # Ids are checked. A family whose pools are large overrides this with something faster.
        before = self.nbytes(chosen)
        return np.array([self.nbytes(np.append(chosen, j)) - before for j in features], np.int64)
