"""The state of a running Envoy, read from its status listener (a read-only view of its admin API)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from quarterdeck.components.settings import url
from quarterdeck.components.traffic.envoy import APISERVERS, CLIENTS
from quarterdeck.errors import Unavailable
from quarterdeck.http import Http, NoAnswer
from quarterdeck.model.endpoints import BackendAddress

_TIMEOUT = 5.0
_OK = 200
_ACTIVE = f"listener.{CLIENTS}.downstream_cx_active"
_TOTAL = f"listener.{CLIENTS}.downstream_cx_total"
_STATS = f"/stats?format=json&filter=^listener\\.{CLIENTS}\\.downstream_cx_(active|total)$"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvoyView:
    """Envoy's current backends, which of them are healthy, and its clients' connections."""

    backends: Mapping[str, BackendAddress]
    healthy: frozenset[str]
    connections: int
    accepted_total: int

    def describe(self) -> str:
        """One line for people."""
        return f"it has {' '.join(sorted(self.backends)) or 'none'}; healthy {' '.join(sorted(self.healthy)) or 'none'}"


class _Part(BaseModel):
    model_config = ConfigDict(defer_build=True)  # built when a load balancer first answers


class _Socket(_Part):
    address: str
    port_value: int


class _Address(_Part):
    socket_address: _Socket


class _Health(_Part):
    # Envoy omits a flag when it is false.
    failed_active_health_check: bool = False
    pending_active_hc: bool = False


class _Host(_Part):
    hostname: str
    address: _Address
    health_status: _Health


class _ClusterStatus(_Part):
    name: str
    host_statuses: list[_Host] = Field(default_factory=list)


def _only_apiservers(clusters: object) -> object:
    """Other clusters have other shapes (the admin's own address is a socket without a port)."""
    if not isinstance(clusters, list):
        return clusters
    return [each for each in clusters if isinstance(each, dict) and each.get("name") == APISERVERS]


class _Clusters(_Part):
    cluster_statuses: Annotated[list[_ClusterStatus], BeforeValidator(_only_apiservers)]


class _Stat(_Part):
    name: str
    value: int


class _Stats(_Part):
    stats: list[_Stat]


class StatusClient:
    """Reads a status listener with ``http``, which presents the manager's certificate. ``deadline``: seconds for each
    of its answers. ``named``: the name in its certificate, where that is not its address.
    """

    def __init__(
        self, address: BackendAddress, http: Http, deadline: float = _TIMEOUT, named: str | None = None
    ) -> None:
        self._where = url(address.ip, address.port)
        self._http = http
        self._deadline = deadline
        self._named = named

    async def read(self) -> EnvoyView:
        """The current state; raises Unavailable when the answer is not Envoy's."""
        try:
            clusters = _Clusters.model_validate_json(await self._get("/clusters?format=json"))
            stats = _Stats.model_validate_json(await self._get(_STATS))
        except ValidationError as error:
            raise self._unavailable(f"an answer that is not Envoy's ({error.error_count()} fields)") from error
        except NoAnswer as error:
            raise self._unavailable(str(error)) from error
        hosts = [host for cluster in clusters.cluster_statuses for host in cluster.host_statuses]
        counters = {stat.name: stat.value for stat in stats.stats}
        return EnvoyView(
            backends={host.hostname: _address(host) for host in hosts},
            healthy=frozenset(host.hostname for host in hosts if _is_healthy(host.health_status)),
            connections=counters.get(_ACTIVE, 0),
            accepted_total=counters.get(_TOTAL, 0),
        )

    async def _get(self, path: str) -> bytes:
        answer = await self._http.ask("GET", self._where, path, deadline=self._deadline, server=self._named)
        if answer.status != _OK:
            raise self._unavailable(f"HTTP {answer.status} for {path}")
        return answer.body

    def _unavailable(self, seen: str) -> Unavailable:
        return Unavailable(f"reading the status of the load balancer at {self._where}", seen)


def _address(host: _Host) -> BackendAddress:
    socket = host.address.socket_address
    return BackendAddress(socket.address, socket.port_value)


def _is_healthy(health: _Health) -> bool:
    return not health.failed_active_health_check and not health.pending_active_hc
