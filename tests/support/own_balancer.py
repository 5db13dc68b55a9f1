"""A load balancer of the user's own: an Envoy that they run and configure themselves (docs/how-to/edges.md).

``python -m support.own_balancer FOLDER`` is their command: it sets it to what it reads.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quarterdeck.package import python_path
from quarterdeck.upstream import Upstream, UpstreamProgram, Versions

_TESTS = Path(__file__).parents[1]
_API = "type.googleapis.com/envoy"
_TLS = f"{_API}.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
_PROXY = f"{_API}.extensions.filters.network.tcp_proxy.v3.TcpProxy"
#: What commands print for people, of all load balancers: the last thing counts.
_ASKED = re.compile(r"must have exactly these backends:\n((?: {14}\S.*\n)+)|to stop leading to \S+")
_BACKEND = re.compile(r"^ +([0-9.]+):(\d+)  (\S+)$", re.MULTILINE)


def envoy() -> Path:
    """The program, fetched if it is not there: on a network that leads nowhere it cannot be any more."""
    return asyncio.run(Upstream.from_environment(os.environ).ensure([UpstreamProgram.ENVOY], Versions()))[
        UpstreamProgram.ENVOY
    ]


@dataclass(frozen=True)
class OwnBalancer:
    """One that listens at ``address``:``port``; what it is set to is in ``folder``."""

    folder: Path
    address: str
    port: int

    @property
    def command(self) -> list[str]:
        """What quarterdeck is told to run."""
        path = f"PYTHONPATH={_TESTS}{os.pathsep}{python_path()}"
        return ["/usr/bin/env", path, sys.executable, "-P", "-m", "support.own_balancer", str(self.folder)]

    def have(self, backends: Mapping[str, tuple[str, int]]) -> None:
        """Set it: backends by name, each an address and a port."""
        endpoints = [
            {"endpoint": {"hostname": name, "address": _address(*at)}} for name, at in sorted(backends.items())
        ]
        kind = f"{_API}.config.endpoint.v3.ClusterLoadAssignment"
        resource = {"@type": kind, "cluster_name": "own", "endpoints": [{"lb_endpoints": endpoints}]}
        new = self.folder / "backends.new"
        new.write_text(json.dumps({"resources": [resource]}))
        new.rename(self.folder / "backends.json")

    def backends(self) -> list[str]:
        """The names of what it is set to."""
        (resource,) = json.loads((self.folder / "backends.json").read_text())["resources"]
        return [each["endpoint"]["hostname"] for each in resource["endpoints"][0]["lb_endpoints"]]

    def as_a_person(self, output: str) -> None:
        """Set it to the last thing that was asked for, if anything was."""
        asked = list(_ASKED.finditer(output))
        if asked:
            self.have({name: (ip, int(port)) for ip, port, name in _BACKEND.findall(asked[-1][1] or "")})


@contextmanager
def own_balancer(program: Path, folder: Path, address: str, port: int) -> Iterator[OwnBalancer]:
    """It runs for the block, and leads to nobody at first."""
    folder.mkdir()
    made = OwnBalancer(folder, address, port)
    made.have({})
    config = folder / "envoy.json"
    config.write_text(json.dumps(_config(made)))
    argv = (str(program), "--config-path", str(config), "--concurrency", "1", "--disable-hot-restart")
    with (folder / "envoy.log").open("wb") as log, subprocess.Popen(argv, stdout=log, stderr=log) as process:
        try:
            yield made
            assert process.poll() is None, (folder / "envoy.log").read_text()[-2000:]
        finally:
            process.kill()


def _config(made: OwnBalancer) -> dict[str, Any]:
    proxy = {"@type": _PROXY, "stat_prefix": "own", "cluster": "own", "idle_timeout": "0s", "max_connect_attempts": 5}
    listener = {
        "name": "own",
        "address": _address(made.address, made.port),
        "filter_chains": [{"filters": [{"name": "tcp", "typed_config": proxy}]}],
    }
    check = {
        "timeout": "2s",
        "interval": "2s",
        "no_traffic_interval": "2s",
        "unhealthy_threshold": 3,
        "healthy_threshold": 1,
        "transport_socket_match_criteria": {"speaks": "tls"},
        "http_health_check": {
            "path": "/readyz",
            "host": "own",
            "retriable_statuses": [{"start": 400, "end": 600}],
        },
    }
    tls = {"name": "tls", "typed_config": {"@type": _TLS}}
    source = {"path": str(made.folder / "backends.json"), "watched_directory": {"path": str(made.folder)}}
    cluster = {
        "name": "own",
        "type": "EDS",
        "eds_cluster_config": {"eds_config": {"resource_api_version": "V3", "path_config_source": source}},
        "connect_timeout": "1s",
        "health_checks": [check],
        "transport_socket_matches": [{"name": "check", "match": {"speaks": "tls"}, "transport_socket": tls}],
        "ignore_health_on_host_removal": True,
        "close_connections_on_host_health_failure": True,
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
    }
    return {
        "node": {"id": "own", "cluster": "own"},
        "static_resources": {"listeners": [listener], "clusters": [cluster]},
    }


def _address(ip: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": ip, "port_value": port}}


def main(folder: Path) -> None:
    """Their command."""
    wanted = json.load(sys.stdin)
    (listen,) = wanted["listen"]
    made = OwnBalancer(folder, listen["address"], listen["port"])
    made.have({each["name"]: (each["address"], each["port"]) for each in wanted["backends"]})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
