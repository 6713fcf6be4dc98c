"""Attacks on the library, counted.

    python -m scripts.attack --kinds kills,flips --n 1000 --seed 0 --out counts.json --json
    python -m scripts.attack --kinds images --seed 0 --only 123 --save found.png
    python -m scripts.attack --mutations --out faults.json

Try number i of a kind and a seed is always the same case. With ``--out`` a campaign that was
stopped goes on with the same command, and one with a larger ``--n`` adds to it. The last line is
one JSON object of counts per kind with ``--json``; the exit code is 1 where a try did not survive.

``--mutations`` builds each fault of ``faults.py`` into a copy of the package: a short campaign or a
test must notice it. The exit code is 1 where none did.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.attack.campaign import run_campaign, table
from scripts.attack.faults import FAULTS
from scripts.attack.hostile import Hostile
from scripts.attack.kinds import KINDS, Attack
from scripts.attack.mutations import mutation_table, run_mutations
from scripts.attack.operations import Operations


def main() -> int:
    """Run the attacks that the arguments name; return 1 where something did not survive."""
    options = _options()
    # What ends it lets it keep its counts and end its workers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.mutations:
        return _mutations(options)
    kinds = {name: _chosen(KINDS[name], options.parts) for name in options.kinds}
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
        for attack in kinds.values():
            if options.save is not None and isinstance(attack, Hostile):
                options.save.write_bytes(attack.make(options.seed, options.only)[0])
        endings = [ending for attack in kinds.values() for ending in attack(numbers, options.seed)]
        print(*endings, sep="\n")
        return int(any(ending.ended != "survived" for ending in endings))
    try:
        results = run_campaign(
            kinds, options.n, options.seed, options.out, _report, stop=options.stop
        )
    except ValueError as error:
        _report(f"--out: {error}")
        return 2
    except KeyboardInterrupt:
        _report("stopped")
        return 130
    print(table(results))
    if options.json:
        print(json.dumps({name: result.counts() for name, result in results.items()}))
    return int(any(result.failed for result in results.values()))


def _report(line: str) -> None:
    print(line, file=sys.stderr)


def _mutations(options: argparse.Namespace) -> int:
    """Build in the faults that the arguments name; return 1 where one was not noticed."""
    faults = [fault for fault in FAULTS if fault.name in (options.parts or fault.name)]
    try:
        results = run_mutations(faults, options.out, _report)
    except ValueError as error:
        _report(f"--mutations: {error}")
        return 2
    except KeyboardInterrupt:
        _report("stopped")
        return 130
    print(mutation_table(results))
    return int(not all(noticed.said for noticed in results.values()))


def _chosen(attack: Attack, parts: list[str]) -> Attack:
    """Return an attack on some parts, where it is one on several."""
    return attack.only(parts) if parts and isinstance(attack, (Hostile, Operations)) else attack


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default=",".join(KINDS), help="names, separated by commas")
    parser.add_argument("--parts", help="commands or sorts of input, or faults, by commas")
    parser.add_argument("--n", type=int, default=100, help="tries of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="file that keeps the counts of this seed")
    parser.add_argument("--only", type=int, metavar="I", help="make this try alone")
    parser.add_argument("--save", type=Path, help="with --only: file for the hostile input")
    parser.add_argument("--mutations", action="store_true", help="faults that must be noticed")
    parser.add_argument("--stop", action="store_true", help="end a kind with its first fault")
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    options = parser.parse_args()
    options.kinds = options.kinds.split(",")
    if unknown := [name for name in options.kinds if name not in KINDS]:
        parser.error(f"--kinds: got {unknown[0]!r}; accepted: {', '.join(KINDS)}")
    options.parts = options.parts.split(",") if options.parts else []
    for kind in (KINDS[name] for name in options.kinds):
        accepted: Sequence[str] = kind.parts if isinstance(kind, (Hostile, Operations)) else ()
        if options.mutations:
            accepted = [fault.name for fault in FAULTS]
        if unknown := [part for part in options.parts if part not in accepted]:
            known = ", ".join(accepted) or "kinds that have some"
            parser.error(f"--parts: got {unknown[0]!r}; accepted: {known}")
    if options.n < 1:
        parser.error(f"--n: got {options.n}; accepted: a whole number of at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
