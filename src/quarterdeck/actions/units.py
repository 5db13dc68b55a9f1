"""Units of replicas: they start, reload files, and stop; and a revision that does not run is rejected."""

from __future__ import annotations

import asyncio
import math
from contextlib import AsyncExitStack
from dataclasses import replace

from quarterdeck.actions.addons import allow_locks
from quarterdeck.actions.addresses import apiserver_address, candidates, peer_url, server_address
from quarterdeck.actions.certificates import certificates_of, forget_program
from quarterdeck.actions.handlers import Handlers, Preparations
from quarterdeck.actions.hold import BETWEEN, held
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.volumes import replica_settings, volume_of
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.controller.sets import locks
from quarterdeck.components.credentials import uses
from quarterdeck.components.etcd import boot_arguments, log_files
from quarterdeck.components.record import ComponentSpec, Stopping
from quarterdeck.components.replica import component_unit
from quarterdeck.components.settings import ClusterState, InitialCluster, Inputs
from quarterdeck.concurrency import beside, together
from quarterdeck.errors import Conflict, PreconditionFailed, Unavailable
from quarterdeck.kube.port import Address, Witness
from quarterdeck.model.clusters import CALLED, CLUSTER, MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.steps.units import RejectRevision, ReloadUnit, RestartUnit, ReviveUnit, StartUnit, StopUnit
from quarterdeck.model.units import Priority, UnitSpec
from quarterdeck.model.world import World
from quarterdeck.sites.endings import complaint, why_unit_ended


async def start_unit(plane: Plane, step: StartUnit | RestartUnit | ReviveUnit, world: World) -> None:
    """Write the unit's files and start it; a running one with the same spec is left alone.

    etcd starts without data only on a replica that was never healthy; its machine knows whether there was any.
    """
    cluster = CLUSTER.get(step.component, Cluster.MAIN)
    record = plane.memory.replica(step.replica)
    spec = await rendered(plane, record, step.component, plane.template_of(record), world)
    await allow_locks(plane, record, step.component)
    fresh = spec.needs is not None and _begins_without_data(plane, record, cluster)
    await plane.check()
    await plane.site(record.site).start_unit(record.machine, replace(spec, fresh=fresh))


def _begins_without_data(plane: Plane, record: Replica, cluster: Cluster) -> bool:
    """Whether a member may start without data: it was never healthy, and it is not the founder of a new epoch."""
    memory = plane.memory.of(cluster)
    seeded = memory.seed is not None and memory.seed.founder == record.name
    if cluster is Cluster.EVENTS and memory.created:
        seeded = False  # a replica may get another member of it
    return not (memory.replica(record.name).started or seeded)


async def rendered(
    plane: Plane, record: Replica, component: Component, template: ReplicaTemplate, world: World
) -> UnitSpec:
    """The unit of one of a replica's programs, rendered from a template."""
    replica = await replica_settings(plane, record, component)
    certificates = await certificates_of(plane, record)
    inputs = Inputs(
        plane=plane.name,
        template=template,
        replica=replica,
        secrets=plane.secrets.used(uses(template.certificates)),
        certificates=certificates,
        initial=_initial_cluster(plane, record, world, CLUSTER.get(component, Cluster.MAIN)),
        events=plane.revisions.events(record.revision),
    )
    return component_unit(component, inputs)


async def guard_members(plane: Plane) -> None:
    """Make each machine that answers refuse to start its etcd without data, or as a founder once the cluster exists,
    and make etcd compare its data when it starts again. Running programs keep running: this is for members that were
    founders or joining when they started.
    """
    for cluster in Cluster:
        memory = plane.memory.of(cluster)
        if memory.created:
            there = (record for record in memory.replicas if not memory.is_former(record))
            members = [record for record in there if record.started and record.site in plane.sites]
            await asyncio.gather(*(_guard(plane, record, cluster) for record in members))


async def _guard(plane: Plane, record: Replica, cluster: Cluster) -> None:
    site = plane.site(record.site)
    try:
        volume = await volume_of(plane, plane.memory.replica(record.name), cluster)
        if volume is not None:
            boot = boot_arguments(plane.template_of(record), _initial_cluster(plane, record, None, cluster))
            unit = plane.unit(record, MEMBER[cluster])
            await site.guard_unit(record.machine, unit, log_files(volume.path), boot)
    except Unavailable:
        return  # it is done when the plane is driven next


