"""Small instances of chains, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.chains.family import Chains

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], Chains]] = {
    "chains": lambda: Chains(11, (3, 2), (2, 1), n_first=5, n_patches=1000),
    "chains-of-three": lambda: Chains(
        9, (2, 2, 2), (1, 2, 1), n_first=5, n_second=7, n_patches=1000
    ),
}
