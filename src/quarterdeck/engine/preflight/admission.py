"""Admission: what a spec must agree with besides itself, such as existing sites and supported versions."""

from __future__ import annotations

import asyncio
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.api.site import AddressSpace, LocalSpec, Site, SshSpec
from quarterdeck.components.admission_manifests import manifests_problem
from quarterdeck.components.admission_plugins import pod_security_problems
from quarterdeck.components.catalogue import CATALOGUE, flags_of
from quarterdeck.components.refusals import refuse_dangerous, refuse_host_files, service_range_problem
from quarterdeck.components.replica import check_extra_args, program_version
from quarterdeck.components.transitions import authorities, keys
from quarterdeck.components.transitions.issuers import dropped
from quarterdeck.components.transitions.ways import way
from quarterdeck.components.version_rules import flaws, illegal_flags
from quarterdeck.endpoint.dns.claims import CONSENT, stranger
from quarterdeck.engine.controller_sets.declarations import admit_controllers
from quarterdeck.engine.preflight.etcd_upgrade_checks import require_etcd_upgradable
from quarterdeck.engine.preflight.upgrade_checks import require_upgradable
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.reconcile.trials import require_start
from quarterdeck.engine.workspace import operations, revisions
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.own_addons import admit_cloud
from quarterdeck.engine.workspace.revisions import audit_wanted, template_of
from quarterdeck.engine.workspace.settings import balancer_ports, endpoint_port, leads_to_apiservers
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.endpoints import RecordClaim
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import MachineRole, MachineState
from quarterdeck.sites.port import Leads
from quarterdeck.upstream.catalog import Versions


def findings_of_versions(wanted: ControlPlane) -> tuple[Finding, ...]:
    """Warnings about the versions of a valid plane."""
    return tuple(Finding("versions", Verdict.WARN, each) for each in flaws(wanted.spec))


def findings_of_issuers(current: ControlPlane, wanted: ControlPlane) -> tuple[Finding, ...]:
    """A warning about tokens of service accounts that a change makes invalid."""
    words = dropped(current.spec, wanted.spec)
    return (Finding("service accounts", Verdict.WARN, words),) if words else ()


async def admit(engine: Engine, wanted: ControlPlane, *, current: ControlPlane | None = None) -> None:
    """Refuse an impossible plane before anything is stored. Its programs are downloaded here too.

    Raises InvalidInput (also for dangerous extra arguments), NotFound (its site), PreconditionFailed (the host's
    limits, ports in use, a storage class without its folder), and errors of the download.
    """
    Versions.parse(kubernetes=wanted.spec.kubernetes_version, etcd=wanted.spec.etcd.version)
    if current is not None:
        require_upgradable(current, wanted)
        _are_trusted(current, wanted)
        require_etcd_upgradable(current, wanted)
    site = await engine.home.site(wanted.spec.placement.site)
    _fits(wanted, site)
    _can_be_rendered(wanted, site, current)
    admit_cloud(wanted, engine.home.sites.open(site), current)
    await admit_controllers(wanted, current)
    await _services_have_addresses(engine, wanted, site, current)
    if current is None:
        await _address_is_led(engine, wanted, site)
        await _has_machines(engine, wanted, site)
        _is_served(wanted, site)
        await _has_its_folders(engine, wanted, site)
        await engine.home.sites.open(site).require_room(f"creating plane {wanted.metadata.name}", wanted.spec.replicas)
        await _ports_are_free(engine, wanted, site)
        await _name_is_free(engine, wanted, site)
    else:
        await admit_change(engine.home, wanted, current, site)
    await _can_start(engine, wanted, current)


def _are_trusted(current: ControlPlane, wanted: ControlPlane) -> None:
    """Raises InvalidInput for authorities and keys that some replica would not accept."""
    before, after, doing = current.spec, wanted.spec, f"changing plane {wanted.name}"
    if found := authorities.objections(before.certificates, after.certificates):
        raise InvalidInput(doing, "; ".join(found), f"let 'certs rotate-ca {wanted.name}' write these fields")
    if found := keys.objections(before.keys, after.keys):
        raise InvalidInput(doing, "; ".join(found), f"let 'keys rotate {wanted.name}' write these fields")


