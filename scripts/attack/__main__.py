"""Attacks on the library, counted.

    python -m scripts.attack --kinds kills,full-disk,flips --n 1000 --seed 0 --json

Each try is the same for the same kind, seed and number. The last line is one JSON object of counts
per kind with ``--json``, a table without; the exit code is 1 where something did not survive.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

from scripts.attack.flips import flips
from scripts.attack.operations import disk_full, kills
from scripts.attack.results import Result

KINDS: dict[str, Callable[[int, int], Result]] = {
    "kills": kills,
    "full-disk": disk_full,
    "flips": flips,
}
_SHOWN = 10


def main() -> int:
    """Run the attacks that the arguments name; return 1 where something did not survive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default=",".join(KINDS), help="names, separated by commas")
    parser.add_argument("--n", type=int, default=100, help="tries of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    options = parser.parse_args()
    names = options.kinds.split(",")
    if unknown := [name for name in names if name not in KINDS]:
        parser.error(f"--kinds: got {unknown[0]!r}; accepted: {', '.join(KINDS)}")
    if options.n < 1:
        parser.error(f"--n: got {options.n}; accepted: a whole number of at least 1")
    results = {}
    for name in names:
        results[name] = result = KINDS[name](options.n, options.seed)
        print(name, *(f"{key} {count}" for key, count in result.counts().items()), file=sys.stderr)
        for fault in result.faults[:_SHOWN]:
            print(f"    {fault}", file=sys.stderr)
    if options.json:
        print(json.dumps({name: result.counts() for name, result in results.items()}))
    return int(any(result.failed for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
