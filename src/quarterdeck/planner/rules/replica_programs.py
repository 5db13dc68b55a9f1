"""Which apiservers and controllers run, and when the unwanted ones are stopped.

Nothing serves without the plane's data, or on other data; and nothing is replaced while etcd has an alarm. Frozen
managers of controller sets are stopped before their locks pass to others.
"""

from __future__ import annotations

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.units import StartUnit, StopUnit
from quarterdeck.model.units import IDLE, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.etcd_versions import kept_back
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rules.traffic import carries, drains, may_drain
from quarterdeck.planner.view import View


def serve(view: View) -> RuleOutcome:
    """Every wanted voter runs an apiserver."""
    return _serving(view, view.wanted, "its member is a healthy voter")


def serve_in_outage(view: View) -> RuleOutcome:
    """When no apiserver is ready, any healthy voter runs one, wanted or not: availability comes before order."""
    if any(view.ready(record) for record in view.world.memory.replicas):
        return RuleOutcome()
    return _serving(view, view.unwanted, "no apiserver is ready, and its member is a healthy voter")


def _serving(view: View, hosts: tuple[Replica, ...], why: str) -> RuleOutcome:
    steps: list[Step] = []
    waiting: list[Wait] = []
    for record in hosts:
        if not view.can_serve(record) or not view.reachable(record) or record.name in view.lost:
            continue
        if view.rests(record, Component.APISERVER):
            continue
        if view.unit(record, Component.APISERVER) in IDLE:
            steps.append(_start(record, Component.APISERVER, why))
        elif not view.ready(record) and record.name not in view.mute:
            waiting.append(next_steps.program(view.world, record, Component.APISERVER, "to be ready"))
    return RuleOutcome(tuple(steps), tuple(waiting))


def control(view: View) -> RuleOutcome:
    """Every wanted replica with a ready apiserver runs controllers. While unwanted ones do the work, they do not start
    while apiservers start: sites may share their processors, and requests come first. None start while others run that
    must not run at the same time, and in a new epoch kube-controller-manager not before kubelets are back.
    """
    starting = serve(view)
    if (starting.steps or starting.waiting) and _run_controllers(view, view.unwanted):
        return RuleOutcome()
    idle = [
        (record, component)
        for record in view.servers
        if view.reachable(record) and view.ready(record)
        for component in view.world.controllers(record)
        if view.unit(record, component) in IDLE and not view.rests(record, component)
    ]
    absent = _awaits_kubelets(view.world)
    awaiting = tuple(absent for _, each in idle if each is Component.CONTROLLER_MANAGER and absent is not None)[:1]
    if awaiting:
        idle = [each for each in idle if each[1] is not Component.CONTROLLER_MANAGER]
    held = {record.name: others for record, each in idle if each.manages and (others := view.kept_from(record))}
    return RuleOutcome(
        tuple(
            _start(record, each, "its apiserver is ready")
            for record, each in idle
            if not each.manages or record.name not in held
        ),
        (*awaiting, *(_first(view, name, others) for name, others in held.items())),
    )


def _awaits_kubelets(world: World) -> Wait | None:
    """The wait of kube-controller-manager in a new epoch. The Leases and conditions of nodes are as old as its data:
    nodes that lived count as silent until their kubelets reach an apiserver, and their pods are taken out of Services
    and evicted. One kubelet shows that they can. Each of the others has 50 s from when the manager first looks at it
    (kubernetes: node_lifecycle_controller.go, tryUpdateNodeHealth; --node-monitor-grace-period).
    """
    if not world.awaits_kubelets:
        return None
    what = "a kubelet to renew its Lease before kube-controller-manager starts: it would evict pods of silent nodes"
    return Wait(what, f"none is waited for longer than {world.settings.kubelets:g} s")


def _first(view: View, name: str, others: tuple[str, ...]) -> Wait:
    what = f"controllers of {', '.join(others)} to stop before those of {name} start"
    return Wait(what, f"quarterdeck stops them once they are no longer needed; {next_steps.status(view.world)}")


