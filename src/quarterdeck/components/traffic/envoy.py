"""Envoy as a plane's load balancer: TCP, TLS passes through, active health checks.

The unit's own file (the bootstrap) never changes while the plane lives, since a change restarts Envoy and cuts
every client. All that does change is in the live files, which Envoy watches and reloads in place: the backends
(EDS) and the certificates (SDS). Field names are those of Envoy's v3 API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeAlias

from quarterdeck.components.credentials import KeyPair
from quarterdeck.components.ports import READYZ_FOUNDED
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.model.units import UnitFile, UnitSpec

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool"

#: The prefix of the statistics of the listener that clients connect to.
CLIENTS = "clients"
#: The cluster of the apiservers.
APISERVERS = "apiservers"

_API = "type.googleapis.com/envoy"
_SERVING_SECRET = "status-serving"  # noqa: S105 - a name
_TRUST_SECRET = "plane-trust"  # noqa: S105 - a name
_READ_ONLY = ("/clusters", "/stats")  # the admin API's paths that may be asked, with a query
_ADMIN_SOCKET = "admin.sock"
_OWN_HOST = "127.0.0.1"
_CONNECT_TIMEOUT = 1.0
# Finds a dead peer of a quiet connection. (No TCP_USER_TIMEOUT: Linux would cut clients that pause reading, too.)
_KEEPALIVE: Json = {"keepalive_time": 10, "keepalive_interval": 5, "keepalive_probes": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """GET /readyz over TLS. Times in seconds.

    A backend is out, with its connections cut, after ``failures`` failed checks in a row, and in again after one that
    succeeds. A check that waits for ``timeout`` failed too. A process that died is out within 1.2 s (new connections
    pass it over at once), a machine that died within 7.2 s. Not sooner: an apiserver whose etcd elects a leader
    answers late, or with an error once its own 2 s are over (kubernetes: --etcd-readycheck-timeout), and so do all
    others at that moment. To cut them would fail requests that only have to wait. Not later: controllers that renew
    their lease over a connection to the dead machine have 10 s for it (client-go: RenewDeadline).
    """

    interval: float = 0.4
    timeout: float = 2.0
    failures: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerSettings:
    """What one load balancer is, for as long as it runs.

    Clients connect to ``address``:``port``. The status listener at ``address``:``status_port`` answers two
    read-only admin paths. Both listen at the ``floating`` addresses as well, whether the machine has them now or
    not. ``ready_port``: where it reports, to any process of its own machine, how many apiservers it leads to (None:
    nowhere). ``server_name`` is a DNS name in the serving certificate of every apiserver.
    """

    unit: str
    binary: PurePosixPath
    folder: PurePosixPath
    address: str
    port: int
    status_port: int
    floating: tuple[str, ...] = ()
    ready_port: int | None = None
    server_name: str = "kubernetes.default.svc"
    health: HealthCheck = field(default_factory=HealthCheck)


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerTls:
    """The plane's CA (PEM), what the status listener serves with, and which clients it answers: the holder of a client
    certificate of that CA with the subject ``manager`` (as RFC 4514 writes it).
    """

    ca: bytes = field(repr=False)
    serving: KeyPair
    manager: str


def balancer_unit(settings: BalancerSettings, manager: str) -> UnitSpec:
    """The unit. Its live files must be there before it starts."""
    bootstrap = settings.folder / "bootstrap.json"
    return UnitSpec(
        name=settings.unit,
        argv=(
            str(settings.binary),
            *("--config-path", str(bootstrap)),
            *("--concurrency", "1"),
            *("--log-level", "warn"),
            "--disable-hot-restart",  # it would share memory with every other Envoy of the machine
        ),
        files=(UnitFile(bootstrap, _encode(_bootstrap(settings, manager))),),
        stop_timeout=5.0,
    )


def backends_file(settings: BalancerSettings, backends: Mapping[str, BackendAddress]) -> UnitFile:
    """The live file that lists the backends; names travel as the endpoints' host names."""
    endpoints: list[Json] = [
        {"endpoint": {"hostname": name, "address": _address(backends[name])}} for name in sorted(backends)
    ]
    assignment: Json = {
        "@type": f"{_API}.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": APISERVERS,
        "endpoints": [{"lb_endpoints": endpoints}],
    }
    return UnitFile(_live(settings) / "backends.json", _encode({"resources": [assignment]}))


