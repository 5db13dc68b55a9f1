"""The preconditions for replacing, adding or removing replicas of a plane; each failed check is named."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime

from quarterdeck.actions.addresses import client_urls, seat_of
from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Site
from quarterdeck.components.etcd import MORE_LEARNERS, most_learners
from quarterdeck.components.upstream_versions import minor
from quarterdeck.components.version_rules import flaws
from quarterdeck.engine.controller_sets.handover_checks import strangers
from quarterdeck.engine.controller_sets.set_holders import sets_held
from quarterdeck.engine.observation.data_comparison import same_data
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.preflight.etcd_upgrade_checks import UPGRADING_ETCD, upgrades_etcd
from quarterdeck.engine.preflight.room import free_disk, free_memory, host_files, host_limits, storage_class
from quarterdeck.engine.preflight.site_checks import answer, clocks_of, incapable, unconnected
from quarterdeck.engine.preflight.upgrade_checks import UPGRADING, upgrades
from quarterdeck.engine.workspace.settings import balancer_ports, leads_to_apiservers
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import AlarmKind
from quarterdeck.model.capabilities import RoundTrip
from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.findings import Finding, Verdict, ok, refuse
from quarterdeck.model.membership import Health
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Machine, MachineRole, MachineState
from quarterdeck.model.world import World
from quarterdeck.pki.validity import check_secrets
from quarterdeck.planner.members import AUTHENTICATION, all_raised, disable_authentication, disarm_corrupt, strays
from quarterdeck.planner.standbys import standbys
from quarterdeck.upstream.catalog import Versions

#: Milliseconds of round trip between sites: etcd and the apiservers get slow, and then fail.
WARN_RTT = 80.0
MOST_RTT = 180.0


async def examine(
    plane: Plane, wanted: ControlPlane, world: World, target: Site, *, allow_distance: bool
) -> tuple[Finding, ...]:
    """All findings about a change of a ``plane``, whose ``world`` was just observed, to ``wanted`` at the ``target``.
    Changes nothing.
    """
    move = Move(
        plane=plane,
        wanted=wanted,
        world=world,
        source=_machines(plane, plane.resource.spec.placement.site),
        target=_machines(plane, target.name),
        target_site=target,
        allow_distance=allow_distance,
    )
    return tuple(await asyncio.gather(*(answer(check, move) for check in checks(move))))


def out_of_reach(plane: Plane, target: Site) -> Finding | None:
    """Why a plane can never be at a site; None if it can."""
    if not _machines(plane, target.name):
        return unconnected(plane.resource.spec.placement.site, target)
    return incapable(plane.site(target.name))


def _machines(plane: Plane, site: str) -> tuple[Machine, ...]:
    return tuple(
        machine
        for (where, _), machine in plane.machines.items()
        if where == site and machine.role is MachineRole.CONTROL and machine.declared
    )


async def health(move: Move) -> Finding:
    """Every member is healthy and every apiserver ready, except those of replicas that a person wants replaced. Nothing
    waits for a standby.
    """
    membership = move.world.membership
    if membership is None:
        return refuse("health", "no quorum of the members answers", f"see 'status {move.plane.name}'")
    condemned = move.wanted.spec.replace_replicas
    if unknown := _unknown_members(move.world):
        return unknown
    ill = [member.replica for member in membership.members if member.health is not Health.HEALTHY]
    aside = {each.name for each in standbys(move.world)}
    sick = [name for name in ill if name not in (*condemned, *aside)]
    wanted = {slot.site for slot in move.world.slots}
    serving = [fact.name for fact in move.world.replicas if fact.ready]
    unready = [
        record.name
        for record in move.world.memory.replicas
        if record.name not in (*serving, *condemned)
        and record.site in wanted
        and membership.of(record.name) is not None
    ]
    if sick or unready:
        seen = ", ".join(
            (
                *(f"member {name} is not healthy" for name in sick),
                *(f"apiserver {name} is not ready" for name in unready),
            )
        )
        return refuse("health", seen, f"see 'status {move.plane.name}' and 'logs {move.plane.name}'")
    well = f"{len(membership.members) - len(ill)} members healthy, {len(serving)} apiservers ready"
    ill_aside = [f"the standby {name} is not healthy" for name in ill if name in aside]
    beside = ", ".join((*filter(None, (_ill_events(move.world, condemned),)), *ill_aside))
    return Finding("health", Verdict.WARN, f"{well}, but {beside}") if beside else ok("health", well)


def _ill_events(world: World, condemned: Collection[str]) -> str:
    """What is wrong with the events' etcd; "" if nothing is, or there is none. It prevents no request of a move, which
    waits for it where replicas that keep events there are to take over.
    """
    seen = world.of(Cluster.EVENTS)
    if not seen.memory.created:
        return ""
    if seen.membership is None:
        return "no quorum of the events' etcd answers"
    ill = [each.replica for each in seen.membership.members if each.health is not Health.HEALTHY]
    return ", ".join(f"member {name} of the events' etcd is not healthy" for name in ill if name not in condemned)


def _unknown_members(world: World) -> Finding | None:
    """The refusal where etcd lists members that belong to no replica; None where it does not."""
    found = {cluster: strays(world.of(cluster)) for cluster in Cluster}
    named = [f"member {each.description} of {CALLED[cluster]}" for cluster in Cluster for each in found[cluster]]
    if not named:
        return None
    first = next(each for of in found.values() for each in of)
    remove = f"'quarterdeck etcd remove-member {world.plane_name} {first.id:x}'"
    return refuse("health", f"{', '.join(named)} belongs to no replica", remove)


async def versions(move: Move) -> Finding:
    """The versions are above the floors below which membership changes lose data."""
    spec = move.wanted.spec
    Versions.parse(kubernetes=spec.kubernetes_version, etcd=spec.etcd.version)
    if found := flaws(spec):
        return Finding("versions", Verdict.WARN, "; ".join(found))
    return ok("versions", f"Kubernetes {spec.kubernetes_version}, etcd {spec.etcd.version}")


async def alarms(move: Move) -> Finding:
    """No alarm is on. A replacement is accepted under CORRUPT, which stays on until then."""
    found = await move.plane.etcd.alarms(client_urls(move.plane))
    events = move.world.events_membership
    if AUTHENTICATION in all_raised(move.world):
        return refuse("alarms", "authentication is enabled in etcd", disable_authentication(move.world))
    if not found and events is not None and events.alarms:
        return Finding("alarms", Verdict.WARN, f"the events' etcd has raised {', '.join(events.alarms)}")
    if not found:
        return ok("alarms", "none")
    kinds, name = {alarm.kind for alarm in found}, move.plane.name
    seen = f"etcd has raised {', '.join(sorted(kinds))}"
    replaced = move.plane.resource.spec.replace_replicas
    if kinds == {AlarmKind.CORRUPT} and move.wanted.spec.replace_replicas != replaced:
        return Finding("alarms", Verdict.WARN, f"{seen}: the replacement begins after 'quarterdeck etcd disarm {name}'")
    if AlarmKind.CORRUPT in kinds:
        return refuse("alarms", seen, disarm_corrupt(move.world))
    return refuse(
        "alarms", seen, f"quarterdeck ends it while it drives the plane: 'wait {name}' shows what it waits for"
    )


async def machines(move: Move) -> Finding:
    """There are enough machines that are up, in enough zones; cordoned ones count only if they already have a replica
    of the plane.
    """
    spec = move.wanted.spec
    mine = {each.machine for each in move.world.memory.replicas}
    up = [each for each in move.target if each.state is MachineState.UP and (each in move.open or each.name in mine)]
    lent = move.elsewhere and spec.replicas == 1 and move.plane.resource.spec.replicas == 1
    need = spec.replicas + (1 if lent else 0)
    zones = set(spec.placement.zones or move.target_site.spec.zones)
    missing = zones - set(move.target_site.spec.zones)
    if missing:
        known = ", ".join(move.target_site.spec.zones)
        return refuse("machines", f"no zone {', '.join(sorted(missing))} at {spec.placement.site}", f"zones: {known}")
    usable = [machine for machine in up if machine.zone in zones]
    if len(usable) < need:
        why = " (one of them only during the move)" if lent else ""
        seen = f"{len(usable)} machines are up at {spec.placement.site}, {need} are needed{why}"
        if move.cordoned:
            seen += f"; cordoned: {', '.join(move.cordoned)}"
        return refuse("machines", seen, f"see 'site machines {spec.placement.site}'")
    return ok("machines", f"{len(usable)} up, {need} needed")


async def cordons(move: Move) -> Finding:
    """No cordoned replica would have to be removed."""
    spec, replicas = move.plane.resource.spec, move.wanted.spec.replicas
    if not spec.cordoned:
        return ok("cordons", "no replica is cordoned")
    seen = f"cordoned: {', '.join(spec.cordoned)}"
    if move.elsewhere or len(spec.cordoned) > replicas:
        return refuse("cordons", seen, f"'replica uncordon {move.plane.name} {spec.cordoned[0]}' first")
    return ok("cordons", f"{seen}: they stay unchanged")


async def learners(move: Move) -> Finding:
    """All additional replicas, or those of another site, join as learners together, and etcd allows only so many."""
    versions = (each.etcd.version for each in move.plane.revisions.templates.values())
    version = min((*versions, move.wanted.spec.etcd.version), key=minor)  # all members must agree on that number
    most, coming = most_learners(version), move.coming
    if coming > most:
        seen = f"{coming} members would join at once, and etcd {version} allows {most}"
        return refuse("learners", seen, MORE_LEARNERS)
    return ok("learners", f"{coming} will join, etcd {version} allows {most}")


async def distance(move: Move) -> Finding:
    """The round trip between the sites is short enough for etcd and the apiservers."""
    rtt = await _round_trip(move)
    seen = f"{rtt:.1f} ms between {move.plane.resource.spec.placement.site} and {move.wanted.spec.placement.site}"
    if rtt > MOST_RTT and not move.allow_distance:
        return refuse(
            "distance", f"{seen}, over {MOST_RTT:.0f} ms", "move by way of a nearer site, or use --allow-distance"
        )
    if rtt > WARN_RTT:
        return Finding("distance", Verdict.WARN, f"{seen}: writes will take that much longer during the move")
    return ok("distance", seen)


async def etcd_tuning(move: Move) -> Finding:
    """Elections take at least ten round trips (etcd: docs/tuning), as set on all members."""
    rtt = await _round_trip(move)
    election = move.plane.wanted.etcd.election_milliseconds
    if election < 10 * rtt and not move.allow_distance:
        seen = f"election timeout {election:.0f} ms is under ten round trips of {rtt:.1f} ms"
        return refuse("etcd tuning", seen, "set etcd.electionMilliseconds when creating planes that will move far")
    return ok("etcd tuning", f"election timeout {election:.0f} ms for {rtt:.1f} ms")


async def _round_trip(move: Move) -> float:
    """Milliseconds, from a machine of the target to a member of the source."""
    record = next(iter(move.world.memory.replicas), None)
    if record is None:
        raise Unavailable("measuring the round trip", "there is no member to measure to")
    site = move.plane.site(move.wanted.spec.placement.site)
    machine = next((each for each in move.target if each.state is MachineState.UP), None)
    if machine is None:
        raise Unavailable("measuring the round trip", f"no machine of {site.name} is up")
    peer = seat_of(record).advertised(PortName.ETCD_PEER)
    return 1000 * await site.measure(machine.name, RoundTrip(peer.host, peer.port))


async def clocks(move: Move) -> Finding:
    """Clocks agree."""
    up = [machine for machine in move.target if machine.state is MachineState.UP]
    return await clocks_of(move.plane.site(move.wanted.spec.placement.site), up)


async def certificates(move: Move) -> Finding:
    """No certificate has expired, and none is not valid yet."""
    check_secrets(move.plane.secrets, datetime.now(UTC))
    return ok("certificates", "valid; one CA for all replicas")


async def ports(move: Move) -> Finding:
    """The ports of the plane's load balancer are free at the target, unless it runs there already. (Replicas get ports
    that are free when they are placed.)
    """
    site = move.wanted.spec.placement.site
    if site == move.world.front:
        return ok("ports", "the load balancer's address is the user's own")
    if leads_to_apiservers(move.wanted):
        return ok("ports", "clients need no load balancer")
    if any(each.there for each in move.world.balancers if each.site == site):
        return ok("ports", "the load balancer is there already")
    if not all(each.can_hold for each in move.plane.edges(site).values()):
        return ok("ports", "the load balancer is the user's own")
    wanted = balancer_ports(move.plane.resource)
    driver, edges = move.plane.site(site), [*move.plane.edges(site)]
    used = await asyncio.gather(*(driver.ports_in_use(each, wanted) for each in edges))
    if any(used):
        seen = ", ".join(f"{each}:{port}" for each, taken in zip(edges, used, strict=True) for port in taken)
        return refuse("ports", f"in use: {seen}", "stop the programs that listen there")
    return ok("ports", f"{', '.join(map(str, wanted))} free for the load balancer")


async def name(move: Move) -> Finding:
    """The record is the plane's own, and every DNS server answers the same."""
    world, host = move.world, move.wanted.host
    if world.foreign:
        return refuse("name", f"{host} is not the plane's: {world.foreign}", "or choose another name")
    if world.torn:
        return refuse("name", world.torn, "see that all DNS servers of the zone answer the same")
    return ok("name", f"{host} is the plane's own")


