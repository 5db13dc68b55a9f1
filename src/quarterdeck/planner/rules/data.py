"""Nothing serves without the plane's data, or on other data; and nothing is exchanged while etcd has an alarm."""

from __future__ import annotations

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import IDLE, UnitState
from quarterdeck.model.waiting import Wait
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.view import View


def withhold(view: View) -> Outcome:
    """The apiserver of a replica whose etcd has the wrong data stops, and so does one that has only what it remembers:
    apiservers go on listing what is in their watch cache when the data behind it is gone.

    An apiserver asks no member but its own. That etcd itself goes on: it serves nobody then, and what it says is the
    only sign of what is wrong, and of its being right again.
    """
    wrong = {each.replica: each.seen for each in view.world.wrong}
    steps: list[Step] = []
    waiting: list[Wait] = []
    for record in view.world.memory.replicas:
        if view.world.memory.is_former(record):
            continue  # all of it stops
        if record.name in wrong:
            why = wrong[record.name]
            waiting.append(
                Wait(
                    f"the plane's own data in the volume of {record.name} on machine {record.machine}: {why}",
                    "move what is there aside, put the right data back, and kill its etcd",
                )
            )
        elif _has_nothing(view, record):
            why = "its data is gone, and it has only what it remembers"
            what = f"the data of {record.name} to be put back into its volume on machine {record.machine}"
            waiting.append(Wait(what, f"put it back; if it is gone for good, see {view.world.command('recover')}"))
        else:
            continue
        if view.reachable(record) and view.unit(record, Component.APISERVER) not in (*IDLE, UnitState.UNKNOWN):
            steps.append(StopUnit(site=record.site, why=why, replica=record.name, component=Component.APISERVER))
    return Outcome(tuple(steps), tuple(waiting))


def _has_nothing(view: View, record: Replica) -> bool:
    """Whether a member was seen to be without its data, and not to run, while no quorum answers that could spare it."""
    if view.world.membership is not None or not record.started:
        return False
    return view.fact(record).has_data is False and view.unit(record, Component.ETCD) is not UnitState.RUNNING
