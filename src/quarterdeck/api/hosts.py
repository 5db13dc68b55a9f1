"""Hosts of ssh sites, their logins, and the load balancers of the planes there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Annotated, Protocol

from pydantic import AfterValidator, Strict, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.names import address, label_within, shortened
from quarterdeck.api.schema import ADDRESS, SOME_ONCE, InSchema, label, refuse_if_any
from quarterdeck.api.values import Port, ZoneName
from quarterdeck.model.units import MachineRole

#: Of a host: with its site before it and a role after it, it is still a DNS label.
HOST_NAME_MAX = 36
#: Where sshd listens, unless ssh's own configuration says otherwise.
SSH_PORT = 22

_TARGET = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.:%-]{0,251}[A-Za-z0-9_])?")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_LABEL = re.compile(r"[a-z0-9-]+")


def _host_address(text: str) -> str:
    """An address of the host that clients and the other hosts can connect to; raises ValueError."""
    plain = address(text)
    parsed = ip_address(plain)
    kinds = (("a loopback", parsed.is_loopback), ("a link-local", parsed.is_link_local))
    found = next((words for words, applies in kinds if applies), "the broadcast" if plain == "255.255.255.255" else "")
    if found:
        raise ValueError(f"{shortened(text)} is {found} address: other hosts cannot connect to it")
    return plain


def _target(text: str) -> str:
    if not _TARGET.fullmatch(text):
        raise ValueError(f"{shortened(text)} is not a host name or address for ssh")
    return text


def _user(text: str) -> str:
    if not _USER.fullmatch(text):
        raise ValueError(f"{shortened(text)} is not a valid user name")
    return text


def _key_file(text: str) -> str:
    if not text.startswith(("/", "~/")):
        raise ValueError(f"{shortened(text)} is neither an absolute path nor one that begins with ~/")
    return text


HostName = Annotated[str, AfterValidator(label_within(HOST_NAME_MAX)), label(HOST_NAME_MAX)]
HostAddress = Annotated[str, AfterValidator(_host_address), ADDRESS]
SshTarget = Annotated[str, AfterValidator(_target), InSchema({"pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.:%-]*$"})]
SshUser = Annotated[str, AfterValidator(_user), InSchema({"pattern": r"^[A-Za-z_][A-Za-z0-9_.-]*$", "maxLength": 32})]
KeyFile = Annotated[str, AfterValidator(_key_file), InSchema({"pattern": "^~?/"})]
#: Plain data is read leniently, since short forms are expanded first.
Roles = Annotated[tuple[Annotated[MachineRole, Strict(False)], ...], Strict(False), SOME_ONCE]


class SshLogin(Model):
    """The login to a host. Without a field, `~/.ssh/config` and the defaults of ssh apply."""

    #: The name or address that ssh connects to; without it, the address of the host.
    host: SshTarget | None = None
    #: The port of sshd.
    port: Port | None = None
    #: The user that logs in.
    user: SshUser | None = None
    #: The private key of that user: an absolute path, or one that begins with `~/`.
    identity_file: KeyFile | None = None


class Host(Model):
    """A machine of your own."""

    #: The name of the host. It may be left out: then it is the first label of `ssh.host`, or the address with dashes.
    name: HostName
    #: The address at which clients and other hosts reach it.
    address: HostAddress
    #: The failure domain of the host.
    zone: ZoneName
    #: What the host runs: replicas (`control`) or load balancers (`edge`). `role: edge` is short for one role.
    roles: Roles
    #: The login to the host.
    ssh: SshLogin = SshLogin()

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        login = given.get("ssh")
        return spelled_out(given, login.get("host") if isinstance(login, Mapping) else None)

    @property
    def machines(self) -> Mapping[MachineRole, str]:
        """Its machines, one for each of its roles, by name."""
        return machine_names(self.name, self.roles)

    @property
    def login(self) -> tuple[str, int]:
        """The address and port of its login, as far as they are known here."""
        return self.ssh.host or self.address, self.ssh.port or SSH_PORT


def machine_names(host: str, roles: Sequence[MachineRole]) -> Mapping[MachineRole, str]:
    """The names of a host's machines: the host's own name for that of replicas, and for the only one of a host."""
    alone = len(roles) == 1
    return {role: host if alone or role is MachineRole.CONTROL else f"{host}-{role}" for role in roles}


def spelled_out(given: Mapping[object, object], target: object) -> Mapping[object, object]:
    """A user's host entry with its implied values: its roles, and its name."""
    whole = dict(given)
    if "role" in whole and "roles" not in whole:
        whole["roles"] = [whole.pop("role")]
    if "name" not in whole:
        named = _name_from(target if isinstance(target, str) else whole.get("address"))
        whole |= {"name": named} if named else {}
    return whole


def _name_from(text: object) -> str | None:
    if not isinstance(text, str):
        return None
    try:
        plain = str(ip_address(text)).replace(":", "-").replace(".", "-").strip("-")
    except ValueError:
        plain = text.split(".")[0].lower()
    return plain if _LABEL.fullmatch(plain) else None


