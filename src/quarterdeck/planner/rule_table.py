"""All rules, in the order in which they are asked: one row each.

Until the members are known, what a revision needs comes before what keeps members running; once they are known, after
it. So the rules of ``rolling`` have a row for each of the two. The table in the docs is made from this one
(``scripts/planner-tables``).
"""

from __future__ import annotations

from quarterdeck.planner import events
from quarterdeck.planner.rule import Despite, Members, Rule
from quarterdeck.planner.rules import (
    attaching,
    founding,
    healing,
    membership,
    notes,
    recovery,
    rolling,
    serving,
    traffic,
    upkeep,
)

EITHER, UNKNOWN = Members.EITHER, Members.UNKNOWN
A_SMALL_QUOTA, ALARMS = Despite.A_SMALL_QUOTA, Despite.ALARMS

#: While etcd has raised an alarm, what serves goes on and room is made, but no exchange goes on. While nothing but a
#: larger quota makes room, members that are not wanted get none and go, and one that is wanted gets it once the others
#: are a quorum without it: learners are promoted for that. A rule that is asked while the members are not known takes
#: away nothing that could serve, but what is of an epoch that is over.
RULES: tuple[Rule, ...] = (
    Rule(ask=recovery.fence, members=EITHER, despite=ALARMS, beside=True),
    Rule(ask=attaching.go_on, members=EITHER, despite=ALARMS),
    Rule(ask=attaching.reattach_quorum, members=UNKNOWN),
    Rule(ask=recovery.begin, members=EITHER, despite=ALARMS),
    Rule(ask=recovery.seed, members=UNKNOWN),
    Rule(ask=recovery.withdraw, despite=ALARMS),
    Rule(ask=serving.withhold, members=EITHER, despite=ALARMS),
    Rule(ask=notes.note, despite=ALARMS),
    Rule(ask=traffic.relight, despite=ALARMS),
    Rule(ask=serving.stop_frozen, despite=ALARMS),
    Rule(ask=healing.heal),
    Rule(ask=attaching.readdress, despite=ALARMS, per_cluster=True),
    Rule(ask=founding.place, members=EITHER),
    Rule(ask=rolling.watch, members=UNKNOWN),
    Rule(ask=rolling.reject, members=UNKNOWN),
    Rule(ask=rolling.roll, members=UNKNOWN),
    Rule(ask=founding.found, members=EITHER, per_cluster=True, unread=True),
    Rule(ask=membership.keep_running, members=EITHER, despite=ALARMS, per_cluster=True, unread=True, unwanted=True),
    Rule(ask=membership.remove_strays, per_cluster=True),
    Rule(ask=membership.remove_dead, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=rolling.watch, despite=ALARMS),
    Rule(ask=rolling.reject),
    Rule(ask=rolling.roll, despite=ALARMS),
    Rule(ask=rolling.reload, despite=ALARMS),
    Rule(ask=membership.join, per_cluster=True),
    Rule(ask=membership.rejoin, per_cluster=True),
    Rule(ask=membership.promote, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=serving.serve, despite=ALARMS, beside=True),
    Rule(ask=serving.serve_in_outage, despite=ALARMS),
    Rule(ask=traffic.backends, despite=ALARMS),
    Rule(ask=traffic.record, despite=ALARMS),
    Rule(ask=serving.control, despite=ALARMS, beside=True),
    Rule(ask=upkeep.make_room, despite=ALARMS, per_cluster=True, unwanted=True),
    Rule(ask=serving.retire, despite=A_SMALL_QUOTA),
    Rule(ask=membership.lead, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=membership.swap, per_cluster=True),
    Rule(ask=membership.remove, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=membership.stop_removed, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=traffic.let_go),
    Rule(ask=events.dissolve),
    Rule(ask=events.renew),
    Rule(ask=serving.dismiss),
    Rule(ask=serving.settled),
    Rule(ask=rolling.prove),
)
