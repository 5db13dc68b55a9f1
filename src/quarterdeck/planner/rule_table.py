"""All rules, in the order in which they are evaluated: one row each.

Until the members are known, the rules of ``rollout`` come before those that keep members running; once they are known,
after them. So they have a row for each case. The table in the docs is generated from this one
(``scripts/planner-tables``).
"""

from __future__ import annotations

from quarterdeck.planner import events
from quarterdeck.planner.rule import Despite, Members, Rule
from quarterdeck.planner.rules import (
    etcd_downgrade,
    healing,
    membership,
    notes,
    placement,
    recovery,
    replica_programs,
    rollout,
    standby,
    traffic,
    upkeep,
    volume_moves,
)

EITHER, UNKNOWN = Members.EITHER, Members.UNKNOWN
A_SMALL_QUOTA, ALARMS = Despite.A_SMALL_QUOTA, Despite.ALARMS

#: While etcd has raised an alarm, serving continues and room is made, but no replacement proceeds. While only a larger
#: quota makes room, unwanted members do not get it and are removed, and a wanted member gets it once the others are a
#: quorum without it: learners are promoted for that. A rule that is evaluated while the members are unknown removes
#: nothing that could serve, except programs of a former epoch.
RULES: tuple[Rule, ...] = (
    Rule(ask=recovery.fence, members=EITHER, despite=ALARMS, beside=True),
    Rule(ask=volume_moves.go_on, members=EITHER, despite=ALARMS),
    Rule(ask=volume_moves.reattach_quorum, members=UNKNOWN),
    Rule(ask=recovery.begin, members=EITHER, despite=ALARMS),
    Rule(ask=recovery.seed, members=UNKNOWN),
    Rule(ask=events.restore, members=EITHER),
    Rule(ask=recovery.withdraw, despite=ALARMS),
    Rule(ask=replica_programs.withhold, members=EITHER, despite=ALARMS),
    Rule(ask=notes.note, despite=ALARMS),
    Rule(ask=traffic.relight, despite=ALARMS),
    Rule(ask=replica_programs.stop_frozen, despite=ALARMS),
    Rule(ask=rollout.check_stored, members=EITHER, despite=ALARMS),
    Rule(ask=etcd_downgrade.note),
    Rule(ask=etcd_downgrade.downgrade, per_cluster=True, unwanted=True),
    Rule(ask=standby.leave, despite=ALARMS),
    Rule(ask=healing.heal),
    Rule(ask=standby.heal),
    Rule(ask=volume_moves.readdress, despite=ALARMS, per_cluster=True),
    Rule(ask=placement.place, members=EITHER),
    Rule(ask=rollout.watch, members=UNKNOWN),
    Rule(ask=rollout.reject, members=UNKNOWN),
    Rule(ask=rollout.roll, members=UNKNOWN),
    Rule(ask=placement.found, members=EITHER, per_cluster=True, unread=True),
    Rule(ask=membership.keep_running, members=EITHER, despite=ALARMS, per_cluster=True, unread=True, unwanted=True),
    Rule(ask=standby.keep_running, members=EITHER, despite=ALARMS),
    Rule(ask=membership.remove_strays, per_cluster=True),
    Rule(ask=membership.remove_dead, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=rollout.watch, despite=ALARMS),
    Rule(ask=rollout.reject),
    Rule(ask=rollout.roll, despite=ALARMS),
    Rule(ask=rollout.reload, despite=ALARMS),
    Rule(ask=membership.join, per_cluster=True),
    Rule(ask=membership.rejoin, per_cluster=True),
    Rule(ask=membership.promote, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=replica_programs.serve, despite=ALARMS, beside=True),
    Rule(ask=replica_programs.serve_in_outage, despite=ALARMS),
    Rule(ask=traffic.backends, despite=ALARMS),
    Rule(ask=traffic.record, despite=ALARMS),
    Rule(ask=replica_programs.control, despite=ALARMS, beside=True),
    Rule(ask=upkeep.make_room, despite=ALARMS, per_cluster=True, unwanted=True),
    Rule(ask=replica_programs.retire, despite=A_SMALL_QUOTA),
    Rule(ask=membership.lead, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=membership.swap, per_cluster=True),
    Rule(ask=membership.remove, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=membership.stop_removed, despite=A_SMALL_QUOTA, per_cluster=True),
    Rule(ask=traffic.let_go),
    Rule(ask=events.dissolve),
    Rule(ask=events.renew),
    Rule(ask=replica_programs.dismiss),
    Rule(ask=replica_programs.settled),
    Rule(ask=rollout.prove),
    Rule(ask=standby.join),
)
