"""Looking at hosts before anything is put on them: what they are, and whether they reach each other."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from pathlib import Path

import asyncssh

from quarterdeck.components.coredns import LOW_PORTS
from quarterdeck.errors import QuarterdeckError, TimedOut, Unavailable
from quarterdeck.model.findings import LOGIN, Checked, Finding, HostFinding, Verdict
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh.checks import (
    Here,
    judge_floating,
    judge_host,
    judge_listening,
    judge_ports,
    judge_way,
    ports_between,
    ports_of_host,
    summary,
)
from quarterdeck.sites.ssh.connections import INSTALLED
from quarterdeck.sites.ssh.facts import HostFacts, Way, read_facts, read_ways
from quarterdeck.sites.ssh.hosts import Host, SshSettings
from quarterdeck.sites.ssh.identity import Identified, Identity, judge_address, judge_machines, read_identity
from quarterdeck.sites.ssh.reaching import logged_in
from quarterdeck.sites.ssh.trials import Trials, judge_trials, read_trials

#: Seconds: for what a host is, with the writes that are timed; for all connections from one.
_FACTS = 60.0
_WAYS = 60.0
_LISTENING = 15.0
_CONNECT = 3.0
_PIECES = Path(__file__).with_name("check")

#: Runs a script as root where that may be, and says as what. Its words are the script's.
_RUN = f"""\
rights=none s=
if [ "$(id -u)" = 0 ]; then rights=root
elif ! command -v sudo > /dev/null; then rights=no-sudo
elif sudo -n true 2> /dev/null; then rights=sudo s="sudo -n"
elif sudo -n -l {INSTALLED} serve - - > /dev/null 2>&1; then rights=script
fi
printf 'rights\\t%s\\n' $rights
command -v bash > /dev/null || exit 0
exec $s bash -c "$0" check "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reached:
    """A host that answers. ``ours``: where it listens for this check."""

    host: Host
    connection: asyncssh.SSHClientConnection
    facts: HostFacts
    identity: Identity
    trials: Trials
    ours: tuple[int, ...] = ()

    @property
    def open(self) -> frozenset[int]:
        """Where something listens at its address."""
        return self.facts.listening(self.host.address) | {*self.ours}


async def checked(settings: SshSettings, here: Here, others: Sequence[SshSettings] = ()) -> Checked:
    """All that stands in the way of planes on these hosts. Nothing is changed there. ``others``: further sites, none of
    whose hosts may be the same machine as one of these.
    """
    findings: list[HostFinding] = []
    async with AsyncExitStack() as stack:
        elsewhere = asyncio.create_task(_identified_elsewhere(settings, others))
        stack.callback(elsewhere.cancel)
        found = await asyncio.gather(*(_reached(each, settings, stack) for each in settings.hosts))
        findings += [each for each in found if isinstance(each, HostFinding)]
        answered = [each for each in found if isinstance(each, _Reached)]
        for each in answered:
            findings += judge_host(each.host, each.facts, here)
            findings += (*judge_trials(each.host, each.trials), *judge_address(each.host, each.identity))
            findings += (
                *judge_ports(settings, each.host, each.facts),
                *judge_floating(settings, each.host, each.facts),
            )
        own = [Identified(host=each.host, identity=each.identity) for each in answered]
        known, silent = await elsewhere
        findings += (*judge_machines(own, known), *silent)
        reached = await asyncio.gather(*(_listening(each, settings, stack) for each in answered))
        there = [each for each in reached if not [*judge_address(each.host, each.identity)]]
        findings += [each for one in there for each in judge_listening(settings, one.host, one.open)]
        ways, failed = await _ways(settings, reached)
        findings += failed
        ways |= await _from_here(settings, reached, here)
    for (source, target), wanted in _wanted(settings, reached, here).items():
        findings += judge_way(source, target, wanted, ways.get((source, target)))
    return Checked(findings=tuple(findings), summary=summary(len(settings.hosts), ways, findings))


