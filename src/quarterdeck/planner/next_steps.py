"""What a person can do about a wait: the second half of each ``Wait``."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import CALLED, MEMBER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.machines import why_silent


def look(world: World, record: Replica, component: Component) -> str:
    """What to do about a program whose cause is only in its own output."""
    return f"if it lasts, see {world.command('logs', '--replica', record.name, '--component', component)}"


def status(world: World) -> str:
    """What to do where there can be more than one cause."""
    return f"if it lasts, see {world.command('status')}"


def quorum(world: World) -> str:
    """What to do where no quorum of a cluster answers."""
    if world.expired and not world.settings.offline:
        return renewal(world)
    silent = f"bring back the members that do not answer: {world.command('status')} lists them"
    return f"{silent}; if they are gone for good, see {new_epoch(world)}"


def expired(world: World) -> str:
    """The replicas whose certificates have expired, in a sentence."""
    return f"certificates of {', '.join(sorted(world.expired))} have expired"


def renewal(world: World) -> str:
    """The same, with the command that renews them where no quorum answers."""
    return f"{expired(world)}: {world.command('certs renew', *([] if world.membership else ['--offline']))}"


def new_epoch(world: World, *flags: str) -> str:
    """The commands that continue a plane whose quorum is lost, with these flags. The standby comes first: it usually
    has the most data, and is not at the site with the fault.
    """
    recover = world.command("recover", *flags)
    if world.standby is None:
        return recover
    return f"{world.command('failover', '--to', world.standby.site, *flags)} or {recover}"


def once(world: World, what: str) -> str:
    """Quarterdeck continues by itself once a condition holds."""
    return f"quarterdeck continues once {what}; {status(world)}"


def within(seconds: float) -> str:
    """Quarterdeck continues by itself after a time."""
    return f"quarterdeck continues within {max(seconds, 0.0):.0f} s"


def stored(world: World, revision: str) -> Wait:
    """A check of the stored objects, which a quorum of etcd must answer."""
    return Wait(f"a quorum, to check that revision {revision} can read all stored objects", quorum(world))


def uncordon(world: World, replica: str) -> str:
    """The command that uncordons a replica."""
    return world.command("replica uncordon", replica)


def silent(world: World, site: str, machine: str, which: str = "") -> Wait:
    """A machine that does not answer; ``which`` is appended to its name."""
    return Wait(f"machine {machine}{which} to answer{why_silent(world, site, machine)}", _bring_back(site))


def machine(world: World, record: Replica, purpose: str = "") -> Wait:
    """The machine of a replica, which does not answer; ``purpose`` says why it is needed."""
    why = why_silent(world, record.site, record.machine)
    return Wait(f"machine {record.machine} of {record.name} to answer{purpose}{why}", _bring_back(record.site))


def edges(world: World, site: str, purpose: str = "") -> Wait:
    """The machines that the load balancer of a site runs on, which do not answer."""
    edges = world.balancer(site).edges
    which = f" ({', '.join(sorted(world.balancer(site).silent))})" if len(edges) > 1 else ""
    why = next((f": {each.why}" for each in edges if each.leads is None and each.why), "")
    return Wait(f"the load balancer's machine at {site}{which} to answer{purpose}{why}", _bring_back(site))


def _bring_back(site: str) -> str:
    return f"bring it back; 'quarterdeck site check {site}' shows what prevents it"


def on_machine(world: World, record: Replica, wait: Wait) -> Wait:
    """A wait for something on the machine of a replica: for the machine first, where that does not answer."""
    if world.replica(record.name).machine is MachineState.UP:
        return wait
    silent = f"machine {record.machine} does not answer{why_silent(world, record.site, record.machine)}"
    return replace(wait, what=f"{wait.what}: {silent}", then=_bring_back(record.site))


def member(world: World, record: Replica, etcd: Component, what: str) -> Wait:
    """A wait for a member of etcd, with the last error that it logged where nothing new was logged since."""
    complaint, named = world.replica(record.name).complaint(etcd), f"{etcd} of {record.name}"
    if complaint is not None:
        what += f": {'it' if named in what else named} runs and reports nothing{_last(complaint)}"
    return on_machine(world, record, Wait(what, look(world, record, etcd)))


def program(world: World, record: Replica, component: Component, to: str) -> Wait:
    """The same for any program of a replica; ``to`` is what it must do."""
    return member(world, record, component, f"{component} of {record.name} {to}")


def voter(world: World, record: Replica, cluster: Cluster = Cluster.MAIN) -> Wait:
    """A wait for a replica to be a voter."""
    of = "" if cluster is Cluster.MAIN else f" of {CALLED[cluster]}"
    return member(world, record, MEMBER[cluster], f"{record.name} to be a healthy voter{of}")


def leader(world: World, what: str) -> Wait:
    """A wait for another leader: one that has all the data."""
    return Wait(what, once(world, "another voter is healthy and has all the data"))


def _last(complaint: str) -> str:
    return f" new; its last error is: {complaint}" if complaint else ""
