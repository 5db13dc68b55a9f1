"""Failover to the standby: what it would lose, and the user's consent."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.epochs import NewEpoch, StandbyPlacement
from quarterdeck.app.etcd.recovery import others_may_live, require_drivable
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.epochs import MemberWord
from quarterdeck.model.world import World
from quarterdeck.planner.rules.standby import can_return, report
from quarterdeck.planner.standbys import without_standbys
from quarterdeck.planner.survivors import VoterFate, cut_off_majority, fates, loss


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSite:
    """A plane whose site is lost, and its standby ``replica``, whose newest key has that etcd ``revision``."""

    name: str
    #: The epoch that the failover would begin.
    epoch: int
    #: The site of the standby.
    to: str
    replica: str
    machine: str
    revision: int
    #: The last etcd revision that was observed of the plane.
    seen: int
    #: What may be lost, in a sentence.
    loss: str
    #: Voters that are dead.
    dead: tuple[str, ...]
    #: Voters that do not answer.
    cut_off: tuple[str, ...]
    #: Those that do not answer could be a quorum, which may still serve clients.
    others_may_live: bool


async def lost_site(home: Home, name: str, to: str) -> LostSite:
    """See ``Looks.lost_site``."""
    async with open_plane(home, name) as plane:
        require_drivable(plane.resource)
        require_standby_at(plane.resource, to)
        world = await (await observer_of(plane)).observe()
        word = required(name, to, world)
        others = without_standbys(world)
        left = fates(others)
        return LostSite(
            name=name,
            epoch=world.memory.epoch + 1,
            to=to,
            replica=word.replica,
            machine=world.memory.replica(word.replica).machine,
            revision=word.revision,
            seen=world.memory.revision,
            loss=loss(world.memory, word),
            dead=tuple(each for each, fate in left if fate is VoterFate.DEAD),
            cut_off=tuple(each for each, fate in left if fate is VoterFate.CUT_OFF),
            others_may_live=bool(cut_off_majority(others)),
        )


def require_standby_at(plane: ControlPlane, to: str) -> None:
    """Raise PreconditionFailed for a plane whose spec has no standby at that site."""
    doing, standby = f"failing over plane {plane.name} to site {to}", plane.spec.standby
    if standby is None:
        raise PreconditionFailed(doing, "it has no standby", _others(plane.name))
    if standby.site != to:
        raise PreconditionFailed(doing, f"its standby is at site {standby.site}", f"use --to {standby.site}")


def required(name: str, to: str, world: World) -> MemberWord:
    """The standby's report about itself, where no quorum can be left. Raises PreconditionFailed."""
    doing, word, others = f"failing over plane {name} to site {to}", report(world), _others(name)
    if world.membership is not None:
        seen = "a quorum of its etcd answers, so that nothing need be lost"
        raise PreconditionFailed(doing, seen, f"'quarterdeck migrate {name} --to {to}' moves it")
    if word is None:
        raise PreconditionFailed(doing, "its standby does not answer", f"bring its machine back, or {others}")
    if alive := can_return(world):
        seen = f"the voters {', '.join(alive)} are there with their data: that is a quorum"
        raise PreconditionFailed(doing, seen, f"'quarterdeck wait {name}' starts what can be started")
    return word


def _others(name: str) -> str:
    """The other ways to continue a plane without a quorum."""
    return f"see 'recover {name}', which continues from a survivor, and 'restore {name}', which uses a backup"


async def start(
    home: Home, lost: LostSite, requester: Requester, *, even_if_others_live: bool, standby_back: bool
) -> None:
    """See ``EtcdCare.fail_over``."""
    doing = f"failing over plane {lost.name} to site {lost.to}"
    if lost.others_may_live and not even_if_others_live:
        raise others_may_live(doing, lost.cut_off)
    current = await recorded.existing(home.store, lost.name)
    require_drivable(current)
    require_standby_at(current, lost.to)
    operations.require_next_epoch(current, lost.epoch, doing)
    here = current.spec.placement
    wanted = current.with_spec(
        placement=here.model_copy(update={"site": lost.to, "zones": None, "storage_class": None}),
        standby=StandbyPlacement(site=here.site) if standby_back else None,
        new_epoch=NewEpoch(epoch=lost.epoch, even_if_others_live=even_if_others_live, standby=True),
    )
    await operations.change(home, wanted, OperationType.FAILOVER, requester)
