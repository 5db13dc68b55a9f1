"""Mutants that nobody notices, and why each harms nobody: they change nothing, or only what may be either way.

The keys are those of ``mutants.py``: function, text before, text after. One that is no mutant any more is refused by
``test_mutants.py``.
"""

from __future__ import annotations

#: Why a machine that does not answer needs no condition of its own.
_UNKNOWN = "the units of a machine that does not answer are UNKNOWN, which is not idle: the other condition says so too"

EQUIVALENT: dict[str, str] = {
    "membership.keep_running: view.reachable(record) and view.unit(record, Component.ETCD) in IDLE and "
    "view.fact(record).has_data => view.unit(record, Component.ETCD) in IDLE and view.fact(record).has_data": _UNKNOWN,
    "membership.remove_dead: member is None or view.membership.leader == record.name => member is None": (
        "a leader is neither a learner nor down, and only such members go there"
    ),
}
