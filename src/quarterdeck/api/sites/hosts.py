"""Hosts of ssh sites: machines that people have, and how each is reached."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Annotated, Protocol

from pydantic import AfterValidator, Strict, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.names import address, label_within, shortened
from quarterdeck.api.schema import ADDRESS, SOME_ONCE, InSchema, label
from quarterdeck.api.values import Port, ZoneName
from quarterdeck.model.units import MachineRole

#: Of a host: with its site in front and a role behind it is a DNS label still.
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
    found = next((words for words, so in kinds if so), "the broadcast" if plain == "255.255.255.255" else "")
    if found:
        raise ValueError(f"{shortened(text)} is {found} address: other hosts cannot connect to it")
    return plain


def _target(text: str) -> str:
    if not _TARGET.fullmatch(text):
        raise ValueError(f"{shortened(text)} is no name or address that ssh could be given")
    return text


def _user(text: str) -> str:
    if not _USER.fullmatch(text):
        raise ValueError(f"{shortened(text)} is not the name of a user")
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
#: Read from plain data in any case, since what is written short is spelled out first.
Roles = Annotated[tuple[Annotated[MachineRole, Strict(False)], ...], Strict(False), SOME_ONCE]


class SshLogin(Model):
    """How a host is logged in to. What is not said is as ``~/.ssh/config`` and ssh's own defaults say; no ``host``: the
    host's address.
    """

    host: SshTarget | None = None
    port: Port | None = None
    user: SshUser | None = None
    identity_file: KeyFile | None = None


class Host(Model):
    """A host. ``address``: where clients and the other hosts reach it. No ``name``: the first label of the name that
    ssh is given, or else the address with dashes. ``role: x`` may be written for ``roles: [x]``.
    """

    name: HostName
    address: HostAddress
    zone: ZoneName
    roles: Roles
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
        """The machines that it counts as, one for each of its roles, by name."""
        return machine_names(self.name, self.roles)

    @property
    def login(self) -> tuple[str, int]:
        """Where it is logged in to, as far as that is known here."""
        return self.ssh.host or self.address, self.ssh.port or SSH_PORT


def machine_names(host: str, roles: Sequence[MachineRole]) -> Mapping[MachineRole, str]:
    """What the machines of a host are called: as the host is that for replicas, and the only one of a host."""
    alone = len(roles) == 1
    return {role: host if alone or role is MachineRole.CONTROL else f"{host}-{role}" for role in roles}


def spelled_out(given: Mapping[object, object], target: object) -> Mapping[object, object]:
    """What a person wrote of a host, with what follows from it: its roles, and its name."""
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
    """A host as some document has it."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def address(self) -> str:
        """Where it is reached."""
        ...

    @property
    def roles(self) -> tuple[MachineRole, ...]:
        """What it is for."""
        ...

    @property
    def login(self) -> tuple[str, int]:
        """Where it is logged in to."""
        ...


def host_problems(hosts: Sequence[HostLike]) -> Iterator[tuple[str, str]]:
    """What is wrong with hosts that are to be one site's: pairs of a path below the document, and what is wrong."""
    if not hosts:
        yield "hosts", "is empty; a site has at least one host"
    for number, each in enumerate(hosts):
        if not each.roles:
            yield f"hosts[{number}].roles", f"is empty; there are {', '.join(MachineRole)}"
        if len(set(each.roles)) < len(each.roles):
            yield f"hosts[{number}].roles", "names a role twice"
    if hosts and not any(MachineRole.CONTROL in each.roles for each in hosts):
        yield "hosts", "none has the role control: nothing could be put there"
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
    """Hosts whose name is that of another one's machine."""
    for each in hosts:
        for role, name in machine_names(each.name, each.roles).items():
            if name != each.name and name in names:
                yield "hosts", f"{name} is a host, and what {each.name} is called as {role}: rename one of them"


def login_text(login: tuple[str, int]) -> str:
    """Where a host is logged in to, as people write it."""
    host, port = login
    return f"{host}:{port}" if ":" not in host else f"[{host}]:{port}"
