"""Manual operations on a plane's etcd: members without a replica, alarms, authentication, failover."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from quarterdeck.actions.addresses import client_urls
from quarterdeck.api.events import EventReason
from quarterdeck.app.etcd import alarms, failover, strays
from quarterdeck.app.etcd.alarms import Disarming
from quarterdeck.app.etcd.failover import LostSite
from quarterdeck.app.etcd.strays import MemberRemoval
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.etcd.maintenance import ROOT
from quarterdeck.model.clusters import CALLED
from quarterdeck.pki.issuance import issue_etcd_user
from quarterdeck.stores.port import EventType

#: How long the certificate of the user root is valid. It is not stored.
_ROOT_LIFETIME = timedelta(minutes=10)


class EtcdCare:
    """``Quarterdeck.etcd``. The rules for calls of ``Quarterdeck`` apply."""

    def __init__(self, home: Home, requester: Requester) -> None:
        """``requester`` is named in the events that report a change."""
        self._home = home
        self._requester = requester

    async def fail_over(self, lost: LostSite, *, even_if_others_live: bool = False, standby_back: bool = False) -> None:
        """Consent to continue with the data of a plane's standby, as ``Looks.lost_site`` reported it: a driver begins
        that one epoch at the site of the standby, and keeps all old data aside. ``standby_back``: the plane gets a
        standby at its former site; else it has none.

        Raises PreconditionFailed where others may still serve clients, unless that is overridden: they are stopped as
        soon as they can be reached; Conflict where another epoch has begun since, or the spec was changed.
        """
        await failover.start(
            self._home,
            lost,
            self._requester,
            even_if_others_live=even_if_others_live,
            standby_back=standby_back,
        )

    async def plan_member_removal(self, name: str, member: str) -> MemberRemoval:
        """Whether an etcd member that belongs to no replica can be removed; ``member`` is its id, in hexadecimal as
        etcdctl prints it. Changes nothing.

        Raises NotFound (the plane, the member), InvalidInput (the id), PreconditionFailed for a replica's member, for
        the leader, and where the other voters would be no healthy quorum, Unavailable where no quorum answers.
        """
        await require_plane_in_reach(self._home, name)
        return await strays.planned(self._home, name, member)

    async def remove_member(self, removal: MemberRemoval) -> None:
        """Remove such a member, if the plan still holds. Raises what ``plan_member_removal`` does, and EtcdFault where
        etcd refuses.
        """
        await strays.removed(self._home, removal, self._requester)

    async def plan_disarming(self, name: str) -> Disarming:
        """The alarms of a plane's etcd that can be disarmed: CORRUPT where all members have the same data, except those
        that are marked for replacement, and NOSPACE where all have room. Changes nothing.

        Raises PreconditionFailed where members differ or could not be compared, and where no alarm that is on can be
        disarmed; Unavailable where no quorum answers.
        """
        await require_plane_in_reach(self._home, name)
        return await alarms.planned(self._home, name)

    async def disarm(self, disarming: Disarming) -> None:
        """Disarm such alarms, as far as the plan still holds. Raises what ``plan_disarming`` does, and EtcdFault where
        etcd refuses.
        """
        await alarms.disarmed(self._home, disarming, self._requester)

    async def disable_authentication(self, name: str) -> None:
        """Disable the authentication of a plane's etcd; no error if it is disabled. Users and roles of etcd stay.

        Raises Unavailable where no quorum answers.
        """
        await require_plane_in_reach(self._home, name)
        async with open_plane(self._home, name) as plane:
            root = issue_etcd_user(plane.secrets, ROOT, datetime.now(UTC), lifetime=_ROOT_LIFETIME)
            for cluster in plane.memory.clusters:
                await plane.etcd.disable_authentication(client_urls(plane, cluster), root)
                words = f"authentication is off in {CALLED[cluster]}"
                happening = Happening(EventReason.AUTHENTICATION_DISABLED, words, EventType.NORMAL)
                await self._home.store.record(happening.event(name, plane.clock()))