def _initial_cluster(
    plane: Plane, record: Replica, world: World | None, cluster: Cluster = Cluster.MAIN
) -> InitialCluster:
    """The initial cluster of a member: founders list the founders as long as the cluster does not exist; a joining
    member lists exactly the present membership, itself included. A member with data does not need it: where the
    membership is unknown, it lists all possible members.
    """
    memory, token = plane.memory.of(cluster), token_of(plane, cluster)
    started = memory.replica(record.name).started
    if record.name in memory.bootstrap and not memory.created:
        founders = tuple(
            (name, peer_url(memory.replica(name), cluster)) for name in memory.bootstrap if _known(memory, name)
        )
        return InitialCluster(state=ClusterState.NEW, members=founders, token=token)
    membership = world.of(cluster).membership if world is not None else None
    if membership is None:
        maybe = tuple((each.name, peer_url(each, cluster)) for each in candidates(plane, cluster))
        return InitialCluster(state=ClusterState.EXISTING, members=maybe, token=token, compares=started)
    members = membership.members
    unknown = [member for member in members if not _known(memory, member.replica)]
    if unknown and not started:
        raise PreconditionFailed(
            f"starting {CALLED[cluster]} of {record.name}",
            f"member {unknown[0].description} belongs to no replica, and a joining member must list all others",
            f"remove it with 'quarterdeck etcd remove-member {plane.name} {unknown[0].id:x}'",
        )
    known = (member for member in members if member not in unknown)
    listed = tuple((member.replica, peer_url(memory.replica(member.replica), cluster)) for member in known)
    return InitialCluster(state=ClusterState.EXISTING, members=listed, token=token, compares=started)


def token_of(plane: Plane, cluster: Cluster) -> str:
    """The initial cluster token, which distinguishes clusters that were founded on the same seats."""
    memory = plane.memory
    main = f"{plane.name}-{plane.resource.metadata.uid}"
    if cluster is Cluster.EVENTS:
        return f"{main}-events-{memory.events.epoch}"
    return f"{main}-epoch-{memory.epoch}" if memory.epoch else main


def _known(memory: Memory, name: str) -> bool:
    return any(record.name == name for record in memory.replicas)


async def restart_unit(plane: Plane, step: RestartUnit | ReviveUnit, world: World) -> None:
    """Kill the unit's process and start it again."""
    record = plane.memory.replica(step.replica)
    await plane.site(record.site).stop_unit(record.machine, plane.unit(record, step.component), kill=True)
    await start_unit(plane, step, world)


async def stop_unit(plane: Plane, step: StopUnit, world: World) -> None:
    """Stop the unit gracefully. The lease of a controller manager that led is released once its process is gone. A
    program that the replica's revision no longer has is removed as well, with its files and certificates.

    Members of a deleted plane are killed, as are those of a removed cluster: their data is deleted too, and a leader
    would wait 7 s for a follower to take over (etcd: TransferLeadership, ReqTimeout) while all of them stop. Programs
    of a former epoch are killed, except its etcd: when that exits it writes all that it has applied to its database,
    from which the next epoch may begin.
    """
    record, spec = plane.memory.replica(step.replica), CATALOGUE[step.component]
    unit, site = plane.unit(record, step.component), plane.site(record.site)
    if plane.memory.is_former(record):
        await site.stop_unit(record.machine, unit, kill=not _is_to_be_copied(plane, step))
        return
    match spec.stopping:
        case Stopping.UNSEEN:
            await _stop_apiserver(plane, record, unit, world)
        case Stopping.HANDING_ON:
            hangs = step.component in world.replica(record.name).hung  # it neither answers nor exits by itself
            held = () if hangs else await _held(plane, record, step.component)
            await plane.check()
            await site.stop_unit(record.machine, unit, kill=hangs)
            for lock, holder in held:
                await _hand_on(plane, holder, lock, world)
        case Stopping.ASKED:
            await site.stop_unit(record.machine, unit, kill=_goes_for_good(step.component, world))
    if step.component.is_controller and step.component not in world.controllers(record):
        await plane.check()
        await site.remove_unit(record.machine, unit)
        await forget_program(plane, record, step.component)


def _is_to_be_copied(plane: Plane, step: StopUnit) -> bool:
    seed = plane.memory.seeding
    if step.component != Component.ETCD or seed is None:
        return False
    return step.replica in seed.candidates


def _goes_for_good(component: Component, world: World) -> bool:
    """Whether a program is a member of a cluster that is being removed as a whole."""
    cluster = CLUSTER.get(component)
    return cluster is not None and (world.deleting or not world.memory.of(cluster).bootstrap)


