"""Mutants that nobody notices, and why each harms nobody: they change nothing, or only what may be either way.

The keys are those of ``mutants.py``: function, text before, text after. One that is no mutant any more is refused by
``test_mutants.py``.
"""

from __future__ import annotations

#: Why any slot tells the site.
_ONE_SITE = "all slots of a plane are at one site, and where one is lent there is but one"
#: Why two rules may be asked in either order.
_EITHER = "should both have steps, those of the one do not hang on those of the other, which are there in the next look"
#: Why it does not matter with what a way begins to be counted.
_OFFSET = "all ways begin with it, so that it changes no comparison of two"
#: Why a state of the swap may be looked at again.
_AGAIN = "each state is reached by its best way first, so that what follows from it again is no better: it costs time"
#: Why the size of each member is known.
_SIZE = "a member that does not report its size is waited for before"
#: Why a replica does not return to its own machine.
_OWN_MACHINE = "the replica's own machine does not answer, and none that does not is chosen"

EQUIVALENT: dict[str, str] = {
    # --- reading ----------------------------------------------------------------------------------------------------
    "reading.Reading._members: for member in self.membership.members if member.replica => "
    "for member in self.membership.members": (
        "a member without a replica is stored under no name, which no replica has"
    ),
    "reading.Reading.serves_nobody: member is not None and member.health is Health.DOWN => "
    "member.health is Health.DOWN": "each rule that asks this asks it of a replica that is a member",
    # --- revisions --------------------------------------------------------------------------------------------------
    "revisions.stand_still: tuple((each for each in never_ready(world, record) if fact.complaint(each) is not None)) "
    "if fact.quiet else () => "
    "tuple((each for each in never_ready(world, record) if fact.complaint(each) is not None))": (
        "where nothing is quiet there is no complaint: it saves time"
    ),
    # --- traffic ----------------------------------------------------------------------------------------------------
    "traffic.follow: world.record is None or view.takeover or (not world.balancer(world.record).ready) => "
    "view.takeover or not world.balancer(world.record).ready": "where there is no name, no load balancer has it",
    # --- survival ---------------------------------------------------------------------------------------------------
    "survival._held_edges: seen.held - {APISERVERS} => seen.held": (
        "the name itself stands at no place, so that nothing is lost with what would be its edge"
    ),
    # --- stage ------------------------------------------------------------------------------------------------------
    "stage._cost: votes and leaves => leaves": "no learner has an apiserver, so that all of them are alike in this",
    # --- unhealthy_programs -----------------------------------------------------------------------------------------
    "unhealthy_programs.joins: member is not None and member.learner => member.learner": (
        "it is asked of a program that lags, and only a member does"
    ),
    # --- rollout ----------------------------------------------------------------------------------------------------
    "rollout.on_trial: 0 => -1": _ONE_SITE,
    # --- rule_table -------------------------------------------------------------------------------------------------
    "rule_table: RULES, members unknown: placement.found, membership.keep_running => "
    "membership.keep_running, placement.found": (
        "the one has nothing to do once a cluster was seen, and the other nothing before: it is noted with its members"
    ),
    "rule_table: RULES, members known: membership.remove_strays, membership.remove_dead => "
    "membership.remove_dead, membership.remove_strays": _EITHER,
    "rule_table: RULES, members known: membership.join, membership.rejoin => "
    "membership.rejoin, membership.join": _EITHER,
    "rule_table: RULES, members known: traffic.backends, traffic.record => traffic.record, traffic.backends": _EITHER,
    "rule_table: RULES, members known: replica_programs.retire, membership.lead => "
    "membership.lead, replica_programs.retire": (
        "leadership goes when no unwanted voter serves: what is to be stopped then serves nobody, before and after"
    ),
    "rule_table: RULES, members known: membership.swap, membership.remove => membership.remove, membership.swap": (
        "the one has steps only before the quorum is where the plane is heading, and the other only from then on"
    ),
    "rule_table: RULES, members known: events.dissolve, events.renew => events.renew, events.dissolve": _EITHER,
    "rule_table: RULES, members known: events.renew, replica_programs.dismiss => "
    "replica_programs.dismiss, events.renew": _EITHER,
    "rule_table: RULES, members known: replica_programs.dismiss, replica_programs.settled => "
    "replica_programs.settled, replica_programs.dismiss": (
        "the second has no steps: only what is waited for is said in another order"
    ),
    "rule_table: RULES, membership.stop_removed: despite=A_SMALL_QUOTA => nothing": (
        "what is left of a removed member ends by itself, over and over, and stops once the alarm is off"
    ),
    # --- standby ----------------------------------------------------------------------------------------------------
    "standby.heal: member is not None and member.health is not Health.DOWN => member.health is not Health.DOWN": (
        "only a member is sick (``standbys.is_sick``)"
    ),
    # --- notes ------------------------------------------------------------------------------------------------------
    "notes.note: world.front or '' => world.front": "only a plane with a front has a fixed address (``World.fixed``)",
    "notes._members: for member in membership.members if member.replica => for member in membership.members": (
        "a member without a replica is stored under no name, which no replica has"
    ),
    # --- recovery ---------------------------------------------------------------------------------------------------
    "recovery.fence: not world.memory.is_former(record) or not view.reachable(record) => "
    "not world.memory.is_former(record)": "no unit is known of a machine that does not answer",
    "recovery.advice: world.memory.seeding is not None and isinstance(world.memory.seeding.origin, SurvivorOrigin) => "
    "world.memory.seeding is not None": "of an epoch with another origin no survivors are counted (``survivors``)",
    "recovery.seed: world.memory.is_former(each) and _runs(view, each) => _runs(view, each)": (
        "nothing of the new epoch runs before its founder has the data"
    ),
    # --- upkeep -----------------------------------------------------------------------------------------------------
    "upkeep._compact: each.space is not None and has_no_room(each.space) and is_cramped(each.space) => "
    "has_no_room(each.space) and is_cramped(each.space)": _SIZE,
    "upkeep._defragment: each.space is not None and has_no_room(each.space) => has_no_room(each.space)": _SIZE,
    # --- volume_moves -----------------------------------------------------------------------------------------------
    "volume_moves._in_circle: at is not None and at not in {member, *passed} => at not in {member, *passed}": (
        "no member is displaced by None, so that such a chain ends one step later"
    ),
    "volume_moves.attached: each is not record and busy(world, each) => busy(world, each)": _OWN_MACHINE,
    "volume_moves.attached: used | taken | {record.machine} => used | taken": _OWN_MACHINE,
    # --- quorum -----------------------------------------------------------------------------------------------------
    "quorum.shortest_swap: 0 => 1": _OFFSET,
    "quorum.shortest_swap: 0 => -1": _OFFSET,
    "quorum.shortest_swap: continue => pass": _AGAIN,
    "quorum.shortest_swap: seen.add((added, removed)) => pass": _AGAIN,
}
