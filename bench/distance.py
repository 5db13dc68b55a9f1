"""Live migrations between sites that are 0, 20, 80 and 160 ms of round trip apart (network namespaces; needs root or
unprivileged user namespaces). The delay is made by a forwarder in user space: it delays every packet, handshakes too.

    python bench/distance.py [--rtt 0 20 80 160]
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from lab import Noise, markdown, quarterdeck, temporary_home, this_machine
from migrate import HEADER, newest_report, row

from quarterdeck.sites.local.site_files import site_number
from quarterdeck.sites.netns.lab import Lab

SITES = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: near}
spec: {isolation: netns}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: far}
spec: {isolation: netns}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {name: bench}
spec:
  placement: {site: near}
  etcd: {heartbeatMilliseconds: 200, electionMilliseconds: 2000}
"""


async def _delay(folder: Path, rtt: float) -> None:
    lab = await Lab.open(folder)
    for site in ("near", "far"):
        await lab.add_site(site, site_number(folder, site))
    await lab.set_link("near", "far", delay_ms=rtt / 2)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rtt", type=float, nargs="+", default=[0, 20, 80, 160])
    rows = []
    with temporary_home() as folder:
        declared = folder / "bench.yaml"
        declared.write_text(SITES)
        quarterdeck("apply", "-f", str(declared))
        quarterdeck("wait", "bench")
        for number, rtt in enumerate(parser.parse_args().rtt):
            asyncio.run(_delay(folder, rtt))
            target = ("far", "near")[number % 2]
            noise = Noise()
            quarterdeck("migrate", "bench", "--to", target, "--probe", "--baseline", "25", "--yes", allowed=1)
            rows.append([f"{rtt:.0f}", *row(number, json.loads(newest_report(folder).read_bytes()), noise)[1:]])
            print(" ".join(rows[-1]), flush=True)
    print(f"\n{this_machine()}\n")
    print(markdown(("rtt ms", *HEADER), rows))


if __name__ == "__main__":
    main()
