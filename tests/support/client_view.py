"""Everything that clients of a plane may notice, looked at while a test does things to it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from quarterdeck.probe.schema import Probe
from quarterdeck.probe.target import ClientKind
from quarterdeck.stores.port import EntryOutcome, JournalEntry
from support.clients import Client, Writer
from support.conditions import until
from support.plane_lab import PlaneLab

_NUMBERS = "/api/v1/configmaps?labelSelector=quarterdeck.dev/probe"


#: Each of the probe's clients, and the test's writer, has at most one request under way.
CLIENTS = 12
#: Seconds after which whatever was under way through an edge that fell silent has been given up: clients here do so
#: after 10 s.
PATIENCE = 12.0
#: Seconds within which a client that connects is answered by another edge, on a busy machine.
TAKEOVER = 5.0
#: No bound, where an address, a name or a site is away for a while.
ANY = 1_000_000


@dataclass(frozen=True, slots=True)
class Excuse:
    """Requests that ended in this time (Unix seconds) may have failed, ``most`` of them; ``why`` is what was done."""

    since: float
    until: float
    most: int
    why: str


@dataclass
class Watched:
    """A plane that the project's own probe and a writer use while the block of ``watched`` lasts."""

    writer: Writer
    _excuses: list[Excuse] = field(default_factory=list)
    _relisted: bool = False

    def goes_on(self, what: str, *, writes: int = 5, seconds: float = 60.0) -> None:
        """See ``Writer``."""
        self.writer.goes_on(what, writes=writes, seconds=seconds)

    def excuse(self, why: str, *, since: float, until: float, most: int) -> None:
        """Requests that ended between those times may have failed, at most ``most``: the plane cannot help it."""
        self._excuses.append(Excuse(since, until, most, why))

    def excuse_lists(self) -> None:
        """Watchers that are away for so long that no apiserver has what they missed have to list again (410 Gone), and
        never learn of what was between.
        """
        self._relisted = True

    def check(self, probed: Probe, pinned_until: float) -> None:
        """No request failed but those excused, no write was lost, no event missed, no read was stale.

        Clients that never resolve the name again are let go at ``pinned_until``, as is agreed: the time to live and the
        drain of their address have passed.
        """
        failures = [(each.at, f"{each.kind} {each.request}: {each.reason}") for each in probed.failures
                    if each.kind != ClientKind.PINNED or each.at < pinned_until]  # fmt: skip
        failures += [(each.at, f"the test's writer: {each}") for each in self.writer.failures]
        unexcused = sorted(failures)
        for excuse in self._excuses:
            its = [each for each in unexcused if excuse.since <= each[0] <= excuse.until]
            assert len(its) <= excuse.most, f"{excuse}: {len(its)} failed: {its}"
            unexcused = [each for each in unexcused if each not in its]
        writes, watches = probed.writes, probed.watches
        missed = 0 if self._relisted and watches.relists else watches.missed
        seen = (unexcused, writes.lost, writes.stale_reads, missed, watches.out_of_order)
        assert seen == ([], 0, 0, 0, 0), f"{seen}; excused: {self._excuses}; {writes} {watches}"
        assert writes.audited
        assert writes.acknowledged > 0


def probed(printed: str) -> Probe:
    """What ``probe -o json`` has printed: times are in Unix seconds, and the samples are empty."""
    return Probe.model_validate_json(printed)


@contextmanager
def watched(lab: PlaneLab, name: str, label: str) -> Iterator[Watched]:
    """Run the probe and a writer beside the block; if it ends well, check what they saw."""
    client, first = lab.client(name), lab.last_entry(name)
    probe = lab.start("probe", name, "-o", "json")
    try:
        until(lambda: _writing(client), "the probe's clients write")
        with Writer(client, label) as writer:
            made = Watched(writer)
            yield made
        probe.interrupt()
        done = probe.end()
        assert done.code in (0, 1), str(done)
        entries = lab.read(lambda home: home.store.journal(name, after=first))
        try:
            made.check(probed(done.out), _let_go(entries))
        except AssertionError as error:
            error.add_note(_timeline(entries))
            raise
    finally:
        if probe.running:
            probe.kill()


def _writing(client: Client) -> bool:
    with client.http(timeout=60.0) as http:
        answer = http.get(_NUMBERS)
        answer.raise_for_status()
        return any(each.get("data", {}).get("number", "0") != "0" for each in answer.json()["items"])


def _timeline(entries: Sequence[JournalEntry]) -> str:
    """What was done meanwhile, to be read beside the times of failures (Unix seconds)."""
    return "\n".join(f"{each.time:.3f} {each.outcome} {each.kind} {each.text}" for each in entries)


def _let_go(entries: Sequence[JournalEntry]) -> float:
    """When a load balancer was first taken down (Unix seconds)."""
    times = [each.time for each in entries if (each.kind, each.outcome) == ("stop-load-balancer", EntryOutcome.STARTED)]
    return min(times, default=time.time())
