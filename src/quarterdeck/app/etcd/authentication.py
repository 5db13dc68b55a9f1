"""Turning off the authentication of a plane's etcd, which somebody else has turned on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from quarterdeck.actions.addresses import client_urls
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.etcd.auth import ROOT
from quarterdeck.model.clusters import CALLED
from quarterdeck.pki.issuing import issue_etcd_user
from quarterdeck.stores.port import EventType

#: How long the certificate of the user root is valid, which is kept nowhere.
_LIFETIME = timedelta(minutes=10)


async def disable(home: Home, name: str) -> None:
    """See ``EtcdCare.disable_authentication``."""
    async with open_plane(home, name) as plane:
        root = issue_etcd_user(plane.secrets, ROOT, datetime.now(UTC), lifetime=_LIFETIME)
        for cluster in plane.memory.clusters:
            await plane.etcd.disable_authentication(client_urls(plane, cluster), root)
            told = Happening("AuthenticationDisabled", f"authentication is off in {CALLED[cluster]}", EventType.NORMAL)
            await home.store.record(told.event(name, plane.clock()))
