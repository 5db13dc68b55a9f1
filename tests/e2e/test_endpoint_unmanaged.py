"""A plane whose DNS records a person makes: the person is told which, and nothing goes on without them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.conditions import until
from support.dns_lab import own_server
from support.plane_lab import Command, Done, PlaneLab

from quarterdeck.endpoint.dns.coredns import CoreDns
from quarterdeck.report.schema import Report
from quarterdeck.stores.port import EntryOutcome

pytestmark = pytest.mark.timeout(600)

HOST = "live.planes.test"
RECORD = re.compile(rf"^ *{HOST}\. 5 IN A (127\.[0-9.]+)$", re.MULTILINE)


@dataclass
class Person:
    """Somebody with a DNS server, who does what a command asks for."""

    runner: asyncio.Runner
    server: CoreDns

    def makes_the_records(self, command: Command) -> Done:
        """Read what the command shows, make it so, see it end."""
        (address,) = until(lambda: RECORD.findall(command.output), "the records are shown")
        assert command.running
        self.runner.run(self.server.set(HOST, (address,), 5))
        return command.end()

    def deletes_them(self, command: Command) -> Done:
        until(lambda: f"waiting for the records of {HOST}. to be deleted" in command.output, "it is said")
        assert command.running
        self.runner.run(self.server.remove(HOST))
        return command.end()


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    with asyncio.Runner() as runner:
        made = own_server(tmp_path)
        server = runner.run(made.__aenter__())
        try:
            runner.run(server.start())
            yield Person(runner, server)
        finally:
            runner.run(made.__aexit__(None, None, None))


def test_a_person_is_told_the_records_and_clients_follow_them(lab: PlaneLab, person: Person) -> None:
    asked = person.server.servers[0]
    plane = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: live}}
spec:
  replicas: 1
  placement: {{site: east}}
  endpoint:
    mode: unmanaged
    name: {HOST}
    resolvers: [{{address: {asked.ip}, port: {asked.port}}}]
"""
    done = person.makes_the_records(lab.start("apply", "-f", str(lab.file(plane))))
    assert done.code == 0, str(done)
    migrating = lab.start("migrate", "live", "--to", "west", "--probe", "--baseline", "2", "--yes")
    done = person.makes_the_records(migrating)
    assert done.code in (0, 1), str(done)  # 1: a stall on a busy machine
    report = Report.model_validate_json(lab.run("report", "live", "-o", "json").out)
    assert report.probe is not None
    assert sum(period.overall.failures for period in report.probe.periods) == 0
    assert (report.probe.writes.lost, report.probe.watches.missed) == (0, 0)
    assert lab.status("live", code=0)["nameLeadsTo"] == "west"
    entries = lab.journal("live", lambda _: True, "the journal can be read")
    outcomes = [entry.outcome for entry in entries if entry.kind == "set-record"]
    assert outcomes == [EntryOutcome.STARTED, EntryOutcome.DONE] * 2  # however often the person was waited for
    assert f"waiting for these records: {HOST}. 5 IN A " in lab.run("events", "live").out
    done = person.deletes_them(lab.start("delete", "live", "--yes"))
    assert done.code == 0, str(done)
