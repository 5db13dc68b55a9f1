"""Live migrations with the probe, with a database of a given size.

    python bench/migrate.py [--runs 3] [--objects 2000] [--bytes 10000] [--keep FOLDER]

2,000 objects of 10 kB are 20 MB; --objects 10000 --bytes 100000 is 1 GB. Each run moves the plane to the other site.
"own lag" is the longest time for which the probe itself did not get to run: what cannot be told from a stall. "stolen"
is the processor time that the hypervisor gave to others in the run, "loop ms" what a fixed piece of work took of it.
--keep keeps the report and the units' logs of the run with the longest stall, for those who want to know why.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import statistics
from pathlib import Path

from fill import fill
from lab import Noise, markdown, quarterdeck, temporary_home, this_machine

from quarterdeck.sites.local.supervisor.records import LOG

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
    "own lag ms",
    "stolen s",
    "loop ms",
)


def newest_report(folder: Path) -> Path:
    """The report.json of the home's last migration."""
    return max((folder / "reports").glob("*/report.json"), key=lambda path: path.stat().st_mtime)


def stall_of(report: dict) -> float:  # type: ignore[type-arg]
    """Milliseconds: the longest stall in the migration."""
    probe = report["probe"]
    during = probe["compared"][1]
    return max(each["overall"]["stallMs"] for each in probe["periods"] if each["label"] == during)


def keep(home: Path, report: Path, folder: Path) -> None:
    """Copy the report and the logs of all units to ``folder``, in place of what it had."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(report.parent, folder / "report")
    for log in (home / "sites").glob(f"*/machines/*/units/*/{LOG}"):
        site, _, machine, _, unit, _ = log.relative_to(home / "sites").parts
        shutil.copyfile(log, folder / f"{site}-{machine}-{unit}.log")


def row(number: int, report: dict, noise: Noise) -> list[str]:  # type: ignore[type-arg]
    """What one migration showed; ``noise``: noted when it began."""
    probe = report["probe"]
    periods = {period["label"]: period for period in probe["periods"]}
    change = periods[probe["compared"][1]]
    quiet, during = periods["quiet"]["overall"], change["overall"]
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
        f"{change['ownLagMs']:.0f}",
        *noise.cells(),
    ]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--objects", type=int, default=2_000)
    parser.add_argument("--bytes", type=int, default=10_000)
    parser.add_argument("--baseline", type=float, default=25.0)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    rows = []
    worst = 0.0
    with temporary_home() as folder:
        quarterdeck("create", "bench")
        asyncio.run(fill(folder, "bench", objects=given.objects, size=given.bytes))
        for number in range(given.runs):
            target = SITES[(number + 1) % 2]
            noise = Noise()
            quarterdeck(
                "migrate", "bench", "--to", target, "--probe", "--baseline", str(given.baseline), "--yes", allowed=1
            )
            path = newest_report(folder)
            report = json.loads(path.read_bytes())
            rows.append(row(number + 1, report, noise))
            if given.keep and stall_of(report) > worst:
                worst = stall_of(report)
                keep(folder, path, given.keep)
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
