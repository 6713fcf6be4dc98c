"""The kinds of attack: a new one is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from scripts.attack.arrays import ARRAYS
from scripts.attack.classifiers import CLASSIFIERS, FAMILIES
from scripts.attack.concurrency import concurrency
from scripts.attack.flips import flips
from scripts.attack.hostile import Hostile
from scripts.attack.images import IMAGES
from scripts.attack.operations import Operations
from scripts.attack.pages import PAGES
from scripts.attack.recipes import CATALOGS, RECIPES
from scripts.attack.requests import REQUESTS
from scripts.attack.results import Ending
from scripts.attack.slow_clients import slow_clients
from scripts.attack.sockets import SOCKETS
from scripts.attack.stores import STORES
from scripts.attack.times import Timed

__all__ = ["KINDS", "Attack"]

# Tries of these numbers with a seed: the same case for the same number and seed, in their order.
Attack = Callable[[range, int], Iterator[Ending]]

KINDS: Mapping[str, Attack] = {
    # Half of the kills come in the middle of a write.
    "kills": Operations(("kill", "torn")),
    # The disk is full from an operation on, or one operation fails.
    "full-disk": Operations(("full", "fail")),
    "power": Operations(("lost-contents", "lost-names")),
    "flips": flips,
    "headers": Hostile(
        {"classifier": CLASSIFIERS, "family": FAMILIES, "store": STORES, "arrays": ARRAYS}
    ),
    "recipes": Hostile({"recipe": RECIPES, "catalog": CATALOGS}),
    "images": Hostile({"image": IMAGES}),
    "requests": Hostile({"in-process": REQUESTS, "socket": SOCKETS}),
    "slow-clients": slow_clients,
    "concurrency": concurrency,
    "pages": Hostile({"page": PAGES}),
    "time": Timed(),
}