async def _stop_apiserver(plane: Plane, record: Replica, unit: str, world: World) -> None:
    """Stop an apiserver so that a client sees no more than a closed idle connection.

    A stopping apiserver refuses new requests (503) from the moment when it begins to close idle connections, and a
    request in between is refused (kubernetes: WithWaitGroup; no flag changes it). So the load balancers are paused from
    just before until its listener is closed and connections like those of clients got the close: on a busy machine that
    is later. One that was never a backend has no clients that need a pause, and one that is just starting would make
    them wait long.
    """
    site = plane.site(record.site)
    if _serves_nobody(world, record):
        await site.stop_unit(record.machine, unit, kill=True)
        return
    if not _may_have_clients(world, record):
        await site.stop_unit(record.machine, unit)
        return
    address = apiserver_address(record)
    async with (
        AsyncExitStack() as afterwards,
        plane.kube.witness(address) as witness,
        held(plane, world, (record,)) as hold,
    ):
        await plane.check()
        await afterwards.enter_async_context(beside(site.stop_unit(record.machine, unit)))
        await _until_refused(plane, address, witness, hold.until)
        await asyncio.sleep(hold.settle)  # its last packets arrive


def _serves_nobody(world: World, record: Replica) -> bool:
    """Whether an apiserver hangs, or has lost its member (a graceful stop would wait for that until its timeout), or
    serves wrong data.
    """
    member = world.member(record.name)
    well = member is not None and member.health is Health.HEALTHY
    fact = world.replica(record.name)
    ready = fact.ready is True
    if not ready and Component.APISERVER in fact.hung:
        return True
    return not well and (not ready or any(each.replica == record.name for each in world.wrong))


def _may_have_clients(world: World, record: Replica) -> bool:
    """Whether a load balancer may have sent clients to an apiserver, now or ever."""
    return record.served or any(record.name in each.backends for each in world.doors)


async def _until_refused(plane: Plane, address: Address, witness: Witness, until: float) -> None:
    """Return when the apiserver no longer listens and the witness connections were closed, or at the time ``until`` of
    the event loop's clock.
    """
    while asyncio.get_running_loop().time() < until:
        if await plane.kube.listens(address) is False and witness.informed:
            return
        await asyncio.sleep(BETWEEN)


async def _held(plane: Plane, record: Replica, component: Component) -> tuple[tuple[str, str], ...]:
    """The locks that a controller manager holds, each with its holder identity; its main lock comes last. Without a
    lock that cannot be read: that expires by itself, some 15 s later.
    """
    spec = CATALOGUE[component]
    held = (*locks(plane.template_of(record), component), spec.lease)
    holders = [(lock, await _holder(plane, record, spec, lock)) for lock in held]
    return tuple((lock, holder) for lock, holder in holders if holder is not None)


async def _holder(plane: Plane, record: Replica, spec: ComponentSpec, lock: str) -> str | None:
    (port,) = spec.ports
    if not await plane.kube.leads(server_address(record, port.name), lock):
        return None
    try:
        lease = await plane.kube.leader_lease(apiserver_address(record), lock)
    except Unavailable:
        return None
    return lease.holder if lease is not None and lease.holder else None


async def _hand_on(plane: Plane, holder: str, lease: str, world: World) -> None:
    for fact in world.replicas:
        if fact.ready:
            apiserver = apiserver_address(plane.memory.replica(fact.name))
            await plane.check()
            try:
                await plane.kube.release_lease(apiserver, lease, holder)
            except Unavailable:
                continue  # another apiserver may answer; and if none does, the lease expires by itself
            return


async def favour(plane: Plane, record: Replica, *components: Component) -> None:
    """Give units their full share of their machine, before others depend on them."""
    site = plane.site(record.site)
    names = [plane.unit(record, each) for each in components]
    await together(*(site.set_priority(record.machine, each, Priority.SERVING) for each in names))


async def reload_unit(plane: Plane, step: ReloadUnit, world: World) -> None:
    """Give a running unit the files of a revision; the next observation shows whether its program has loaded them.

    Raises Unavailable for one that was started with other arguments, and remembers that: only a restart helps.
    """
    record, template = plane.memory.replica(step.replica), plane.revisions.template(step.revision)
    spec = await rendered(plane, record, step.component, template, world)
    await plane.check()
    given = step.replica, step.revision
    try:
        await plane.site(record.site).reload_unit(record.machine, spec)
    except Conflict as error:
        plane.given[given] = -math.inf
        doing = f"reloading the files of {step.component} of {step.replica}"
        raise Unavailable(doing, error.seen, "it is restarted instead") from error
    plane.given[given] = plane.steady()


async def with_reason(plane: Plane, step: RejectRevision) -> RejectRevision:
    """The step with the error that the program reported, if its machine has it, and it is not known yet."""
    if step.complaint:
        return step
    record = plane.memory.replica(step.replica)
    ask = complaint if step.runs else why_unit_ended
    reason = await ask(plane.site(record.site), record.machine, plane.unit(record, step.component))
    return replace(step, complaint=reason)


PREPARED: Preparations = {RejectRevision: with_reason}


HANDLERS: Handlers = {
    StartUnit: start_unit,
    StopUnit: stop_unit,
    RestartUnit: restart_unit,
    ReviveUnit: restart_unit,
    ReloadUnit: reload_unit,
}
