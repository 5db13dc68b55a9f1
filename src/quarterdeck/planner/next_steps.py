"""What a person does about what is waited for: the second half of each ``Wait``."""

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
    """What to do about a program of which only its own output can tell more."""
    return f"if it lasts, see {world.command('logs', '--replica', record.name, '--component', component)}"


def status(world: World) -> str:
    """What to do where more than one thing may be in the way."""
    return f"if it lasts, see {world.command('status')}"


def quorum(world: World) -> str:
    """What to do where no quorum of a cluster answers."""
    silent = f"bring back the members that do not answer: {world.command('status')} lists them"
    return f"{silent}; if they are gone for good, see {world.command('recover')}"


def once(world: World, what: str) -> str:
    """Quarterdeck does it by itself when something else is so."""
    return f"quarterdeck goes on by itself once {what}; {status(world)}"


def within(seconds: float) -> str:
    """Quarterdeck does it when a time has passed."""
    return f"quarterdeck goes on by itself within {max(seconds, 0.0):.0f} s"


def uncordon(world: World, replica: str) -> str:
    """What ends a person's wish to leave a replica alone."""
    return world.command("replica uncordon", replica)


def silent(world: World, site: str, machine: str, which: str = "") -> Wait:
    """A machine that does not answer; ``which`` says more of it."""
    return Wait(f"machine {machine}{which} to answer{why_silent(world, site, machine)}", _bring_back(site))


def machine(world: World, record: Replica, purpose: str = "") -> Wait:
    """The machine of a replica, which does not answer; ``purpose`` says what for it is needed."""
    why = why_silent(world, record.site, record.machine)
    return Wait(f"machine {record.machine} of {record.name} to answer{purpose}{why}", _bring_back(record.site))


def edges(world: World, site: str, purpose: str = "") -> Wait:
    """The machines that the load balancer of a site runs on, which do not answer."""
    edges = world.balancer(site).edges
    which = f" ({', '.join(sorted(world.balancer(site).silent))})" if len(edges) > 1 else ""
    why = next((f": {each.why}" for each in edges if each.leads is None and each.why), "")
    return Wait(f"the load balancer's machine at {site}{which} to answer{purpose}{why}", _bring_back(site))


def _bring_back(site: str) -> str:
    return f"bring it back; 'quarterdeck site check {site}' says what is in the way"


def on_machine(world: World, record: Replica, wait: Wait) -> Wait:
    """What is waited for on the machine of a replica: first that one, where it does not answer."""
    if world.replica(record.name).machine is MachineState.UP:
        return wait
    silent = f"machine {record.machine} does not answer{why_silent(world, record.site, record.machine)}"
    return replace(wait, what=f"{wait.what}: {silent}", then=_bring_back(record.site))


def member(world: World, record: Replica, etcd: Component, what: str) -> Wait:
    """Something that a member of etcd is to do, with what it complains of where it says nothing else."""
    said, named = world.replica(record.name).complaint(etcd), f"{etcd} of {record.name}"
    if said is not None:
        what += f": {'it' if named in what else named} runs and reports nothing{_last(said)}"
    return on_machine(world, record, Wait(what, look(world, record, etcd)))


def program(world: World, record: Replica, component: Component, to: str) -> Wait:
    """The same for any program of a replica."""
    return member(world, record, component, f"{component} of {record.name} {to}")


def voter(world: World, record: Replica, cluster: Cluster = Cluster.MAIN) -> Wait:
    """That a replica is a member that votes."""
    of = "" if cluster is Cluster.MAIN else f" of {CALLED[cluster]}"
    return member(world, record, MEMBER[cluster], f"{record.name} to be a healthy voter{of}")


def leader(world: World, what: str) -> Wait:
    """That another member leads: one that has all the data."""
    return Wait(what, once(world, "another voter is healthy and has all the data"))


def _last(said: str) -> str:
    return f" new; its last error is: {said}" if said else ""
