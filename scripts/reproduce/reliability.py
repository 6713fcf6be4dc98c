"""Attacks on the library and on the service, counted; the service's speed and memory.

The files of the campaigns and of the service's benchmarks are under --runs. A campaign that was
stopped goes on, a benchmark that is there is not run again, and the page is written from them:

    python -m scripts.reproduce.reliability --runs FOLDER
    python -m scripts.reproduce.reliability --runs FOLDER --share 0.1     # a tenth of the tries
    python -m scripts.reproduce.reliability --runs FOLDER --only service  # the counts stay
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.attack.campaign import read_campaign
from scripts.attack.results import Result
from scripts.reproduce.results import RESULTS, keep_runs, kept_runs, table, write_page
from visionshare.files.durable import write_text

# Each kind of attack: what it does, and the tries of the whole campaign.
TRIES = {
    "kills": ("kills, at file operations of every command", 1000),
    "full-disk": ("a full disk, or one that fails", 500),
    "flips": ("flipped bits and runs of zeros in files", 100_000),
    "headers": ("hostile headers of files", 250_000),
    "recipes": ("hostile recipes and catalogs", 250_000),
    "images": ("hostile pictures", 250_000),
    "requests": ("hostile requests", 250_000),
    "pages": ("hostile pages of text", 5000),
    "concurrency": ("concurrent use of one folder", 60),
    "slow-clients": ("slow clients", 60),
    "time": ("inputs that are expensive for their size", 2000),
}
SERVICE = ("attacks", "speed", "memory")


def campaign(kind: str, n_tries: int, runs: Path) -> Result:
    """Return the counts of a kind of attack, which goes on until it has so many tries."""
    out = runs / f"{kind}.json"
    command = [sys.executable, "-m", "scripts.attack", "--kinds", kind, "--n", str(n_tries)]
    # It returns 1 where a try did not survive: that is counted.
    ended = subprocess.run([*command, "--out", str(out)], stdout=subprocess.DEVNULL, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.returncode)
    return read_campaign(out, 0)[kind]


def service(what: str, runs: Path, options: Sequence[str]) -> dict[str, Any]:
    """Return the figures of one of the service's benchmarks, which is run where it is missing."""
    out = runs / f"service-{what}.json"
    if not out.is_file():
        command = [sys.executable, "-m", "benchmarks.service", what, "--json", *options]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        write_text(out, ended.stdout)
    figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return figures


def counts(results: Mapping[str, Result]) -> str:
    """Return the table of the page: what was done, and how it ended."""
    rows = [
        [TRIES[kind][0], f"{r.tries:,}", f"{r.survived:,}", r.lost, r.silent, r.crashed]
        for kind, r in results.items()
    ]
    header = ["what was done", "tries", "survived", "lost", "silently wrong", "crashed"]
    return table(header, rows)


def times(results: Mapping[str, Result]) -> str:
    """Return a table of the CPU seconds that the most expensive input of each format took."""
    found = results["time"].parts if "time" in results else {}
    rows = [[name, f"{part.tries:,}", f"{part.seconds:.2f}"] for name, part in found.items()]
    return table(["format", "tries", "most CPU seconds"], rows)


def attacks(found: dict[str, Any]) -> str:
    """Return a table of what clients of the service saw during each attack, in milliseconds."""
    rows = []
    for row in found["attacks"]:
        times = [f"{row[k]['median']:g} / {row[k]['most']:g}" for k in ("health", "predict")]
        failed = row["health"]["failed"] + row["predict"]["failed"]
        rows.append([row["attack"], *times, failed, row["peak"]])
    header = ["attack", "`/health`, ms", "`/predict`, ms", "failed", "peak, MiB"]
    return table(header, rows)


def speed(found: dict[str, Any]) -> str:
    """Return a table of predictions a second, beside those of an echo of the same body."""
    by_request = {(row["request"], row["connections"]): row for row in found["speed"]}
    rows = [
        [
            request.removeprefix("/predict, "), n, row["per_second"],
            by_request[request.replace("predict", "echo"), n]["per_second"], row["high"],
        ]
        for (request, n), row in by_request.items()
        if request.startswith("/predict")
    ]  # fmt: skip
    return table(["request", "connections", "per second", "echo's", "99th percentile, ms"], rows)


