"""Changes of a plane that stays where it is, with the probe, with a database of a given size.

    python bench/change.py [--runs 2] [--objects 2000] [--bytes 10000]

2,000 objects of 10 kB are 20 MB. Each run scales 1 -> 3, sets one flag of the apiserver, renews all certificates, and
scales 3 -> 1; "seconds" is from the command to its end, when all is as wanted. "status" is a whole `status` beside it,
with nothing else going on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from fill import fill
from lab import Noise, markdown, quarterdeck, spread, temporary_home, this_machine

NAME = "bench"


def flag(folder: Path, value: int) -> str:
    """A file that declares the plane as it is, with one flag of its apiservers set to that."""
    done = subprocess.run(
        [sys.executable, "-m", "quarterdeck", "get", NAME, "-o", "yaml"], capture_output=True, text=True, check=True
    )
    document = yaml.safe_load(done.stdout)
    document.pop("status")
    document["metadata"] = {"name": NAME}
    document["spec"]["extraArgs"]["kubeApiserver"] = {"max-requests-inflight": str(value)}
    path = folder / "flag.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def probed(*command: str) -> tuple[float, dict[str, Any]]:
    """The seconds that a command took, and what the probe saw meanwhile."""
    probe = subprocess.Popen(
        [sys.executable, "-m", "quarterdeck", "probe", NAME, "-o", "json"], stdout=subprocess.PIPE, text=True
    )
    try:
        time.sleep(3.0)  # for its clients to be at work; it is no part of what is measured
        seconds = quarterdeck(*command)
    finally:
        probe.send_signal(signal.SIGINT)
        text, _ = probe.communicate(timeout=60)
    return seconds, json.loads(text)


def row(what: str, seconds: float, seen: dict[str, Any], noise: Noise) -> list[str]:
    """One change: how long it took, and what clients saw."""
    periods = [each["overall"] for each in seen["periods"]]
    return [
        what,
        f"{seconds:.1f}",
        f"{sum(each['requests'] for each in periods):,}",
        str(len(seen["failures"])),
        str(seen["writes"]["lost"]),
        str(seen["watches"]["missed"]),
        f"{max(each['stallMs'] for each in periods):.0f}",
        *noise.cells(),
    ]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--objects", type=int, default=2_000)
    parser.add_argument("--bytes", type=int, default=10_000)
    given = parser.parse_args()
    rows = []
    with temporary_home() as folder:
        quarterdeck("create", NAME, "--replicas", "1")
        asyncio.run(fill(folder, NAME, objects=given.objects, size=given.bytes))
        for run in range(given.runs):
            for what, command in (
                ("scale 1 -> 3", ("scale", NAME, "--replicas", "3", "--yes")),
                ("one flag", ()),
                ("certs renew", ("certs", "renew", NAME, "--yes")),
                ("scale 3 -> 1", ("scale", NAME, "--replicas", "1", "--yes")),
            ):
                noise = Noise()
                asked = command or ("apply", "-f", flag(folder, 390 + run))
                rows.append(row(what, *probed(*asked), noise))
                print(" ".join(rows[-1]), flush=True)
        looks = [quarterdeck("status", NAME) for _ in range(10)]
    print(f"\n{this_machine()}; {given.objects:,} objects\n")
    print(
        markdown(("change", "seconds", "requests", "failed", "lost", "missed", "stall ms", "stolen s", "loop ms"), rows)
    )
    print(f"\nstatus: {spread(looks)} s")


if __name__ == "__main__":
    main()
