"""Nobody managed a plane until all certificates expired: one command brings it back, also if it is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from support.conditions import until
from support.plane_lab import PlaneLab

from quarterdeck.actions import certificates
from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.app import Create, Quarterdeck
from quarterdeck.engine.workspace import belongings, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.units import MachineRole
from quarterdeck.pki.issuance import create_plane_secrets, with_replica
from quarterdeck.pki.validity import expiry
from quarterdeck.sites.local.site import LocalSite
from quarterdeck.stores.port import JournalEntry

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

#: Long enough to create the plane, and to write to it.
LIFETIME = timedelta(seconds=90)


def create(lab: PlaneLab) -> None:
    """The plane ``demo``, here: this process issues certificates of so short a life."""

    async def work() -> None:
        async with Quarterdeck.open(lab.home, trial=False) as face:
            await face.ask(Create(new_control_plane("demo", site="east")))
            await face.carry_out("demo")

    asyncio.run(work())


def have_expired(lab: PlaneLab) -> bool:
    async def work(home: Home) -> bool:
        secrets = await belongings.secrets_of(home.store, await recorded.existing(home.store, "demo"))
        issued = [pair.certificate for _, each in secrets.replicas for pair in each.pairs.values()]
        return max(map(expiry, (*issued, secrets.manager.certificate))) < datetime.now(UTC)

    return lab.read(work)


def cut_power(lab: PlaneLab) -> None:
    """All programs start again, and no connection of before is left."""

    async def work(site: LocalSite) -> None:
        names = [each.name for each in await site.machines() if each.role is MachineRole.CONTROL]
        for name in names:
            await site.kill_machine(name)
        for name in names:
            await site.boot_machine(name)

    lab.on_site("east", work)


def stopped_a_member(entries: Sequence[JournalEntry]) -> bool:
    return any(each.kind == "stop-unit" and each.text.startswith("stop etcd") for each in entries)


def test_a_plane_whose_certificates_have_all_expired_gets_new_ones(
    lab: PlaneLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "with_replica", partial(with_replica, lifetime=LIFETIME))
    monkeypatch.setattr(belongings, "create_plane_secrets", partial(create_plane_secrets, lifetime=LIFETIME))
    create(lab)
    client = lab.client("demo")
    assert client.writes("written-before")
    lab.refused("certs", "renew", "demo", "--offline", "--yes", code=5, says=("a quorum of its etcd answers",))
    until(lambda: have_expired(lab), "all certificates have expired", seconds=LIFETIME.total_seconds() + 30, pause=1.0)
    cut_power(lab)
    shown = lab.run("status", "demo", code=1).out
    assert "'quarterdeck certs renew demo --offline'" in shown

    last = lab.last_entry("demo")
    renewing = lab.start("certs", "renew", "demo", "--offline", "--yes")
    lab.journal("demo", stopped_a_member, "a member has stopped", after=last, during=renewing)
    renewing.kill()
    lab.run("wait", "demo")

    assert client.names("configmaps") >= {"written-before"}
    assert client.writes("written-after")
    lab.status("demo", code=0)
    assert not have_expired(lab)
    lab.refused("certs", "renew", "demo", "--offline", "--yes", code=5, says=("a quorum of its etcd answers",))
