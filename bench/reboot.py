"""A host that was rebooted: all that ran is gone, a manager starts, and planes of one replica serve again.

    python bench/reboot.py [--planes 10] [--runs 3] [--settled 60]

Everything that runs of the home is killed at once, as by a power cut; then ``quarterdeck serve`` starts, as its service
does at boot. "serves" counts from that start until a client of its own gets 200 from /readyz of a plane; "all" is the
last plane. Then the manager is watched for a while: its share of one processor, and its memory.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
from httpx2 import HTTPError
from lab import Noise, manager, markdown, quarterdeck, spread, temporary_home, this_machine
from support.clients import Client
from support.leftovers import processes_of

#: Seconds that a manager gets to end, and planes to serve again, before the run is given up.
ENDING = 30.0
PATIENCE = 600.0


def answers(client: Client) -> bool:
    """Whether a plane serves a client that has no connection to it yet."""
    with suppress(HTTPError, OSError), client.http(timeout=1.0) as http:
        return http.get("/readyz").status_code == 200
    return False


def served(clients: dict[str, Client], since: float) -> dict[str, float]:
    """Seconds from ``since`` until each plane serves. Raises SystemExit when one does not."""
    done: dict[str, float] = {}
    while len(done) < len(clients):
        for name, client in clients.items():
            if name not in done and answers(client):
                done[name] = time.monotonic() - since
        if time.monotonic() - since > PATIENCE:
            raise SystemExit(f"after {PATIENCE:g} s these do not serve: {sorted(set(clients) - set(done))}")
        time.sleep(0.1)
    return done


def settled(manager: subprocess.Popen[bytes], seconds: float) -> tuple[float, float]:
    """The share of one processor that the manager takes over a while, and its memory then, in MiB (resident)."""
    process = psutil.Process(manager.pid)
    before = process.cpu_times()
    time.sleep(seconds)  # what is measured is that nothing happens
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / seconds, process.memory_info().rss / 2**20


def rebooted(home: Path, clients: dict[str, Client], seconds: float) -> tuple[dict[str, float], float, float]:
    """Kill all; the seconds until each plane serves; the manager's share of a processor, and its memory in MiB."""
    while running := processes_of(home):
        for each in running:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(running, timeout=ENDING)
    if any(map(answers, clients.values())):
        raise SystemExit("a plane serves although all that ran was killed")
    since = time.monotonic()
    with manager() as process:
        times = served(clients, since)
        time.sleep(30.0)  # all is as wanted soon after it serves; the share is that of planes at rest
        share, memory = settled(process, seconds)
    return times, share, memory


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--settled", type=float, default=60.0, help="seconds for which a settled manager is watched")
    wanted = parser.parse_args()
    names = [f"plane-{number}" for number in range(wanted.planes)]
    rows = []
    with temporary_home() as home, tempfile.TemporaryDirectory() as folder:
        clients: dict[str, Client] = {}
        for name in names:
            took = quarterdeck("create", name, "--replicas", "1")
            print(f"{name} created in {took:.1f} s", flush=True)
            clients[name] = Client(Path(folder) / name)
            quarterdeck("kubeconfig", name, "--output-file", str(clients[name].kubeconfig))
        for number in range(wanted.runs):
            noise = Noise()
            times, share, memory = rebooted(home, clients, wanted.settled)
            last = max(times.values())
            cells = [f"{last:.1f}", spread(list(times.values())), f"{share / wanted.planes:.2%}", f"{memory:.0f}"]
            rows.append([str(number + 1), *cells, *noise.cells()])
            print(f"run {number + 1}: all {wanted.planes} serve after {last:.1f} s", flush=True)
    print(f"\n{this_machine()}; {wanted.planes} planes of 1 replica\n")
    header = ["run", "all serve: s", "a plane serves: s, median (range)", "processor per plane, settled", "memory: MiB"]
    print(markdown([*header, "stolen s", "pace ms"], rows))


if __name__ == "__main__":
    main()
