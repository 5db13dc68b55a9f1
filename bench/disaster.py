"""Everything is lost but the backup store: how much of it comes back, how soon, and what the backups cost before.

    python bench/disaster.py [--runs 5] [--megabytes 20] [--rate 500] [--replicas 1]

In each run clients update ConfigMaps of 1 kB at a steady rate through the plane's API while ``quarterdeck serve`` backs
the plane up. At a random moment all its processes and the manager are killed, and the home is deleted. *Recovery point*
is the age of the oldest acknowledged write that is missing after ``quarterdeck restore --from``; *recovery time* is
from the start of that command until a write is acknowledged. *p99* is of windows with the backups on and off, in turn,
before the first disaster.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from drills import filled
from lab import Noise, markdown, spread, this_machine
from support.clients import CONFIGMAPS, Target
from support.conditions import until
from support.plane_lab import PlaneLab, managed, plane_lab

from quarterdeck.api.site import Isolation

WRITERS = 8
WINDOW = 20.0
PLANE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: drilled}}
spec:
  replicas: {replicas}
  placement: {{site: east}}
  endpoint: {{ttl: 1}}
  backup: {{enabled: {enabled}, store: 'file://{store}'}}
"""
NAME = "drilled"


@dataclass
class Writer:
    """One client that updates one ConfigMap at a steady rate, until it is stopped or its connection ends."""

    number: int
    target: Target
    interval: float
    stopped: threading.Event
    error: Exception | None = None
    #: When the write of each count was acknowledged, and the seconds that it took.
    acknowledged: list[tuple[float, float]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"{CONFIGMAPS}/writer-{self.number}"

    def run(self) -> None:
        """Count: the first count is 1."""
        server, proxy = urlsplit(self.target.server), urlsplit(self.target.proxy) if self.target.proxy else None
        first = proxy or server
        connection = http.client.HTTPSConnection(
            str(first.hostname), first.port, context=self.target.context, timeout=10
        )
        if proxy:
            secret = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
            headers = {"Proxy-Authorization": f"Basic {secret}"}
            connection.set_tunnel(str(server.hostname), server.port, headers)
        due = time.monotonic() + random.random() * self.interval
        method, path = "POST", CONFIGMAPS
        while not self.stopped.wait(max(due - time.monotonic(), 0)):
            count = str(len(self.acknowledged) + 1)
            body = {"metadata": {"name": f"writer-{self.number}"}, "data": {"count": count, "text": "x" * 1000}}
            since = time.monotonic()
            try:
                connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
                with connection.getresponse() as answer:
                    answer.read()
                    if answer.status == http.client.CONFLICT and method == "POST":
                        method, path = "PUT", self.path
                        continue
                    if answer.status >= http.client.BAD_REQUEST:
                        raise SystemExit(f"a write was refused with status {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                self.error = error  # the plane is gone, or never was reached
                return
            method, path = "PUT", self.path
            now = time.monotonic()
            self.acknowledged.append((now, now - since))
            due += self.interval


@contextmanager
def writing(lab: PlaneLab, rate: float) -> Iterator[list[Writer]]:
    """Writers at work until the block ends."""
    target, stopped = lab.client(NAME).target(), threading.Event()
    writers = [Writer(number, target, WRITERS / rate, stopped) for number in range(WRITERS)]
    threads = [threading.Thread(target=each.run) for each in writers]
    for each in threads:
        each.start()
    try:
        yield writers
    finally:
        stopped.set()
        for each in threads:
            each.join()


def p99(lab: PlaneLab, store: Path, rate: float, replicas: int, windows: int) -> tuple[list[float], list[float]]:
    """Milliseconds with the backups on, and with the backups off, of each window."""
    found: dict[bool, list[float]] = {True: [], False: []}
    with managed(lab):
        for enabled in (True, False) * windows:
            apply(lab, store, replicas, enabled=enabled)
            if enabled:
                lab.run("backup", "create", NAME)
            with writing(lab, rate) as writers:
                time.sleep(WINDOW)  # the length of the window
            if broken := next((each.error for each in writers if each.error), None):
                raise broken
            taken = [seconds for each in writers for _, seconds in each.acknowledged[10:]]
            found[enabled].append(statistics.quantiles(taken, n=100)[98] * 1e3)
            print(
                f"p99 with backups {'on' if enabled else 'off'}: {found[enabled][-1]:.1f} ms, {len(taken)} writes",
                flush=True,
            )
    return found[True], found[False]


def apply(lab: PlaneLab, store: Path, replicas: int, *, enabled: bool = True) -> None:
    text = PLANE.format(replicas=replicas, store=store, enabled=str(enabled).lower())
    lab.run("apply", "-f", str(lab.file(text)))


def serves(lab: PlaneLab) -> bool:
    """Whether a write is acknowledged, once the restored home has the plane."""
    try:
        return lab.client(NAME).writes("after")
    except AssertionError:  # the plane is not there yet
        return False


def lost(lab: PlaneLab, store: Path, rate: float) -> tuple[float, float, float]:
    """The writes per second, the recovery point and the recovery time in seconds of one disaster."""
    key = lab.scratch()
    key.touch(mode=0o600)
    key.write_bytes(Path(lab.run("backup", "key", "-o", "json").json["file"]).read_bytes())
    with writing(lab, rate) as writers:
        manager = lab.start("serve", "--log-format", "json")
        until(lambda: '"serving"' in manager.output, "it serves")  # else the command itself backs the plane up
        lab.run("backup", "create", NAME)
        since = time.monotonic()
        time.sleep(random.uniform(5, 15))  # the random moment
        taken = sum(len([1 for at, _ in each.acknowledged if at > since]) for each in writers)
        died = time.monotonic()
        manager.kill()
        lab.lose_home()
    began = time.monotonic()
    restoring = lab.start("restore", NAME, "--from", f"file://{store}", "--key", str(key), "--yes")
    until(lambda: serves(lab), "the API serves again", seconds=180)
    recovery = time.monotonic() - began
    done = restoring.end()
    if done.code:
        raise SystemExit(str(done))
    missing = []
    with lab.client(NAME).http() as client:
        for each in writers:
            count = int(client.get(each.path).raise_for_status().json()["data"]["count"])
            missing += [at for at, _ in each.acknowledged[count:]]
    return taken / (died - since), max((died - at for at in missing), default=0.0), recovery


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--replicas", type=int, default=1)
    wanted = parser.parse_args()
    noise, runs = Noise(), []
    with plane_lab() as lab, tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        apply(lab, store, wanted.replicas)
        filled(Path(lab.home), Isolation.LOOPBACK, wanted.megabytes)
        on, off = p99(lab, store, wanted.rate, wanted.replicas, wanted.runs)
        apply(lab, store, wanted.replicas)
        for _ in range(wanted.runs):
            runs.append(lost(lab, store, wanted.rate))
            print("writes/s, recovery point, recovery time:", *(f"{each:.2f}" for each in runs[-1]), flush=True)
    print(f"\n{this_machine()}; {wanted.runs} runs, {wanted.replicas} replicas, {wanted.megabytes} MB\n")
    rates, points, times = zip(*runs, strict=True)
    header = [
        "writes/s",
        "recovery point s",
        "recovery time s",
        "p99 on ms",
        "p99 off ms",
        "on / off",
        "stolen s",
        "pace ms",
    ]
    ratios = [one / other for one, other in zip(on, off, strict=True)]
    print(markdown(header, [[*map(spread, (rates, points, times, on, off, ratios)), *noise.cells()]]))


if __name__ == "__main__":
    sys.exit(main())