def _can_be_rendered(wanted: ControlPlane, site: Site, current: ControlPlane | None) -> None:
    """Raises InvalidInput for extra arguments and files with which no replica could start. Existing arguments are
    accepted, new ones must be valid for a new plane.
    """
    check_extra_args(template_of(wanted, site, audit_wanted(wanted)))
    before = flags_of(current.spec) if current is not None else {}
    for component, flags in flags_of(wanted.spec).items():
        kept = before.get(component, {})
        changed = {flag: value for flag, value in flags.items() if kept.get(flag) != value}
        rules = CATALOGUE[component].flags
        assert rules is not None, "it has flags"
        refuse_dangerous(rules, changed)
        refuse_host_files(rules, changed)
    _versions_know_the_flags(wanted, current)
    _plugins_are_right(wanted, current)


def _versions_know_the_flags(wanted: ControlPlane, current: ControlPlane | None) -> None:
    """Raises InvalidInput for flags and feature gates that the programs' versions refuse, unless they did so before."""
    if found := illegal_flags(wanted.spec, current.spec if current is not None else None):
        doing = f"checking the extra arguments of plane {wanted.name}"
        raise InvalidInput(doing, "; ".join(found), "remove them, or choose another version")


def _plugins_are_right(wanted: ControlPlane, current: ControlPlane | None) -> None:
    """Raises InvalidInput for a changed configuration of PodSecurity that no apiserver accepts, and for manifests that
    its version does not read.
    """
    if why := manifests_problem(wanted.spec):
        doing = f"configuring the admission of plane {wanted.name}"
        raise InvalidInput(doing, why, "upgrade to 1.37 first, or remove them")
    kept = current.spec.admission.plugins if current is not None and current.spec.admission is not None else ()
    for number, plugin in enumerate(wanted.spec.admission.plugins if wanted.spec.admission is not None else ()):
        if plugin.name == "PodSecurity" and plugin not in kept:
            path = f"spec.admission.plugins[{number}].configuration"
            problems = [f"{path}.{each}" for each in pod_security_problems(plugin.configuration)]
            if problems:
                raise InvalidInput(f"configuring the admission of plane {wanted.name}", "; ".join(problems))


async def _services_have_addresses(
    engine: Engine, wanted: ControlPlane, site: Site, current: ControlPlane | None
) -> None:
    """Raises InvalidInput for a new range of service addresses that nodes cannot route, or that contains machines."""
    known = current.spec.service_cidrs if current is not None else ()
    if all(each in known for each in wanted.spec.service_cidrs):
        return
    addresses = [each.address for each in await engine.home.sites.open(site).machines() if each.address]
    for number, each in enumerate(wanted.spec.service_cidrs):
        if each not in known and (why := service_range_problem(each, addresses, first=number == 0)):
            raise InvalidInput(
                f"giving Services of plane {wanted.name} addresses",
                f"spec.serviceCidrs[{number}]: {why}",
                "choose a private range that nothing else uses, such as 10.96.0.0/16 or fd00:10:96::/112",
            )


async def _can_start(engine: Engine, wanted: ControlPlane, current: ControlPlane | None) -> None:
    """Download the programs, and try those that would start with another configuration than now. Raises errors of the
    download, and InvalidInput.
    """
    store = engine.home.store
    after = await revisions.wanted_template(store, wanted)
    before = await revisions.wanted_template(store, current) if current is not None else None
    stops = (*(way(before, after) if before is not None else ()), after)
    found = await engine.programs_of(*stops)
    for each in stops:
        programs = {one: path for (one, version), path in found.items() if version == program_version(one, each)}
        await require_start(engine.trials, wanted.name, each, before, programs)
    await engine.name_server()


def _fits(wanted: ControlPlane, site: Site) -> None:
    doing = f"placing plane {wanted.metadata.name} at site {site.metadata.name}"
    zones = wanted.spec.placement.zones or site.spec.zones
    unknown = sorted(set(zones) - set(site.spec.zones))
    if unknown:
        raise InvalidInput(doing, f"it has no zone {', '.join(unknown)}", f"zones: {', '.join(site.spec.zones)}")
    machines = site.spec.machines_in(zones)
    if machines < wanted.spec.replicas:
        raise InvalidInput(
            doing, f"{wanted.spec.replicas} replicas need as many machines; it has {machines}", "add machines or zones"
        )
    classes = [each.name for each in site.spec.storage_classes]
    for named in wanted.spec.storage_classes:
        if named is not None and named not in classes:
            raise InvalidInput(doing, f"it has no storage class {named!r}", f"classes: {', '.join(classes)}")


