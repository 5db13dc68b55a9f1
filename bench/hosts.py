"""Planes on machines that are reached over ssh: how long a look at their hosts takes, near and far, and a creation.

Real sshd and systemd (nspawn), so that it takes root: ``PYTHONPATH=src:tests:bench python -m hosts [--runs N]``.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from support.hosts_lab import LabHost
from support.hosts_planes import HostsPlanes, hosts_planes

from quarterdeck.engine.workspace.home import Home
from quarterdeck.sites.netns.layout import OUTSIDE

SITE = "north"
#: Milliseconds of round trip between this host and the site.
DISTANCES = (0.0, 80.0, 180.0)
LOOKS = 30


def machines() -> dict[LabHost, tuple[str, ...]]:
    """Three zones, and a host that is edge and DNS server."""
    found: dict[LabHost, tuple[str, ...]] = {LabHost(f"{SITE}-{zone}", SITE, zone): ("control",) for zone in "abc"}
    return {**found, LabHost(f"{SITE}-edge", SITE, "a"): ("edge", "dns")}


async def looks(home: Home) -> list[float]:
    """Seconds of looks at all hosts, over connections that are kept."""
    site, took = home.sites.open(await home.site(SITE)), []
    for _ in range(LOOKS + 3):
        since = time.monotonic()
        seen = await site.facts()
        took.append(time.monotonic() - since)
        assert all(each.units is not None for each in seen.machines)
        await asyncio.sleep(0.2)  # as those who drive do, which is what is measured
    return took[3:]


def measured(made: HostsPlanes, runs: int) -> None:
    """Print it all."""
    made.add_site(SITE)
    made.planes.run("create", "first", "--site", SITE)
    made.share_programs()
    created = []
    for number in range(runs):
        made.planes.run("delete", "first" if number == 0 else f"next-{number - 1}", "--yes")
        created.append(made.planes.run("create", f"next-{number}", "--site", SITE).seconds)
    print(f"create of 3 replicas, programs on the hosts: {_told(created, 1, 's')}")
    for distance in DISTANCES:
        made.hosts.delay(OUTSIDE, SITE, distance)
        took = made.planes.read(looks)
        print(f"look at a settled plane of 3 hosts and an edge, {distance:.0f} ms away: {_told(took, 1000, 'ms')}")


def _told(took: list[float], factor: float, unit: str) -> str:
    low, middle, high = min(took) * factor, statistics.median(took) * factor, max(took) * factor
    return f"{middle:.1f} {unit} ({low:.1f} - {high:.1f}, {len(took)} times)"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="creations")
    with hosts_planes(machines()) as made:
        measured(made, parser.parse_args().runs)


if __name__ == "__main__":
    main()