def _run_controllers(view: View, hosts: tuple[Replica, ...]) -> bool:
    kinds = {component for record in hosts for component in view.world.controllers(record)}
    running = {each for each in kinds if any(view.unit(record, each) is UnitState.RUNNING for record in hosts)}
    return bool(hosts) and running == kinds


def _start(record: Replica, component: Component, why: str) -> StartUnit:
    return StartUnit(site=record.site, why=why, replica=record.name, component=component)


def retire(view: View) -> RuleOutcome:
    """Unwanted controllers stop once wanted ones stand by; unwanted apiservers once they are drained."""
    leaving = [record for record in view.unwanted if view.reachable(record)]
    steps = _retire_controllers(view, leaving)
    if steps:
        return RuleOutcome(tuple(steps))
    waiting: list[Wait] = []
    for record in leaving:
        state = view.unit(record, Component.APISERVER)
        if state in (*IDLE, UnitState.UNKNOWN):
            continue
        if not (may_drain(view) or record.name in view.gone):
            waiting.append(carries(view))
        elif drain := drains(view, record):
            waiting.append(drain)
        elif any(view.unit(record, component) not in IDLE for component in view.world.programs.controllers):
            stand_by = f"controllers to stand by for those of {record.name}"
            waiting.append(Wait(stand_by, next_steps.once(view.world, "all others run theirs")))
        else:
            why = "no load balancer has sent it new connections for the length of the drain"
            steps.append(StopUnit(site=record.site, why=why, replica=record.name, component=Component.APISERVER))
    return RuleOutcome(tuple(steps), tuple(dict.fromkeys(waiting)))


def _retire_controllers(view: View, leaving: list[Replica]) -> list[Step]:
    # A replica that is replaced because its controllers stay unhealthy is not waited for, if there are others.
    stay = [record for record in view.servers if record.name not in view.world.memory.leaving] or view.servers
    standby = may_drain(view) and all(
        view.unit(record, component) is UnitState.RUNNING and component not in view.fact(record).hung
        for record in stay
        for component in view.world.controllers(record)
    )
    return [
        StopUnit(
            site=record.site,
            why="controllers of wanted replicas stand by",
            replica=record.name,
            component=component,
        )
        for record in leaving
        for component in view.world.programs.controllers
        if (standby or record.name in view.gone) and view.unit(record, component) not in (*IDLE, UnitState.UNKNOWN)
    ]


def dismiss(view: View) -> RuleOutcome:
    """A program that a replica's revision no longer has is removed from its machine, with its files: it was stopped
    before that revision was adopted.
    """
    return RuleOutcome(
        tuple(
            StopUnit(site=record.site, why="its revision does not have it", replica=record.name, component=component)
            for record in view.wanted
            for component in view.world.programs.controllers
            if component not in view.world.controllers(record)
            and view.unit(record, component) not in (UnitState.ABSENT, UnitState.UNKNOWN)
        )
    )


def _is_well(view: View, record: Replica, component: Component) -> bool:
    """Whether a controller runs: one that exits when it reads its flags also runs for a moment, and reports nothing."""
    fact = view.fact(record)
    well = fact.unit(component) is UnitState.RUNNING and component not in fact.silent | fact.crash_looping
    return well and fact.complaint(component) is None


def _in_its_turn(view: View) -> str:
    return next_steps.once(view.world, "all others are healthy")


def settled(view: View) -> RuleOutcome:
    """Waits as long as a wanted replica is not a healthy voter with all programs running."""
    waiting: list[Wait] = []
    for record in view.wanted:
        if record.name in view.outdated:
            then = next_steps.once(view.world, "another replica can replace it")
            waiting.append(Wait(f"{record.name} to be replaced", then))
        elif record.revision != view.revision and record.name in view.world.cordoned:
            what = f"{record.name} to be uncordoned, to run revision {view.revision}"
            waiting.append(Wait(what, next_steps.uncordon(view.world, record.name)))
        elif record.name not in view.world.cordoned and view.fact(record).altered:
            what = f"{record.name} to be restarted from its revision: its files were changed on the machine"
            waiting.append(Wait(what, _in_its_turn(view)))
        elif record.revision != view.revision and record.name != kept_back(view.world, view.revision):
            waiting.append(Wait(f"{record.name} to run revision {view.revision}", _in_its_turn(view)))
        else:
            waiting.extend(_lacks(view, record))
    return RuleOutcome(waiting=tuple(waiting))