async def _reached(host: Host, settings: SshSettings, stack: AsyncExitStack) -> _Reached | HostFinding:
    doing = f"looking at host {host.name}"
    try:
        connection = await logged_in(host.login)
        stack.callback(connection.abort)
        own = MachineRole.CONTROL in host.roles
        words = (
            [f"{each.name}={each.path}" for each in settings.storage_classes if each.commands is None] if own else []
        )
        before = time.time()
        said = await _said(connection, ("identity", "trial", "facts"), words, doing, _FACTS)
        return _Reached(
            host=host,
            connection=connection,
            facts=read_facts(doing, said, before, time.time()),
            identity=read_identity(doing, said, _shown_key(connection)),
            trials=read_trials(said),
        )
    except QuarterdeckError as error:
        return HostFinding(host.name, Finding(LOGIN, Verdict.REFUSE, error.seen, error.next_step))


def _shown_key(connection: asyncssh.SSHClientConnection) -> str:
    """The host key that the host showed, in base64."""
    key = connection.get_server_host_key()
    return key.export_public_key().decode().split()[1] if key is not None else ""


async def _identified_elsewhere(
    settings: SshSettings, others: Sequence[SshSettings]
) -> tuple[list[Identified], list[HostFinding]]:
    """The hosts of other sites with their identities; a finding for those that cannot be compared. A host that a site
    declares as ``settings`` does is the same one, which is no news.
    """
    declared = {each.address for each in settings.hosts} | {each.login for each in settings.hosts}
    wanted = [(each, site.name) for site in others for each in site.hosts if not {each.address, each.login} & declared]

    async def identified(host: Host, site: str) -> Identified | str:
        try:
            connection = await logged_in(host.login)
            try:
                doing = f"looking at host {host.name} of site {site}"
                said = await _said(connection, ("identity",), (), doing, _FACTS)
                identity = read_identity(doing, said, _shown_key(connection))
            finally:
                connection.abort()
        except QuarterdeckError:
            return f"{host.name} of site {site}"
        return Identified(host=host, identity=identity, site=site)

    seen = await asyncio.gather(*(identified(*each) for each in wanted))
    unknown = [each for each in seen if isinstance(each, str)]
    found = [each for each in seen if isinstance(each, Identified)]
    return found, [_not_compared(settings.name, unknown)] if unknown else []


def _not_compared(site: str, unknown: Sequence[str]) -> HostFinding:
    seen = f"not known to be other machines than these, which do not answer: {', '.join(unknown)}"
    return HostFinding(f"site {site}", Finding("machine", Verdict.WARN, seen, "check again when they answer"))


async def _listening(reached: _Reached, settings: SshSettings, stack: AsyncExitStack) -> _Reached:
    """The host, listening where planes will, and nobody does yet."""
    root = reached.facts.rights in ("root", "sudo")
    wanted = {*ports_of_host(settings, reached.host)} - reached.open
    ports = sorted(each for each in wanted if root or each >= LOW_PORTS)
    if not ports or "systemd-socket-activate" in reached.facts.missing:
        return reached
    listens = await stack.enter_async_context(_listener(reached.connection, reached.host.address, ports))
    return replace(reached, ours=tuple(ports)) if listens else reached


@asynccontextmanager
async def _listener(
    connection: asyncssh.SSHClientConnection, address: str, ports: Sequence[int]
) -> AsyncIterator[bool]:
    """Whether it listens there. It ends with its standard input."""
    words = (address, *map(str, ports))
    try:
        process: asyncssh.SSHClientProcess[str] = await connection.create_process(_command(("listen",), words))
    except (asyncssh.Error, OSError):  # the connections that are tried next say that it is lost
        yield False
        return
    said = ""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LISTENING):
            while said not in ("listening", "failed"):
                line = await process.stdout.readline()
                if not line:
                    break
                said = line.strip()
    try:
        yield said == "listening"
    finally:
        process.stdin.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CONNECT):
                await process.wait()