async def endpoint(move: Move) -> Finding:
    """The record can be changed, and no client holds it for longer than the old address is kept."""
    dns, name, ttl = move.plane.dns, move.wanted.host, move.wanted.spec.endpoint.ttl
    await dns.check(name)
    record = await dns.observe(name)
    if record is not None and record.ttl > ttl:
        return refuse(
            "endpoint",
            f"clients may hold {name} for {record.ttl} s, but the spec says {ttl} s",
            f"give its records a time to live of {ttl} s, and wait until no client holds the old ones",
        )
    return ok("endpoint", f"{name}, time to live {ttl} s")


async def clients(move: Move) -> Finding:
    """Load balancers can be paused for the moments in which requests would be refused or lost."""
    sites = {move.wanted.spec.placement.site, *(each.site for each in move.world.balancers if each.running)}
    all_edges = {site: move.plane.balancers.get(site, {}) for site in sorted(sites)}
    own = [site for site, edges in all_edges.items() if not all(each.can_hold for each in edges.values())]
    if not own:
        return ok("clients", "they wait during the leadership transfer, and see no failure")
    seen = (
        f"the load balancer at {' and '.join(own)} is the user's own, and cannot be paused: requests in flight may fail"
        " when etcd transfers leadership and when an apiserver stops; each change of its backends needs a person"
    )
    return Finding("clients", Verdict.WARN, seen)