def tls_files(settings: BalancerSettings, tls: BalancerTls) -> tuple[UnitFile, ...]:
    """The live files with the certificates."""
    serving: Json = {
        "certificate_chain": {"inline_string": tls.serving.certificate.decode()},
        "private_key": {"inline_string": tls.serving.key.decode()},
    }
    return (
        _secret(settings, _SERVING_SECRET, "tls_certificate", serving),
        _secret(settings, _TRUST_SECRET, "validation_context", _trust(tls.ca)),
    )


def _trust(ca: bytes) -> Json:
    return {"trusted_ca": {"inline_string": ca.decode()}}


def _secret(settings: BalancerSettings, name: str, kind: str, value: Json) -> UnitFile:
    secret: Json = {"@type": f"{_API}.extensions.transport_sockets.tls.v3.Secret", "name": name, kind: value}
    return UnitFile(_live(settings) / f"{name}.json", _encode({"resources": [secret]}))


def _bootstrap(settings: BalancerSettings, manager: str) -> Json:
    # Relative to the unit's own folder (0700), in which it runs: a socket's path may have 107 bytes, a folder's more.
    # An abstract socket would be open to all users of the host, to use or to occupy.
    admin: Json = {"pipe": {"path": _ADMIN_SOCKET, "mode": 0o600}}
    return {
        "node": {"id": settings.unit, "cluster": "quarterdeck"},
        "admin": {"address": admin, "allow_paths": [{"prefix": f"{path}?"} for path in _READ_ONLY]},
        "static_resources": {
            "listeners": [
                _clients_listener(settings),
                _status_listener(settings, manager),
                *([_ready_listener(settings.ready_port)] if settings.ready_port is not None else []),
            ],
            "clusters": [_apiservers_cluster(settings), _admin_cluster(admin)],
        },
    }


def _clients_listener(settings: BalancerSettings) -> Json:
    proxy: Json = {
        "@type": f"{_API}.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": CLIENTS,
        "cluster": APISERVERS,
        "idle_timeout": "0s",  # a quiet watch is not a dead one; keepalives find those
        "max_connect_attempts": 5,  # a refusing backend must not affect the client: try the next
    }
    return {
        "name": CLIENTS,
        "stat_prefix": CLIENTS,
        **_at(settings, settings.port),
        "enable_reuse_port": False,  # with it a port that is in use would be shared, not refused
        "per_connection_buffer_limit_bytes": 262_144,
        "tcp_keepalive": _KEEPALIVE,
        "filter_chains": [{"filters": [{"name": "tcp", "typed_config": proxy}]}],
    }


def _status_listener(settings: BalancerSettings, subject: str) -> Json:
    tls: Json = {
        "@type": f"{_API}.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "require_client_certificate": True,
        "common_tls_context": {
            "tls_certificate_sds_secret_configs": [_watched_secret(settings, _SERVING_SECRET)],
            "validation_context_sds_secret_config": _watched_secret(settings, _TRUST_SECRET),
        },
    }
    return {
        "name": "status",
        "stat_prefix": "status",
        **_at(settings, settings.status_port),
        "enable_reuse_port": False,
        "filter_chains": [
            {
                "filters": [
                    {"name": "manager only", "typed_config": _only(subject)},
                    {"name": "http", "typed_config": _admin_view("status", _READ_ONLY)},
                ],
                "transport_socket": {"name": "tls", "typed_config": tls},
            }
        ],
    }


def _ready_listener(port: int) -> Json:
    """A local listener that reports how many apiservers it leads to, and other numbers."""
    return {
        "name": "ready",
        "stat_prefix": "ready",
        "address": _address(BackendAddress(_OWN_HOST, port)),
        "enable_reuse_port": False,
        "filter_chains": [{"filters": [{"name": "http", "typed_config": _admin_view("ready", ("/stats",))}]}],
    }


def _admin_view(prefix: str, paths: Sequence[str]) -> Json:
    get: Json = {"name": ":method", "string_match": {"exact": "GET"}}
    return {
        "@type": f"{_API}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": prefix,
        "http_filters": [
            {"name": "router", "typed_config": {"@type": f"{_API}.extensions.filters.http.router.v3.Router"}}
        ],
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "status",
                    "domains": ["*"],
                    "routes": [
                        {"match": {"path": path, "headers": [get]}, "route": {"cluster": "admin"}} for path in paths
                    ],
                }
            ]
        },
    }


