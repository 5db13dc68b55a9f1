"""From nothing to ready: 1 and 3 replicas, beside a kwokctl cluster (one replica, etcd without TLS).

All run the same programs.

    python bench/create.py [--runs 5]

The three alternate in one run, so that a noisy machine is noisy for all of them. "Ready" is when the command
returns: for quarterdeck every replica is a healthy voter with a ready apiserver and running controllers, and the name
leads to a healthy load balancer; for kwokctl its own --wait.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

from lab import markdown, quarterdeck, spread, temporary_home, this_machine

from quarterdeck.upstream.catalog import CONTROL_PLANE, UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream


def programs() -> dict[UpstreamProgram, Path]:
    """Every program, fetched before anything is timed."""
    upstream = Upstream.from_environment(os.environ)
    wanted = (*CONTROL_PLANE, UpstreamProgram.KWOK, UpstreamProgram.KWOKCTL)
    return dict(asyncio.run(upstream.ensure(wanted, Versions())))


def kwok(paths: dict[UpstreamProgram, Path]) -> float:
    """Seconds that kwokctl takes."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "KWOK_WORKDIR": folder, "HOME": folder, "KUBECONFIG": f"{folder}/kubeconfig"}
        command = [str(paths[UpstreamProgram.KWOKCTL]), "--name", "bench"]
        since = time.monotonic()
        try:
            subprocess.run(
                [
                    *command,
                    *("create", "cluster", "--runtime", "binary", "--wait", "60s"),
                    *("--etcd-binary", str(paths[UpstreamProgram.ETCD])),
                    *("--kube-apiserver-binary", str(paths[UpstreamProgram.KUBE_APISERVER])),
                    *("--kube-controller-manager-binary", str(paths[UpstreamProgram.KUBE_CONTROLLER_MANAGER])),
                    *("--kube-scheduler-binary", str(paths[UpstreamProgram.KUBE_SCHEDULER])),
                    *("--kwok-controller-binary", str(paths[UpstreamProgram.KWOK])),
                ],
                env={**environment, "PATH": f"{paths[UpstreamProgram.KUBECTL].parent}:{environment['PATH']}"},
                check=True,
                capture_output=True,
                timeout=180,
            )
            return time.monotonic() - since
        finally:
            subprocess.run(
                [*command, "delete", "cluster"], env=environment, check=False, capture_output=True, timeout=60
            )


def ours(replicas: int) -> float:
    """Seconds that quarterdeck takes, in a home of its own: the first supervisors and the DNS server included."""
    with temporary_home():
        return quarterdeck("create", "bench", "--replicas", str(replicas))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    paths = programs()
    times: dict[str, list[float]] = {"kwokctl, 1 replica, etcd without TLS": [], "1 replica": [], "3 replicas": []}
    for number in range(runs):
        times["kwokctl, 1 replica, etcd without TLS"].append(kwok(paths))
        times["1 replica"].append(ours(1))
        times["3 replicas"].append(ours(3))
        print(
            f"run {number + 1}: " + ", ".join(f"{name} {values[-1]:.2f} s" for name, values in times.items()),
            flush=True,
        )
    base = times["kwokctl, 1 replica, etcd without TLS"]
    rows = [
        [name, spread(values), spread([value / other for value, other in zip(values, base, strict=True)])]
        for name, values in times.items()
    ]
    print(f"\n{this_machine()}; {runs} alternating runs\n")
    print(markdown(["from nothing to ready", "seconds: median (range)", "ratio to kwokctl: median (range)"], rows))


if __name__ == "__main__":
    main()