async def locks(move: Move) -> Finding:
    """No other process holds a lock of a migrating set, and clocks agree well enough for locks."""
    before = {each.name: each.owner for each in move.plane.resource.spec.controller_sets}
    handed = [each for each in move.wanted.spec.controller_sets if before.get(each.name) is not each.owner]
    if not handed:
        return ok("locks", "no controllers migrate")
    if others := await strangers(move.plane, [each.lock for each in handed]):
        return refuse(
            "locks", f"held by no manager of this plane: {', '.join(others)}", "stop the process that holds it"
        )
    against = [f"{each.declared.name}: {why}" for each in await sets_held(move.plane) for why in each.why]
    if off := [each for each in against if "clock" in each]:
        return refuse("locks", "; ".join(off), "an expired lease is recognized by its time")
    if against:
        return Finding("locks", Verdict.WARN, "; ".join(against))
    return ok("locks", f"{', '.join(each.lock for each in handed)}: not held by other processes")


Check = Callable[[Move], Awaitable[Finding]]
#: The checks in display order: for a move to another site, for additional or new replicas at the same site, and for
#: removals alone.
MOVING: tuple[Check, ...] = (
    health,
    versions,
    alarms,
    same_data,
    machines,
    cordons,
    learners,
    storage_class,
    free_disk,
    free_memory,
    distance,
    etcd_tuning,
    clocks,
    certificates,
    ports,
    host_limits,
    host_files,
    clients,
    locks,
    endpoint,
    name,
)
COMING: tuple[Check, ...] = tuple(check for check in MOVING if check not in (distance, etcd_tuning, endpoint, name))
GOING: tuple[Check, ...] = (health, alarms, cordons)


def checks(move: Move) -> tuple[Check, ...]:
    """The checks for a change of a plane's replicas."""
    if move.elsewhere:
        return MOVING
    if upgrades(move.plane.resource, move.wanted):
        return (*COMING, *UPGRADING)
    if upgrades_etcd(move.plane.resource, move.wanted):
        return (*COMING, *UPGRADING_ETCD)
    return COMING if move.wanted.spec.replicas >= move.plane.resource.spec.replicas else GOING
