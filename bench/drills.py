"""What clients notice when something fails, and how long it takes until it is known and made good, in drills.

    python bench/drills.py [--fail unit,machine,zone,edge,dns,leader] [--runs 5] [--megabytes 20] [--isolation netns]

A manager keeps a plane of three replicas. "last failure" is when the last request failed, in seconds from the failure
on, and "last failed sent" when the last of those was sent that were not under way when it began; "as before" is when
the plane was as it was and survived again all that it had survived.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import Noise, manager, markdown, quarterdeck, temporary_home, this_machine

from quarterdeck.api.site import Isolation
from quarterdeck.drivers.networks import inside_argv
from quarterdeck.model.faults import Fail

NAME = "drilled"
SITE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {{name: lab}}
spec: {{isolation: {isolation}, edges: 2, floatingAddresses: {floats}}}
"""
ALL = "unit,machine,zone,edge,dns,leader"
#: Bytes of each object that the plane is filled with.
SIZE = 100 * 2**10


def filled(home: Path, isolation: Isolation, megabytes: int) -> None:
    """Fill the plane, from where its machines are."""
    objects = str(megabytes * 2**20 // SIZE)
    argv: Sequence[str] = (
        sys.executable,
        str(Path(__file__).with_name("fill.py")),
        str(home),
        NAME,
        objects,
        str(SIZE),
    )
    if isolation is Isolation.NETNS:
        argv = asyncio.run(inside_argv(home, *argv))
    subprocess.run(argv, check=True)


def drilled(fail: Fail) -> dict[str, Any]:
    """The result of one drill. Raises SystemExit where it could not be made."""
    argv = (sys.executable, "-m", "quarterdeck", "drill", NAME, "--fail", fail, "--yes", "-o", "json")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    quarterdeck("wait", NAME)
    status: dict[str, Any] = json.loads(done.stdout)
    if done.returncode:
        print(f"{fail}: {status['message']}", flush=True)
    return status


def cell(runs: Sequence[dict[str, Any]], key: str) -> str:
    """``median (least - most)`` of what came; how often it did not."""
    values = [each[key] for each in runs if each[key] is not None]
    missing = f", {len(runs) - len(values)} none" if len(values) < len(runs) else ""
    return f"{statistics.median(values):.1f} ({min(values):.1f} - {max(values):.1f}){missing}" if values else "-"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fail", default=ALL, help="what fails, by commas")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--isolation", type=Isolation, choices=list(Isolation), default=Isolation.NETNS)
    wanted = parser.parse_args()
    kinds = [Fail(each) for each in wanted.fail.split(",")]
    rows = []
    with temporary_home() as home, tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site.yaml"
        site.write_text(
            SITE.format(isolation=wanted.isolation, floats=str(wanted.isolation is Isolation.NETNS).lower())
        )
        quarterdeck("apply", "-f", str(site))
        quarterdeck("create", NAME, "--site", "lab", "--replicas", "3")
        filled(home, wanted.isolation, wanted.megabytes)
        with manager():
            quarterdeck("wait", NAME)
            for fail in kinds:
                noise = Noise()
                runs = []
                for number in range(wanted.runs):
                    runs.append(drilled(fail))
                    print(f"{fail} {number + 1}: {runs[-1]}", flush=True)
                moments = ("lastFailedSent", "lastFailure", "detected", "servedAgain", "redundant")
                times = [cell(runs, f"{each}Seconds") for each in moments]
                counts = [str(sum(each[key] for each in runs)) for key in ("requests", "failed", "lost", "missed")]
                rows.append([fail, *counts, *times, *noise.cells()])
    print(f"\n{this_machine()}; {wanted.runs} drills each, {wanted.megabytes} MB\n")
    header = [
        "fails",
        "requests",
        "failed",
        "lost",
        "missed",
        "last failed sent: s",
        "last failure: s",
        "known: s",
        "served again: s",
    ]
    print(markdown([*header, "as before: s", "stolen s", "pace ms"], rows))


if __name__ == "__main__":
    main()
