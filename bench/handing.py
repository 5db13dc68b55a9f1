"""For how long nobody runs node-ipam-controller while it goes from one manager to another: Nodes are created all the
time, and the longest time is told in which none of them got its pod CIDR.

``PYTHONPATH=src:tests:bench python -m handing [--replicas 3] [--runs 5]``
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import httpx2
from support.conditions import until
from support.controller_migration import CLOUD, KUBE, NAME, declared, move, nodes_come
from support.plane_lab import PlaneLab, plane_lab

QUIET = 20.0


@dataclass
class Assigned:
    """When Nodes got their pod CIDRs (monotonic seconds), as a watch tells."""

    times: list[float] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self, lab: PlaneLab) -> None:
        """Watch until told to stop, however often a watch ends."""
        while not self._stop.is_set():
            try:
                with (
                    lab.client(NAME).http(timeout=5.0) as http,
                    http.stream("GET", "/api/v1/nodes?watch=true&timeoutSeconds=20") as answer,
                ):
                    for line in answer.iter_lines():
                        self._told(json.loads(line)["object"])
                        if self._stop.is_set():
                            return
            except httpx2.HTTPError:
                continue

    def _told(self, node: dict[str, dict[str, str]]) -> None:
        name = node["metadata"]["name"]
        if node["spec"].get("podCIDR") and name not in self._seen:
            self._seen.add(name)
            self.times.append(time.monotonic())

    def stop(self) -> None:
        """No more of it."""
        self._stop.set()

    def longest(self, since: float) -> float:
        """The longest time since then in which no Node got any, in seconds."""
        later = [since, *(each for each in self.times if each >= since)]
        return max(after - before for before, after in pairwise(later))


@contextmanager
def assigned(lab: PlaneLab) -> Iterator[Assigned]:
    """Look on for the block."""
    made = Assigned()
    thread = threading.Thread(target=made.run, args=(lab,), name="assigned")
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join()


def measured(lab: PlaneLab, replicas: int, runs: int) -> None:
    """Print it all."""
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=replicas))
    with nodes_come(lab), assigned(lab) as seen:
        until(lambda: len(seen.times) > 20, "Nodes get their pod CIDRs", seconds=60)
        since = time.monotonic()
        time.sleep(QUIET)  # it is time itself that is measured
        print(f"{replicas} replicas, nothing is done: {seen.longest(since):.2f} s")
        for options in ((), ("--downtime-allowed",)):
            took: dict[str, list[float]] = {CLOUD: [], KUBE: []}
            whole: list[float] = []
            for _ in range(runs):
                for owner in (CLOUD, KUBE):
                    since = time.monotonic()
                    whole.append(lab.run(*move(owner), *options).seconds)
                    count = len(seen.times)
                    until(lambda: len(seen.times) > count + 3, "its new owner works", seconds=60)  # noqa: B023
                    took[owner].append(seen.longest(since))
            for owner, each in took.items():
                print(f"{replicas} replicas, to {owner} {' '.join(options)}: {_told(each)}")
            print(f"{replicas} replicas, the whole command {' '.join(options)}: {_told(whole)}")


def _told(took: list[float]) -> str:
    return f"{statistics.median(took):.2f} s ({min(took):.2f} - {max(took):.2f})"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    with plane_lab() as lab:
        measured(lab, asked.replicas, asked.runs)


if __name__ == "__main__":
    main()