async def _has_machines(engine: Engine, wanted: ControlPlane, site: Site) -> None:
    """There are enough machines that are not cordoned."""
    zones = wanted.spec.placement.zones or site.spec.zones
    machines = await engine.home.sites.open(site).machines()
    here = [each.name for each in machines if each.role is MachineRole.CONTROL and each.declared and each.zone in zones]
    cordoned = [each for each in here if site.spec.cordon_of(each) is not None]
    if cordoned and len(here) - len(cordoned) < wanted.spec.replicas:
        raise PreconditionFailed(
            f"placing plane {wanted.metadata.name} at site {site.metadata.name}",
            f"{wanted.spec.replicas} replicas need as many machines; cordoned are: {', '.join(cordoned)}",
            f"'site uncordon {site.metadata.name}', or choose another site",
        )


def _is_served(wanted: ControlPlane, site: Site) -> None:
    """Where clients use load balancers, there is a machine for them."""
    if not isinstance(site.spec, SshSpec) or leads_to_apiservers(wanted):
        return
    if site.spec.edge.external is None and not any(MachineRole.EDGE in each.roles for each in site.spec.hosts):
        raise PreconditionFailed(
            f"placing plane {wanted.name} at site {site.name}",
            "none of its hosts has the role edge, which load balancers need",
            "give at least one of them that role, or choose endpoint.leadsTo: apiservers",
        )


async def _has_its_folders(engine: Engine, wanted: ControlPlane, site: Site) -> None:
    """The disks of its storage classes are mounted. Raises PreconditionFailed, and errors of the hosts."""
    if isinstance(site.spec, LocalSpec):
        await asyncio.to_thread(_has_its_folder, wanted, site)
        return
    driver = engine.home.sites.open(site)
    up = [each for each in await driver.machines() if each.state is MachineState.UP]
    hosts = [each.name for each in up if each.role is MachineRole.CONTROL]
    classes = {each or site.spec.storage_classes[0].name for each in wanted.spec.storage_classes}
    await asyncio.gather(*(driver.free_bytes(host, each) for host in hosts for each in sorted(classes)))


def _has_its_folder(wanted: ControlPlane, site: Site) -> None:
    """A missing folder is a disk that is not mounted: it is never created."""
    for each in wanted.spec.storage_classes:
        named = each or site.spec.storage_classes[0].name
        path = next(each.path for each in site.spec.storage_classes if each.name == named)
        if path is not None and not Path(path).is_dir():
            raise PreconditionFailed(
                f"placing plane {wanted.metadata.name} at site {site.metadata.name}",
                f"the folder {path} of its storage class {named} is not there",
                "mount its disk, or create the folder",
            )


async def _name_is_free(engine: Engine, wanted: ControlPlane, site: Site) -> None:
    """The plane's DNS can be changed, and in the user's own DNS the name has no other owner."""
    if wanted.spec.endpoint.mode not in (EndpointMode.HOSTS, EndpointMode.RFC2136):
        return
    dns = await engine.home.dns(wanted, site.spec.space, None)
    await dns.check(wanted.host)
    if wanted.spec.endpoint.mode is EndpointMode.HOSTS:
        return
    machines = await engine.home.sites.open(site).machines()
    edges = frozenset(each.address for each in machines if each.role is MachineRole.EDGE)
    claim = RecordClaim(owner=wanted.metadata.name, token=0, addresses=edges, take_over=wanted.spec.endpoint.take_over)
    why = stranger(await dns.look(wanted.host), claim)
    if why:
        raise PreconditionFailed(f"naming plane {wanted.metadata.name} {wanted.host}", why, CONSENT)


async def _address_is_led(engine: Engine, wanted: ControlPlane, site: Site) -> None:
    """A promoted address is one of its site's that no plane uses."""
    if not wanted.spec.endpoint.promoted:
        return
    doing = f"setting the endpoint of plane {wanted.name} to {wanted.host}"
    driver = engine.home.sites.open(site)
    every = driver.led_addresses if isinstance(driver, Leads) else ()
    if not every:
        seen = f"site {site.name} has no addresses that can move between machines"
        next_step = "use a site of isolation netns, or of hosts with edge.promotedAddresses, or leadsTo: load-balancers"
        raise PreconditionFailed(doing, seen, next_step)
    assert isinstance(driver, Leads)
    if driver.cannot_route:
        raise PreconditionFailed(doing, driver.cannot_route, "install it, then create the plane")
    planes = await engine.home.store.list(ControlPlane)
    taken = {each.spec.endpoint.address: each.name for each in planes if each.name != wanted.name}
    free = next((each for each in every if each not in taken), None)
    if wanted.host not in every:
        seen = f"site {site.name} has {', '.join(every[:3])}{' and more' if every[3:] else ''} as promoted addresses"
        raise PreconditionFailed(doing, seen, f"choose {free}" if free else "delete a plane that uses one")
    if wanted.host in taken:
        raise PreconditionFailed(doing, f"plane {taken[wanted.host]} uses it", f"choose {free}" if free else "")


