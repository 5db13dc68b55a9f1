"""Live migrations with the probe, with a database of a given size.

    python bench/migrate.py [--runs 3] [--objects 2000] [--bytes 10000]

2,000 objects of 10 kB are 20 MB; --objects 10000 --bytes 100000 is 1 GB. Each run moves the plane to the other site.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
from pathlib import Path

from fill import fill
from lab import markdown, quarterdeck, temporary_home, this_machine

SITES = ("east", "west")
#: The columns of a row, after the first.
HEADER = (
    "whole s",
    "swap ms",
    "requests",
    "failed",
    "re-sent",
    "lost",
    "missed",
    "stall ms",
    "quiet ms",
    "ratio",
)


def report_of(folder: Path) -> dict:  # type: ignore[type-arg]
    """The newest report of the home."""
    newest = max((folder / "reports").glob("*/report.json"), key=lambda path: path.stat().st_mtime)
    return json.loads(newest.read_bytes())  # type: ignore[no-any-return]


def row(number: int, report: dict) -> list[str]:  # type: ignore[type-arg]
    """What one migration showed."""
    probe = report["probe"]
    periods = {period["label"]: period for period in probe["periods"]}
    quiet, during = periods["quiet"]["overall"], periods["migration"]["overall"]
    return [
        str(number),
        f"{report['seconds']:.1f}",
        f"{report['swapWindowMs']:.0f}" if report["swapWindowMs"] is not None else "-",
        f"{during['requests']:,}",
        str(during["failures"]),
        str(during["resent"]),
        str(probe["writes"]["lost"]),
        str(probe["watches"]["missed"]),
        f"{during['stallMs']:.0f}",
        f"{quiet['stallMs']:.0f}",
        f"{during['stallMs'] / quiet['stallMs']:.1f}",
    ]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--objects", type=int, default=2_000)
    parser.add_argument("--bytes", type=int, default=10_000)
    parser.add_argument("--quiet", type=float, default=25.0)
    given = parser.parse_args()
    rows = []
    with temporary_home() as folder:
        quarterdeck("create", "bench")
        asyncio.run(fill(folder, "bench", objects=given.objects, size=given.bytes))
        for number in range(given.runs):
            target = SITES[(number + 1) % 2]
            quarterdeck("migrate", "bench", "--to", target, "--probe", "--quiet", str(given.quiet), "--yes", allowed=1)
            rows.append(row(number + 1, report_of(folder)))
            print(" ".join(rows[-1]), flush=True)
    size = given.objects * given.bytes / 1e6
    print(f"\n{this_machine()}; {given.objects:,} objects, {size:,.0f} MB\n")
    print(markdown(("run", *HEADER), rows))
    print(f"\nmost memory of one driver process: {peak_of_children() / 2**20:.0f} MiB")
    print(f"median whole migration: {statistics.median(float(each[1]) for each in rows):.1f} s")


def peak_of_children() -> int:
    """Bytes: the largest resident set that any ended child process had (the drivers, and their probes)."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


if __name__ == "__main__":
    main()