async def _ways(
    settings: SshSettings, reached: Sequence[_Reached]
) -> tuple[dict[tuple[str, str], Way], list[HostFinding]]:
    """From each host to each other one."""

    async def ask(source: _Reached) -> Mapping[str, Way] | HostFinding:
        words: list[str] = []
        for target in reached:
            if ports := _tried(settings, source, target):
                bulk = next((str(each) for each in ports if each in target.ours), "-")
                words += (target.host.name, target.host.address, ",".join(map(str, ports)), bulk)
        doing = f"connecting from host {source.host.name}"
        try:
            said = await _said(source.connection, ("connect",), words, doing, _WAYS) if words else ""
            return read_ways(doing, said.partition("\n")[2])  # the first line says as whom it runs
        except QuarterdeckError as error:
            return HostFinding(source.host.name, Finding("network", Verdict.REFUSE, error.seen, error.next_step))

    said = await asyncio.gather(*map(ask, reached))
    ways: dict[tuple[str, str], Way] = {}
    failed = [each for each in said if isinstance(each, HostFinding)]
    for source, each in zip(reached, said, strict=True):
        if not isinstance(each, HostFinding):
            ways |= {(source.host.name, target): way for target, way in each.items()}
    return ways, failed


def _tried(settings: SshSettings, source: _Reached, target: _Reached) -> tuple[int, ...]:
    """The ports that programs on one host need of another, as far as anything listens there now."""
    wanted = ports_between(settings, source.host, target.host) if source is not target else ()
    return tuple(each for each in wanted if each in target.open)


async def _from_here(settings: SshSettings, reached: Sequence[_Reached], here: Here) -> dict[tuple[str, str], Way]:
    """From this host, which drives all planes, to each: all that they listen at. (How far it is from them is no matter
    of the site's.)
    """

    async def way(target: _Reached) -> Way:
        ports = _open_to_us(settings, target)
        return Way(ports=dict(zip(ports, await asyncio.gather(*(_at(target, each) for each in ports)), strict=True)))

    ways = await asyncio.gather(*map(way, reached))
    return {(here.name, target.host.name): found for target, found in zip(reached, ways, strict=True)}


async def _at(target: _Reached, port: int) -> str:
    """What comes of connecting from here: see ``Way``."""
    try:
        async with asyncio.timeout(_CONNECT):
            _, writer = await asyncio.open_connection(target.host.address, port)
    except TimeoutError:
        return "silent"
    except OSError:
        return "refused"
    writer.close()
    return "open"


def _open_to_us(settings: SshSettings, target: _Reached) -> tuple[int, ...]:
    return tuple(each for each in ports_of_host(settings, target.host) if each in target.open)


def _wanted(settings: SshSettings, reached: Sequence[_Reached], here: Here) -> dict[tuple[str, str], tuple[int, ...]]:
    """The ports that were tried between each two of what was reached, and from this host."""
    found = {(here.name, each.host.name): _open_to_us(settings, each) for each in reached}
    for source, target in permutations(reached, 2):
        if ports := _tried(settings, source, target):
            found[source.host.name, target.host.name] = ports
    return found


async def _said(
    connection: asyncssh.SSHClientConnection, scripts: Sequence[str], words: Sequence[str], doing: str, deadline: float
) -> str:
    """What scripts say that run one after the other, in one session."""
    try:
        async with asyncio.timeout(deadline):
            done = await connection.run(_command(scripts, words), stdin=asyncssh.DEVNULL)
    except TimeoutError:
        raise TimedOut(doing, f"not done within {deadline:.0f} s", "see why it is slow") from None
    except (asyncssh.Error, OSError) as error:
        raise Unavailable(doing, str(error) or "the connection broke") from error
    return str(done.stdout or "")


def _command(scripts: Sequence[str], words: Sequence[str]) -> str:
    """What a host is given to run: whatever its user's shell is."""
    script = "\n".join(map(_piece, scripts))
    return f"exec /bin/sh -c {shlex.join((_RUN, script, *words))}"


@cache
def _piece(name: str) -> str:
    return (_PIECES / f"{name}.sh").read_text()
