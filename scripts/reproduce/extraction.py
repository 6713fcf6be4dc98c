"""Features of many files beside other libraries, and campaigns that are killed and resumed.

The figures of the benchmarks are under --runs; one that is there is not run again:

    python -m scripts.reproduce.extraction --runs FOLDER
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.reproduce.results import RESULTS, keep_runs, table, write_page

# File of the figures: the benchmark that makes it, and options for a quick run.
RUNS = {
    "beside": (["benchmarks.extraction"], ["--pictures", "2", "--sides", "40", "--repeats", "1"]),
    "pictures": (
        ["benchmarks.extraction_campaign", "--scans", "0"], ["--pictures", "300", "--kills", "1"]
    ),
    "scans": (
        ["benchmarks.extraction_campaign", "--pictures", "0"],
        ["--scans", "1", "--side", "600", "--tile", "30", "--kills", "1"],
    ),
}  # fmt: skip


def figures(name: str, runs: Path, quick: bool) -> Any:
    """Return the figures of a benchmark, which is run where they are missing."""
    out = runs / f"{name}.json"
    if not out.is_file():
        words, few = RUNS[name]
        command = [sys.executable, "-m", *words, "--json", str(out), *(few if quick else ())]
        subprocess.run(command, check=True)
    return json.loads(out.read_text(encoding="utf-8"))


def beside(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of CPU time on one core."""
    ours = {
        (line["features"], line["side"]): line["milliseconds"]
        for line in lines
        if line["cores"] == 1 and line["library"] == "visionshare"
    }
    rows = []
    for line in lines:
        if line["cores"] != 1:
            continue
        words = [f"{line['features']}, {line['side']}", line["library"]]
        if line["remark"]:
            rows.append([*words, line["remark"], "", "", ""])
            continue
        apart = line["difference"]
        ahead = line["milliseconds"] / ours[line["features"], line["side"]]
        is_ours = line["library"] == "visionshare"
        rows.append(
            [
                *words, f"{line['milliseconds']:.3g}", "" if is_ours else f"{ahead:.1f} ×",
                f"{line['megabytes']:.0f}",
                "" if is_ours else "other features" if apart is None else f"{apart:.0e}",
            ]
        )  # fmt: skip
    return table(["features, pixels", "library", "CPU ms", "ahead", "MB", "difference"], rows)


def clock(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of our pictures per second on each number of cores."""
    cores = sorted({line["cores"] for line in lines})
    rates: dict[tuple[str, int], dict[int, str]] = {}
    for line in lines:
        if line["library"] != "visionshare":
            continue
        key = (line["features"], line["side"])
        rate = line["rate"]
        shown = f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"
        rates.setdefault(key, {})[line["cores"]] = line["remark"] or shown
    rows = [[*key, *(found.get(n, "") for n in cores)] for key, found in rates.items()]
    header = ["features", "pixels"]
    return table([*header, *(f"{n} core{'s' * (n > 1)}" for n in cores)], rows)


def campaign(*parts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of the campaigns."""
    rows = []
    for name, found in (item for part in parts for item in part.items()):
        same = "yes" if found["equal"] else "NO"
        size = f"{found['megabytes']:.0f}"
        rate = f"{found['rate']:.0f}"
        rows.append([name, f"{found['rows']:,}", rate, size, found["kills"], same])
    header = ["what", "rows", "rows per second", "largest MB", "kills of a run at work"]
    return table([*header, "same file"], rows)


def write(out: Path, found: Mapping[str, Any], remark: str = "") -> None:
    """Write the page and the raw runs."""
    keep_runs(out, "extraction", found)
    write_page(
        out,
        "extraction",
        beside=beside(found["beside"]),
        clock=clock(found["beside"]),
        campaign=campaign(found["pictures"], found["scans"]),
        remark=remark,
    )


def main() -> None:
    """Run what is missing and write the page."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--runs", type=Path, default=Path("out/extraction"), help="their folder")
    parser.add_argument("--quick", action="store_true", help="a few pictures, to see it run")
    parser.add_argument("--remark", default="", help="on the page, such as the machine's load")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the page")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    found = {name: figures(name, options.runs, options.quick) for name in RUNS}
    write(options.out, found, options.remark)


if __name__ == "__main__":
    main()
