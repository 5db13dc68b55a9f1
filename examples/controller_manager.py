"""A small controller manager: three controllers, each in a set of its own, in whichever version is the newest that
runs.

    python examples/controller_manager.py --kubeconfig admin.yaml --version 1 --name old
    python examples/controller_manager.py --kubeconfig admin.yaml --version 2 --name new     # takes all three over

Each controller counts in a ConfigMap (in the namespace of the locks) how often it has worked, and writes down its
token: one that is lower than what it finds there is of a holder before. With Ctrl-C a manager lets go, and the other
goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
import time
from pathlib import Path

from prometheus_client import start_http_server
from prometheus_client.core import REGISTRY

from quarterdeck.errors import LeaseLost, QuarterdeckError, Unavailable
from quarterdeck.kube.kubeconfig import locks_of
from quarterdeck.kube.locks import KubeLocks
from quarterdeck.leases import Controller, ControllerSet, Held, LockMetrics, Manager

#: The two sets that move on their own, and what runs in them. The manager's own one is held first, and let go last.
MIGRATION = {"example-network-migration": ("service", "route"), "example-node-migration": ("nodeipam",)}
PRIMARY, PRIMARY_CONTROLLERS = "example-controller-manager", ("endpoints",)
EVERY = 1.0  # seconds


class Counter:
    """What a controller works on: a ConfigMap, written by compare-and-swap, in which tokens never go back."""

    def __init__(self, kube: KubeLocks, namespace: str, name: str) -> None:
        self._kube, self._name = kube, f"example-{name}"
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"

    async def work(self, held: Held) -> int:
        """Count one more; how often that is. Raises LeaseLost if somebody with a newer token was here."""
        answer = await self._kube.ask("GET", f"{self._path}/{self._name}")
        found = json.loads(answer.body) if answer.status == 200 else {"metadata": {"name": self._name}, "data": {}}
        data = found.get("data", {})
        if int(data.get("token", 0)) > held.token:
            raise LeaseLost(f"working on {self._name}", f"it was worked on with token {data['token']}", "end this")
        count = int(data.get("count", 0)) + 1
        found["data"] = {"count": str(count), "token": str(held.token), "holder": held.holder}
        held.check()
        method, path = ("PUT", f"{self._path}/{self._name}") if answer.status == 200 else ("POST", self._path)
        answer = await self._kube.ask(method, path, found)
        if answer.status not in (200, 201):
            raise Unavailable(f"writing {self._name}", f"the apiserver answered {answer.status}")
        return count


def controller(kube: KubeLocks, namespace: str, name: str) -> Controller:
    """A controller that counts once a second."""
    counter = Counter(kube, namespace, name)

    async def run(held: Held) -> None:
        print(f"{time.time():.3f} {name} begins with token {held.token}", flush=True)
        try:
            while True:
                held.check()
                try:
                    print(f"{time.time():.3f} {name} has worked {await counter.work(held)} times", flush=True)
                except Unavailable as error:
                    print(f"{time.time():.3f} {name}: {error}", flush=True)
                await asyncio.sleep(EVERY)
        finally:
            print(f"{time.time():.3f} {name} has ended", flush=True)

    return run


async def manage(arguments: argparse.Namespace) -> None:
    """Run until a signal says otherwise."""
    kube = locks_of(arguments.kubeconfig, arguments.namespace)

    def set_of(lock: str, names: tuple[str, ...]) -> ControllerSet:
        made = {name: controller(kube, arguments.namespace, name) for name in names}
        return ControllerSet(lock=lock, controllers=made)

    manager = Manager(
        kube,
        set_of(PRIMARY, PRIMARY_CONTROLLERS),
        [set_of(lock, names) for lock, names in MIGRATION.items()],
        precedence=arguments.version,
        name=arguments.name,
    )
    if arguments.metrics:
        REGISTRY.register(LockMetrics(manager))
        start_http_server(arguments.metrics, "127.0.0.1")
    running = asyncio.create_task(manager.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        print(f"{time.time():.3f} all locks were let go", flush=True)
    finally:
        await kube.close()


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", default="kube-system", help="of the locks, and of the ConfigMaps")
    parser.add_argument("--version", type=int, default=1, help="the newest one that runs has the locks")
    parser.add_argument("--name", default="", help="of this process, for people; that of the host if it is not given")
    parser.add_argument("--metrics", type=int, default=0, help="a port of 127.0.0.1 at which metrics are served")
    logging.basicConfig(format="%(asctime)s %(message)s")
    try:
        asyncio.run(manage(parser.parse_args()))
    except QuarterdeckError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