def summary(found: Mapping[str, dict[str, Any]]) -> str:
    """Return the table of the page about the service."""
    under = [row for row in found["attacks"]["attacks"] if row["attack"] != "none"]
    slowest = {
        key: max(under, key=lambda row: row[key]["most"])[key]["most"]
        for key in ("health", "echo", "predict")
    }
    pictures = {
        row["connections"]: row["per_second"]
        for row in found["speed"]["speed"]
        if row["request"] == "/predict, PNG"
    }
    sizes = found["memory"]["memory"]
    first, last = sizes[0], sizes[-1]
    rows: list[list[Any]] = [
        ["attacks", len(under)],
        [
            "slowest answer about health in any (of an echo that nobody attacks)",
            f"{slowest['health']:g} ms ({slowest['echo']:g} ms)",
        ],
        ["slowest prediction of another client in any", f"{slowest['predict']:g} ms"],
        [
            "pictures a second, one and eight connections",
            f"{pictures[1]:,.0f} and {pictures[8]:,.0f}",
        ],
        [
            f"memory before and after {last['requests']:,} requests (peak)",
            f"{first['resident']:.0f} and {last['resident']:.0f} MiB ({last['peak']:.0f})",
        ],
    ]
    return table(["the service", ""], rows)


def write(out: Path, results: Mapping[str, Result], found: Mapping[str, dict[str, Any]]) -> None:
    """Write the page and the raw runs."""
    counted = {kind: result.to_values() for kind, result in results.items()}
    keep_runs(out, "reliability", {"attacks": counted, "service": found})
    write_page(
        out,
        "reliability",
        tries=f"{sum(result.tries for result in results.values()):,}",
        survived=f"{sum(result.survived for result in results.values()):,}",
        counts=counts(results),
        service=summary(found),
        times=times(results),
        attacks=attacks(found["attacks"]),
        speed=speed(found["speed"]),
        answered=", ".join(
            f"{n:,} with {status}"
            for status, n in found["memory"]["memory"][-1]["answered"].items()
        ),
        loads="; ".join(
            f"{what} {before} and {after}"
            for what in SERVICE
            for before, after in (found[what]["machine"]["load before and after"],)
        ),
        versions=", ".join(
            f"{name} {version}"
            for name, version in found["speed"]["machine"].items()
            if name not in ("cores", "load before and after", "python")
        ),
    )


def main() -> None:
    """Run what is missing and write the page."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--runs", type=Path, default=Path("out/reliability"), help="their folder")
    parser.add_argument("--share", type=float, default=1.0, help="part of the tries (default 1)")
    parser.add_argument("--quick", action="store_true", help="a few tries, to see it run")
    parser.add_argument("--only", nargs="+", choices=[*TRIES, "service"], default=[],
                        help="these anew; the rest of the page stays")  # fmt: skip
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the page")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    stored = kept_runs(options.out, "reliability") if options.only else None
    kept = {} if stored is None else stored["attacks"]
    results = {kind: Result.from_values(values) for kind, values in kept.items()}
    for kind in options.only or TRIES:
        if kind in TRIES:
            share = options.share * TRIES[kind][1]
            n_tries = 2 if options.quick else max(round(share), 1)
            results[kind] = campaign(kind, n_tries, options.runs)
    short = {
        "attacks": ["--attacks", "none", "half-closed clients"],
        "speed": ["--seconds", "0.2", "--rounds", "1"],
        "memory": ["--requests", "100", "--parts", "2"],
    }
    if stored is not None and "service" not in options.only:
        found = stored["service"]
    else:
        found = {w: service(w, options.runs, short[w] if options.quick else ()) for w in SERVICE}
    write(options.out, results, found)


if __name__ == "__main__":
    main()
