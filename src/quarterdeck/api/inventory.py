"""Inventories: a user's hosts, as a short file. It declares a site, or more hosts for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.documents import parse_part, single
from quarterdeck.api.errors import explained
from quarterdeck.api.hosts import (
    SSH_PORT,
    Edge,
    Host,
    HostAddress,
    HostName,
    KeyFile,
    Roles,
    SshLogin,
    SshTarget,
    SshUser,
    host_problems,
    spelled_out,
)
from quarterdeck.api.schema import SOME, refuse_if_any
from quarterdeck.api.site import Site, SshSpec
from quarterdeck.api.storage import HOSTS_STANDARD, HostStorageClass
from quarterdeck.api.values import Port, ZoneName


class InventoryHost(Model):
    """A host, in one line. ``host``: the ssh host name, if that is not the address; see ``Host``."""

    name: HostName
    address: HostAddress
    zone: ZoneName
    roles: Roles
    host: SshTarget | None = None
    port: Port | None = None
    user: SshUser | None = None
    identity_file: KeyFile | None = None

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, given: object) -> object:
        return spelled_out(given, given.get("host")) if isinstance(given, Mapping) else given

    @property
    def login(self) -> tuple[str, int]:
        """See ``Host``."""
        return self.host or self.address, self.port or SSH_PORT

    @property
    def declared(self) -> Host:
        """The host as a site has it."""
        login = SshLogin(host=self.host, port=self.port, user=self.user, identity_file=self.identity_file)
        return Host(name=self.name, address=self.address, zone=self.zone, roles=self.roles, ssh=login)


class Inventory(Model):
    """The hosts, the paths of their volumes, and what leads clients to them."""

    hosts: Annotated[tuple[InventoryHost, ...], SOME]
    storage_classes: Annotated[tuple[HostStorageClass, ...], SOME] = HOSTS_STANDARD
    fetch_on_host: bool = False
    edge: Edge = Edge()

    @property
    def declared(self) -> tuple[Host, ...]:
        """The hosts as a site has them."""
        return tuple(each.declared for each in self.hosts)


class WholeInventory(Inventory):
    """An inventory that declares a whole site."""

    @model_validator(mode="after")
    def _are_a_site(self) -> WholeInventory:
        refuse_if_any([*host_problems(self.hosts)])
        return self


def load_inventory(text: str, source: str, *, whole: bool = True) -> Inventory:
    """The inventory in ``text``, which is YAML; ``whole``: it declares a whole site. Raises InvalidInput that names
    every problem by its path.
    """
    doing = f"reading {source}"
    kind: type[Inventory] = WholeInventory if whole else Inventory
    return parse_part(kind, single(text, source), doing)


def site_of(name: str, inventory: Inventory, source: str) -> Site:
    """The site that an inventory declares. Raises InvalidInput."""
    with explained(f"reading {source}", SshSpec):
        spec = SshSpec(
            driver="ssh",
            hosts=inventory.declared,
            storage_classes=inventory.storage_classes,
            fetch_on_host=inventory.fetch_on_host,
            edge=inventory.edge,
        )
    with explained(f"adding site {name}", Site):
        return Site.model_validate({"metadata": {"name": name}, "spec": spec})