async def _ports_are_free(engine: Engine, wanted: ControlPlane, site: Site) -> None:
    """The ports of its load balancer are free, unless the user's endpoint has its own address. Replicas get free ports
    when they are placed.
    """
    if wanted.spec.endpoint.address is not None and not wanted.spec.endpoint.promoted:
        return
    name = wanted.metadata.name
    ports = balancer_ports(wanted.with_status(port_offset=await operations.free_number(engine.home.store, name)))
    driver = engine.home.sites.open(site)
    up = [each for each in await driver.machines() if each.state is MachineState.UP]
    edges = [each for each in up if each.role is MachineRole.EDGE]
    found = await asyncio.gather(*(driver.ports_in_use(each.name, ports) for each in edges))
    used = [f"{each.address}:{port}" for each, taken in zip(edges, found, strict=True) for port in taken]
    if used:
        raise PreconditionFailed(
            f"creating plane {name} at site {site.metadata.name}",
            f"ports in use: {', '.join(used)}",
            "stop the programs that listen there, or choose another site",
        )


# Checks of a change of the endpoint of a plane in use.


async def admit_change(home: Home, wanted: ControlPlane, current: ControlPlane, site: Site) -> None:
    """Refuse a change of the endpoint that would affect clients.

    Raises PreconditionFailed, and errors of the DNS servers of both.
    """
    _is_led_as_it_was(wanted, current)
    _has_the_ports(wanted, current, site)
    _listens_where_clients_come(wanted, current)
    await _is_answered_alike(home, wanted, current, site)


def _is_led_as_it_was(wanted: ControlPlane, current: ControlPlane) -> None:
    """A promoted address decides where apiservers listen, and belongs to a site: it cannot change."""
    before, after = current.spec.endpoint, wanted.spec.endpoint
    if not (current.spec.endpoint.promoted or wanted.spec.endpoint.promoted):
        return
    if (before.leads_to, before.address, before.mode) != (after.leads_to, after.address, after.mode):
        raise PreconditionFailed(
            f"changing the endpoint of plane {wanted.name}",
            "its promoted address is decided when it is created, and cannot change",
            "create another plane",
        )


def _has_the_ports(wanted: ControlPlane, current: ControlPlane, site: Site) -> None:
    """On hosts apiservers have the port that clients come to only where these are led to them."""
    if site.spec.space is AddressSpace.HOSTS and leads_to_apiservers(wanted) != leads_to_apiservers(current):
        raise PreconditionFailed(
            f"changing the endpoint of plane {wanted.name}",
            "on hosts apiservers have another port where clients are led to them: that is decided when it is created",
            "create another plane",
        )


def _listens_where_clients_come(wanted: ControlPlane, current: ControlPlane) -> None:
    """Where the name must lead to apiservers themselves, these listen at the port that clients already use."""
    if not leads_to_apiservers(wanted) or leads_to_apiservers(current):
        return
    port = endpoint_port(wanted)
    seats = {each.name: each.seat for each in memory_from_status(current.status.memory).replicas}
    found = {name: seat.advertised(PortName.APISERVER).port for name, seat in seats.items() if seat is not None}
    others = [f"{name} at {other}" for name, other in found.items() if other != port]
    if others:
        raise PreconditionFailed(
            f"pointing the name of plane {wanted.name} to its apiservers",
            f"clients connect to port {port}, and these listen elsewhere: {', '.join(others)}",
            f"replace them ('replica replace {wanted.name}') where that port is free",
        )


async def _is_answered_alike(home: Home, wanted: ControlPlane, current: ControlPlane, site: Site) -> None:
    """The new DNS already has the same record: no client is affected, and no outdated record is left behind."""
    if wanted.spec.endpoint.mode is current.spec.endpoint.mode:
        return
    doing, host = f"changing the DNS of the name of plane {wanted.name}", wanted.host
    keepers = [await home.dns(each, site.spec.space, None) for each in (current, wanted)]
    await keepers[1].check(host)
    now, then = [await each.look(host) for each in keepers]
    for seen in (now, then):
        if seen.torn:
            raise PreconditionFailed(doing, seen.torn, "make all DNS servers of the zone answer the same")
    has, gets = (" ".join(each.record.addresses) if each.record is not None else "nothing" for each in (now, then))
    if has != gets:
        seen_there = f"{host} resolves to {has} now, and to {gets} in the new DNS"
        raise PreconditionFailed(doing, seen_there, "create the same record there first")