def _at(settings: BalancerSettings, port: int) -> dict[str, Json]:
    """The address of a listener."""
    found: dict[str, Json] = {"address": _address(BackendAddress(settings.address, port))}
    if settings.floating:
        more = [{"address": _address(BackendAddress(each, port))} for each in settings.floating]
        found |= {"additional_addresses": more, "freebind": True}
    return found


def _only(subject: str) -> Json:
    """Refuses client certificates with another subject (those without alternative names are matched by it)."""
    principal: Json = {"authenticated": {"principal_name": {"exact": subject}}}
    return {
        "@type": f"{_API}.extensions.filters.network.rbac.v3.RBAC",
        "stat_prefix": "status",
        "rules": {
            "action": "ALLOW",
            "policies": {"manager": {"permissions": [{"any": True}], "principals": [principal]}},
        },
    }


def _apiservers_cluster(settings: BalancerSettings) -> Json:
    unlimited = 1_000_000
    return {
        "name": APISERVERS,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": _watched(settings, "backends.json")},
        "connect_timeout": _seconds(_CONNECT_TIMEOUT),
        "lb_policy": "ROUND_ROBIN",  # a connection that was refused goes to another backend when tried again
        "per_connection_buffer_limit_bytes": 262_144,
        "health_checks": [_health_check(settings.health)],
        # Only the health check speaks TLS; the clients' bytes pass as they are.
        "transport_socket_matches": [
            {
                "name": "health check",
                "match": {"speaks": "tls"},
                "transport_socket": {"name": "tls", "typed_config": _health_check_tls(settings)},
            }
        ],
        # A backend taken out keeps the connections it has, and gets no new one, though it is healthy.
        "ignore_health_on_host_removal": True,
        # A backend that died loses them at once, so that clients reconnect to another.
        "close_connections_on_host_health_failure": True,
        "common_lb_config": {
            "healthy_panic_threshold": {"value": 0},
            "update_merge_window": "0s",  # health changes would wait up to 1 s for others otherwise
        },
        "circuit_breakers": {
            "thresholds": [
                {
                    "max_connections": unlimited,
                    "max_pending_requests": unlimited,
                    "max_requests": unlimited,
                    "max_retries": unlimited,
                }
            ]
        },
        "upstream_connection_options": {"tcp_keepalive": _KEEPALIVE},
    }


def _health_check(health: HealthCheck) -> Json:
    interval = _seconds(health.interval)
    return {
        "timeout": _seconds(health.timeout),
        "interval": interval,
        "no_traffic_interval": interval,  # 60 s unless set
        "unhealthy_threshold": health.failures,
        "healthy_threshold": 1,
        "transport_socket_match_criteria": {"speaks": "tls"},
        "http_health_check": {
            "path": READYZ_FOUNDED,
            "host": "quarterdeck-health",
            # Counted like a timeout: at once out would mean all out for one slow answer of etcd.
            "retriable_statuses": [{"start": 400, "end": 600}],
        },
    }


def _health_check_tls(settings: BalancerSettings) -> Json:
    name: Json = {"san_type": "DNS", "matcher": {"exact": settings.server_name}}
    return {
        "@type": f"{_API}.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": settings.server_name,
        "common_tls_context": {
            "combined_validation_context": {
                "default_validation_context": {"match_typed_subject_alt_names": [name]},
                "validation_context_sds_secret_config": _watched_secret(settings, _TRUST_SECRET),
            }
        },
    }


def _admin_cluster(admin: Json) -> Json:
    return {
        "name": "admin",
        "type": "STATIC",
        "connect_timeout": _seconds(_CONNECT_TIMEOUT),
        "load_assignment": {
            "cluster_name": "admin",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": admin}}]}],
        },
    }


def _watched_secret(settings: BalancerSettings, name: str) -> Json:
    return {"name": name, "sds_config": _watched(settings, f"{name}.json")}


def _watched(settings: BalancerSettings, file: str) -> Json:
    live = _live(settings)
    source: Json = {"path": str(live / file), "watched_directory": {"path": str(live)}}
    return {"resource_api_version": "V3", "path_config_source": source}


def _live(settings: BalancerSettings) -> PurePosixPath:
    return settings.folder / "live"


def _address(address: BackendAddress) -> Json:
    return {"socket_address": {"address": address.ip, "port_value": address.port}}


def _seconds(value: float) -> str:
    return f"{value:.3f}s"


def _encode(value: Json) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()
