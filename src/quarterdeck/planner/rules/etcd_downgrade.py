"""etcd's downgrade: a cluster works as a former minor version for a moment before members start with another one."""

from __future__ import annotations

from quarterdeck.model.membership import EtcdMinor, Health
from quarterdeck.model.steps.members import CancelDowngrade, EnableDowngrade
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.stored import NoteLowered
from quarterdeck.planner import next_steps
from quarterdeck.planner.etcd_versions import admits, is_closed, is_lowered, is_undone, taken_back_to
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.revisions import heading
from quarterdeck.planner.view import View

#: Seconds within which the leader compares the versions of all members, and members change how they store (etcd:
#: server/etcdserver, monitorVersionInterval and monitorStorageVersion).
_NOTICED = 10.0


def note(view: View) -> RuleOutcome:
    """That all members were taken back is noted before the first is restarted: one that has stopped reports nothing. It
    no longer counts once another revision is wanted, or the downgrade was ended.
    """
    world, wanted = view.world, heading(view.world)
    known = world.memory.lowered
    if known not in ("", wanted) or (known == wanted and is_undone(world, wanted)):
        return RuleOutcome((NoteLowered(site="", why="it no longer counts", revision=""),))
    if known != wanted and is_closed(world, wanted) and is_lowered(world, wanted):
        return RuleOutcome((NoteLowered(site="", why="every member has reported it", revision=wanted),))
    return RuleOutcome()


def downgrade(view: View) -> RuleOutcome:
    """Before the first member is restarted with an older minor version of etcd than the cluster works as, or with one
    that reads no old logs, etcd's downgrade is enabled, and is waited for. It is cancelled once no member is to have
    that version.
    """
    revision = heading(view.plane.world)
    wanted, target = view.world.etcd_minor(revision), taken_back_to(view.world, revision)
    if wanted is None:
        return RuleOutcome()
    known, enabled = view.world.memory.lowered == revision, view.membership.downgrade
    if enabled is not None and enabled < wanted and (known or enabled != target):
        why = f"members are to have etcd {_dotted(wanted)}"
        return RuleOutcome((CancelDowngrade(site="", why=why, cluster=view.cluster),))
    if target is None or admits(view.world, revision):
        return RuleOutcome()
    if known and target < wanted:
        return _waits(view, f"etcd to work as {_dotted(_after(target))} again")
    return _taken_back(view, target)


def _taken_back(view: View, target: EtcdMinor) -> RuleOutcome:
    """Take the cluster back, which no member keeps at that version."""
    works_as, enabled = view.membership.works_as, view.membership.downgrade
    sick = [each for each in view.membership.members if each.health is not Health.HEALTHY]
    if sick:
        names = ", ".join(each.description for each in sick)
        return _waits(view, f"member {names} to be healthy before etcd is taken back to {_dotted(target)}")
    if enabled is None and works_as == _after(target):
        why = "members are restarted with another version of etcd once they work and store as that one"
        return RuleOutcome((EnableDowngrade(site="", why=why, target=target, cluster=view.cluster),))
    if enabled is None and works_as == target:
        return _waits(view, f"etcd to work as {_dotted(_after(target))}, before it is taken back")
    if enabled is None or works_as is None:
        return _waits(view, "the leader of etcd to report the version of the cluster")
    return _waits(view, f"all members of etcd to work and store as {_dotted(target)}")


def _waits(view: View, what: str) -> RuleOutcome:
    takes = f"it takes etcd up to {_NOTICED:g} s; {next_steps.status(view.world)}"
    return RuleOutcome(waiting=(Wait(what, takes),))


def _after(minor: EtcdMinor) -> EtcdMinor:
    return minor[0], minor[1] + 1


def _dotted(minor: EtcdMinor) -> str:
    return f"{minor[0]}.{minor[1]}"