class HostLike(Protocol):
    """A host of any document."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def address(self) -> str:
        """Its address."""
        ...

    @property
    def roles(self) -> tuple[MachineRole, ...]:
        """Its roles."""
        ...

    @property
    def login(self) -> tuple[str, int]:
        """Its login."""
        ...


def host_problems(hosts: Sequence[HostLike]) -> Iterator[tuple[str, str]]:
    """The problems of the hosts of one site: pairs of a path below the document, and the problem."""
    if not hosts:
        yield "hosts", "is empty; a site has at least one host"
    for number, each in enumerate(hosts):
        if not each.roles:
            yield f"hosts[{number}].roles", f"is empty; there are {', '.join(MachineRole)}"
        if len(set(each.roles)) < len(each.roles):
            yield f"hosts[{number}].roles", "names a role twice"
    if hosts and not any(MachineRole.CONTROL in each.roles for each in hosts):
        yield "hosts", "no host has the role control: replicas could not be placed"
    yield from _twice(hosts)


def _twice(hosts: Sequence[HostLike]) -> Iterator[tuple[str, str]]:
    names: dict[str, int] = {}
    addresses: dict[str, int] = {}
    logins: dict[tuple[str, int], int] = {}
    for number, each in enumerate(hosts):
        path = f"hosts[{number}]"
        if (first := names.setdefault(each.name, number)) != number:
            yield f"{path}.name", f"{each.name} is hosts[{first}] already"
        if (first := addresses.setdefault(each.address, number)) != number:
            yield f"{path}.address", f"{each.address} is that of hosts[{first}] already"
        elif (first := logins.setdefault(each.login, number)) != number:
            yield f"{path}", f"is logged in to at {login_text(each.login)}, as hosts[{first}] is: they are one machine"
    yield from _alike(hosts, names)


def _alike(hosts: Sequence[HostLike], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Hosts with the name of another host's machine."""
    for each in hosts:
        for role, name in machine_names(each.name, each.roles).items():
            if name != each.name and name in names:
                yield (
                    "hosts",
                    f"{name} is a host, and also the machine of {each.name} for role {role}: rename one of them",
                )


def login_text(login: tuple[str, int]) -> str:
    """The login of a host, as people write it."""
    host, port = login
    return f"{host}:{port}" if ":" not in host else f"[{host}]:{port}"


#: The most words of a user's command.
_WORDS_MAX = 64


def _floating(text: str) -> str:
    plain = address(text)
    try:
        found = IPv4Address(plain)
    except ValueError:
        raise ValueError(f"{shortened(text)} is not an IPv4 address") from None
    if found.is_loopback or found.is_link_local:
        raise ValueError(f"{shortened(text)} cannot go from host to host")
    return plain


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0].startswith("/"):
        raise ValueError("must begin with the absolute path of a program")
    if len(words) > _WORDS_MAX or any("\0" in each for each in words):
        raise ValueError(f"must have at most {_WORDS_MAX} words, none with a zero in it")
    return words


FloatingAddress = Annotated[str, AfterValidator(_floating), InSchema({"format": "ipv4"})]
Command = Annotated[tuple[str, ...], AfterValidator(_command), InSchema({"minItems": 1, "maxItems": _WORDS_MAX})]


class ExternalEdge(Model):
    """A load balancer of your own. Each plane has a port of its own there."""

    #: The addresses that clients connect to.
    addresses: Annotated[tuple[HostAddress, ...], SOME_ONCE]
    #: A command on this host that configures the load balancer from JSON on its standard input; without it, a person is
    #: asked to.
    command: Command | None = None

    @model_validator(mode="after")
    def _has_addresses(self) -> ExternalEdge:
        if not self.addresses or len(set(self.addresses)) < len(self.addresses):
            refuse_if_any([("addresses", "must be one address or more, each once")])
        return self


class Edge(Model):
    """The addresses that clients of a site connect to."""

    #: Virtual IPs of the hosts with the role `edge`: another host takes one over when its host fails. All planes of the
    #: site share them, at different ports.
    floating_addresses: tuple[FloatingAddress, ...] = ()
    #: Addresses that can each be the endpoint of one plane (`endpoint.leadsTo: promoted`), at any host of the site.
    promoted_addresses: tuple[FloatingAddress, ...] = ()
    #: A load balancer of your own, in place of hosts with the role `edge`.
    external: ExternalEdge | None = None

    def problems(self, hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
        """Its problems at a site of these hosts, by path."""
        edges = [each for each in hosts if MachineRole.EDGE in each.roles]
        if self.external is not None:
            if self.floating_addresses or self.promoted_addresses:
                yield "edge", "has addresses that move between hosts or is external, not both"
            if edges:
                yield "edge.external", f"is for sites without hosts of role edge; {edges[0].name} is one"
            return
        floating = self.floating_addresses
        if floating and len(edges) < 2:
            yield "edge.floatingAddresses", "move to another host: give two hosts or more the role edge"
        elif len(floating) > len(edges):
            yield "edge.floatingAddresses", f"are {len(floating)}, more than the {len(edges)} hosts of role edge"
        yield from self._promoted_problems(hosts)
        for path, addresses in (("floatingAddresses", floating), ("promotedAddresses", self.promoted_addresses)):
            if len(set(addresses)) < len(addresses):
                yield f"edge.{path}", "has an address twice"
            for each in hosts:
                if each.address in addresses:
                    yield f"edge.{path}", f"has {each.address}, which is host {each.name}'s own"

    def _promoted_problems(self, hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
        """The problems of addresses that a replica's host, or a load balancer's, can have."""
        if not self.promoted_addresses:
            return
        path = "edge.promotedAddresses"
        both = [each.name for each in hosts if {MachineRole.EDGE, MachineRole.CONTROL} <= {*each.roles}]
        if not any(MachineRole.EDGE in each.roles for each in hosts):
            yield path, "move to a load balancer: give one host or more the role edge"
        if both:
            yield path, f"need hosts of role edge that have no replicas; {both[0]} has both roles"
        if shared := {*self.promoted_addresses}.intersection(self.floating_addresses):
            yield path, f"has {min(shared)}, which is also in floatingAddresses"