def _lacks(view: View, record: Replica) -> tuple[Wait, ...]:
    """What a replica lacks to be a healthy voter with all programs running."""
    if not view.reachable(record):
        return (next_steps.machine(view.world, record),)
    if not view.is_healthy_voter(record):
        return (next_steps.voter(view.world, record),)
    if not view.can_serve(record):
        return (next_steps.voter(view.world, record, Cluster.EVENTS),)
    if not view.ready(record):
        return (next_steps.program(view.world, record, Component.APISERVER, "to be ready"),)
    return tuple(
        next_steps.program(view.world, record, component, "to run")
        for component in view.world.controllers(record)
        if not _is_well(view, record, component)
    )


def others_well(view: View, record: Replica, purpose: str) -> Wait:
    """The first thing that another replica lacks before a program stops on this one."""
    others = (each for each in view.wanted if each.name != record.name) if view.world.membership is not None else ()
    first = next((each for other in others for each in _lacks(view, other)), None)
    if first is not None:
        return Wait(f"{first.what}, before {record.name} {purpose}", first.then)
    return Wait(f"all others to be healthy before {record.name} {purpose}", next_steps.status(view.world))


def stop_frozen(view: View) -> RuleOutcome:
    """A controller manager that has reported nothing for so long that another one is about to take its locks is killed:
    it would keep acting for a while when it resumes. Not where all report nothing: then the host is slow, or this
    process gets no answers, and no lock changes hands. It is started again like every program that does not run.
    """
    return RuleOutcome(
        tuple(
            StopUnit(
                site=record.site,
                why="it is frozen, and another one is about to take its locks",
                replica=record.name,
                component=component,
            )
            for record in view.world.memory.replicas
            if view.reachable(record)
            for component in sorted(view.fact(record).frozen)
            if any(_leads_well(view, other, component) for other in view.world.memory.replicas if other is not record)
        )
    )


def _leads_well(view: View, record: Replica, component: Component) -> bool:
    return view.unit(record, component) is UnitState.RUNNING and component not in view.fact(record).silent


def withhold(view: View) -> RuleOutcome:
    """The apiserver of a replica whose etcd has the wrong data stops, and so does one that serves only from its cache:
    apiservers keep listing what is in their watch cache when the data behind it is gone.

    An apiserver uses only its own member. That etcd keeps running: it has no client then, and its answers are the only
    sign of what is wrong, and of its being right again.
    """
    wrong = {each.replica: each.seen for each in view.world.wrong}
    steps: list[Step] = []
    waiting: list[Wait] = []
    for record in view.world.memory.replicas:
        if view.world.memory.is_former(record):
            continue  # all its programs stop
        if record.name in wrong:
            why = wrong[record.name]
            waiting.append(
                Wait(
                    f"the plane's own data in the volume of {record.name} on machine {record.machine}: {why}",
                    "move the wrong data away, restore the right data, and kill its etcd",
                )
            )
        elif _has_nothing(view, record):
            why = "its data is gone, and it serves only from its cache"
            what = f"the data of {record.name} to be restored to its volume on machine {record.machine}"
            waiting.append(Wait(what, f"restore it; if it is gone for good, see {next_steps.new_epoch(view.world)}"))
        else:
            continue
        if view.reachable(record) and view.unit(record, Component.APISERVER) not in (*IDLE, UnitState.UNKNOWN):
            steps.append(StopUnit(site=record.site, why=why, replica=record.name, component=Component.APISERVER))
    return RuleOutcome(tuple(steps), tuple(waiting))


def _has_nothing(view: View, record: Replica) -> bool:
    """Whether a member was observed without its data, and not running, while no quorum answers that could spare it."""
    if view.world.membership is not None or not record.started:
        return False
    return view.fact(record).has_data is False and view.unit(record, Component.ETCD) is not UnitState.RUNNING
