"""Names of what works and may not answer the manager (``Truth.mute``), and of whose address a client may have."""

from __future__ import annotations

#: What is no machine that hosts replicas: the name's server, and the membership.
DNS = "dns"
ETCD = "etcd"


def edge(site: str) -> str:
    """The machine of a site's load balancer."""
    return f"edge of {site}"


def second(site: str) -> str:
    """The same of its other edge."""
    return f"second edge of {site}"


def other(name: str) -> str:
    """The other edge of an edge's site."""
    site = name.removeprefix(second(""))
    return edge(site) if site != name else second(name.removeprefix(edge("")))


def etcd_of(name: str) -> str:
    """A replica's member."""
    return f"etcd of {name}"


def apiserver_of(name: str) -> str:
    """A replica's apiserver; beside those of edges, its own address."""
    return f"apiserver of {name}"


def all_of(site: str) -> str:
    """All that is at a site."""
    return f"site {site}"
