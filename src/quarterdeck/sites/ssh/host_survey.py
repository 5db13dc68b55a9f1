"""Checking hosts before anything is installed: their facts, and whether they reach each other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import permutations
from pathlib import Path

import asyncssh

from quarterdeck.components.traffic.coredns import LOW_PORTS
from quarterdeck.errors import PreconditionFailed, QuarterdeckError, Unavailable
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
from quarterdeck.sites.ssh.facts import (
    HostFacts,
    Reachability,
    TrialFacts,
    judge_trials,
    read_facts,
    read_listening,
    read_trials,
    read_ways,
)
from quarterdeck.sites.ssh.hosts import SshHost, SshSettings
from quarterdeck.sites.ssh.identity import Identified, Identity, judge_address, judge_machines, read_identity
from quarterdeck.sites.ssh.limits import instances_needed, judge_limits
from quarterdeck.sites.ssh.shells import HostLink

#: Seconds: for a host's facts, with the timed writes; for all connections from one. Each has room for a slow sudo.
_FACTS = 150.0
_WAYS = 90.0
_LISTENING = 45.0
_CONNECT = 3.0
_PIECES = Path(__file__).with_name("check")

#: Runs a script as root where possible, and reports the rights. The rights are tested, not queried: by the commands
#: that a session and the installation of its script need. The part of check/*.sh comes as the first word.
_TRY_RIGHTS = f"""\
piece=$1; shift
report() {{  # RIGHTS, OUTPUT OF SUDO
  printf 'rights\\t%s\\n' "$1"
  [ -z "${{2:-}}" ] || printf 'refused\\t%s\\n' "$(printf %s "$2" | tr '\\n\\t' '; ')"
}}
as_user() {{ command -v bash > /dev/null || exit 0; exec bash -c "$piece" check "$@"; }}
if [ "$(id -u)" = 0 ]; then report root; as_user "$@"; fi
if ! command -v sudo > /dev/null; then report no-sudo; as_user "$@"; fi
began=$(date +%s%N)
why=$(sudo -n {INSTALLED} serve - - 2>&1 < /dev/null) && serves=yes || serves=no
printf 'sudo\\t%s\\n' "$(( ($(date +%s%N) - began) / 1000000 ))"
case $serves:$why in
  *"command not found"*) serves=missing ;;  # it may be run, once it is there
  yes:*"Permission denied"*) serves=no ;;  # it may start no program (noexec)
esac
root=$(sudo -n /bin/sh -c '/usr/bin/env true && echo as-root' 2>&1 < /dev/null) || :
case $serves:$root in
  no:*as-root*) report none "$why"; as_user "$@" ;;
  *:*as-root*) report sudo; s="sudo -n" ;;
  yes:*) report script; printf 'script\\t%s\\n' "$(printf '%s' "$why" | tail -n 1)"; as_user "$@" ;;
  no:*) report none "$why"; as_user "$@" ;;
  *) report none "$root"; as_user "$@" ;;
esac
exec $s /bin/sh -c 'command -v bash > /dev/null || exit 0; exec bash -c "$@"' sh "$piece" check "$@"
"""
#: Runs another script with the rights that were found: ``sudo`` or none.
_RUN = """\
piece=$1 rights=$2; shift 2
s=; [ "$rights" != sudo ] || s="sudo -n"
exec $s bash -c "$piece" check "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reached:
    """A host that answers. ``ours``: where it listens for this check; ``refused``: the ports at which it cannot listen,
    each with its error.
    """

    host: SshHost
    link: HostLink
    facts: HostFacts
    identity: Identity
    trials: TrialFacts
    ours: tuple[int, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)

    @property
    def open(self) -> frozenset[int]:
        """The listening sockets at its address."""
        return self.facts.listening(self.host.address) | {*self.ours}


async def checked(settings: SshSettings, here: Here, others: Sequence[SshSettings] = ()) -> Checked:
    """All problems of these hosts for planes. Nothing is changed there. ``others``: further sites, none of whose hosts
    may be the same machine as one of these.
    """
    findings: list[HostFinding] = []
    async with AsyncExitStack() as stack:
        elsewhere = asyncio.create_task(_identified_elsewhere(settings, others))
        stack.callback(elsewhere.cancel)
        found = await asyncio.gather(*(_reached(each, settings, stack) for each in settings.hosts))
        findings += [each for each in found if isinstance(each, HostFinding)]
        answered = [each for each in found if isinstance(each, _Reached)]
        for each in answered:
            findings += (*judge_host(each.host, each.facts, here), *judge_limits(each.host, each.facts))
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
        findings += [each for one in there for each in judge_listening(settings, one.host, one.open, one.refused)]
        ways, failed = await _ways(settings, reached)
        findings += failed
        ways |= await _from_here(settings, reached, here)
    for (source, target), wanted in _wanted(settings, reached, here).items():
        findings += judge_way(source, target, wanted, ways.get((source, target)))
    return Checked(findings=tuple(findings), summary=summary(len(settings.hosts), ways, findings))


async def _reached(host: SshHost, settings: SshSettings, stack: AsyncExitStack) -> _Reached | HostFinding:
    doing = f"checking host {host.name}"
    try:
        began = time.monotonic()
        link = await HostLink.made(host.login)
        stack.callback(link.abort)
        login_took = time.monotonic() - began
        own = MachineRole.CONTROL in host.roles
        words = (
            [f"{each.name}={each.path}" for each in settings.storage_classes if each.commands is None] if own else []
        )
        before = time.time()
        pieces = f"INSTANCES={instances_needed(host)}\n{_piece('../host/5-limits', 'identity', 'trial', 'facts')}"
        done = await link.run(_TRY_RIGHTS, (pieces, *words), doing=doing, deadline=_FACTS)
        facts = read_facts(doing, done.stdout, before, time.time())
        return _Reached(
            host=host,
            link=link,
            facts=replace(facts, login_took=login_took),
            identity=read_identity(doing, done.stdout, _shown_key(link)),
            trials=read_trials(done.stdout),
        )
    except QuarterdeckError as error:
        return HostFinding(host.name, Finding(LOGIN, Verdict.REFUSE, error.seen, error.next_step))


def _shown_key(link: HostLink) -> str:
    """The host key that the host presented, in base64."""
    key = link.connection.get_server_host_key()
    return key.export_public_key().decode().split()[1] if key is not None else ""


async def _identified_elsewhere(
    settings: SshSettings, others: Sequence[SshSettings]
) -> tuple[list[Identified], list[HostFinding]]:
    """The hosts of other sites with their identities; a finding for those that cannot be compared. A host that a site
    declares with the same ``settings`` is the same one, which is no finding.
    """
    declared = {each.address for each in settings.hosts} | {each.login for each in settings.hosts}
    wanted = [(each, site.name) for site in others for each in site.hosts if not {each.address, each.login} & declared]

    async def identified(host: SshHost, site: str) -> Identified | str:
        try:
            link = await HostLink.made(host.login)
            try:
                doing = f"checking host {host.name} of site {site}"
                script = (_piece("identity"), "none")  # any user may read it
                done = await link.run(_RUN, script, doing=doing, deadline=_FACTS)
                identity = read_identity(doing, done.stdout, _shown_key(link))
            finally:
                link.abort()
        except QuarterdeckError:
            return f"{host.name} of site {site}"
        return Identified(host=host, identity=identity, site=site)

    seen = await asyncio.gather(*(identified(*each) for each in wanted))
    unknown = [each for each in seen if isinstance(each, str)]
    found = [each for each in seen if isinstance(each, Identified)]
    return found, [_not_compared(settings.name, unknown)] if unknown else []


def _not_compared(site: str, unknown: Sequence[str]) -> HostFinding:
    seen = f"it is not known whether these, which do not answer, are other machines: {', '.join(unknown)}"
    return HostFinding(f"site {site}", Finding("machine", Verdict.WARN, seen, "check again when they answer"))


async def _listening(reached: _Reached, settings: SshSettings, stack: AsyncExitStack) -> _Reached:
    """The host, listening at the ports of planes that are not in use yet."""
    root = reached.facts.rights in ("root", "sudo")
    wanted = {*ports_of_host(settings, reached.host)} - reached.open
    ports = sorted(each for each in wanted if root or each >= LOW_PORTS)
    if not ports or "systemd-socket-activate" in reached.facts.missing:
        return reached
    listens, refused = await stack.enter_async_context(_listener(reached, ports))
    return replace(reached, ours=listens, refused=refused)


@asynccontextmanager
async def _listener(
    reached: _Reached, ports: Sequence[int]
) -> AsyncIterator[tuple[tuple[int, ...], Mapping[int, str]]]:
    """The ports at which it listens, and those at which it cannot, with its errors. It ends with its standard input."""
    words = (_piece("listen"), reached.facts.rights, reached.host.address, *map(str, ports))
    try:
        shell = await reached.link.start(_RUN, words)
    except (Unavailable, PreconditionFailed):  # the connections that are tried next report that it is lost
        yield (), {}
        return
    lines: list[str] = []
    with suppress(TimeoutError, asyncio.IncompleteReadError, asyncssh.Error, OSError):
        async with asyncio.timeout(_LISTENING):
            while "tried" not in lines:
                lines.append((await shell.readuntil(b"\n")).decode(errors="replace").strip())
    try:
        yield read_listening(lines)
    finally:
        with suppress(TimeoutError, asyncssh.Error, OSError):
            shell.process.stdin.write_eof()
            async with asyncio.timeout(_CONNECT):
                await shell.process.wait_closed()
        shell.close()


async def _ways(
    settings: SshSettings, reached: Sequence[_Reached]
) -> tuple[dict[tuple[str, str], Reachability], list[HostFinding]]:
    """From each host to each other one."""

    async def ask(source: _Reached) -> Mapping[str, Reachability] | HostFinding:
        words: list[str] = []
        for target in reached:
            if ports := _tried(settings, source, target):
                bulk = next((str(each) for each in ports if each in target.ours), "-")
                words += (target.host.name, target.host.address, ",".join(map(str, ports)), bulk)
        doing = f"connecting from host {source.host.name}"
        try:
            if not words:
                return {}
            script = (_piece("connect"), source.facts.rights, *words)
            done = await source.link.run(_RUN, script, doing=doing, deadline=_WAYS)
            return read_ways(doing, done.stdout)
        except QuarterdeckError as error:
            return HostFinding(source.host.name, Finding("network", Verdict.REFUSE, error.seen, error.next_step))

    answers = await asyncio.gather(*map(ask, reached))
    ways: dict[tuple[str, str], Reachability] = {}
    failed = [each for each in answers if isinstance(each, HostFinding)]
    for source, each in zip(reached, answers, strict=True):
        if not isinstance(each, HostFinding):
            ways |= {(source.host.name, target): way for target, way in each.items()}
    return ways, failed


def _tried(settings: SshSettings, source: _Reached, target: _Reached) -> tuple[int, ...]:
    """The ports that programs on one host need of another, as far as anything listens there now."""
    wanted = ports_between(settings, source.host, target.host) if source is not target else ()
    return tuple(each for each in wanted if each in target.open)


async def _from_here(
    settings: SshSettings, reached: Sequence[_Reached], here: Here
) -> dict[tuple[str, str], Reachability]:
    """From this host, which drives all planes, to each: all its listening ports. (Their distance from here does not
    matter to the site.)
    """

    async def way(target: _Reached) -> Reachability:
        ports = _open_to_us(settings, target)
        return Reachability(
            ports=dict(zip(ports, await asyncio.gather(*(_at(target, each) for each in ports)), strict=True))
        )

    ways = await asyncio.gather(*map(way, reached))
    return {(here.name, target.host.name): found for target, found in zip(reached, ways, strict=True)}


async def _at(target: _Reached, port: int) -> str:
    """The result of connecting from here: see ``Reachability``."""
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
    """The ports that were tried between each two reachable hosts, and from this host."""
    found = {(here.name, each.host.name): _open_to_us(settings, each) for each in reached}
    for source, target in permutations(reached, 2):
        if ports := _tried(settings, source, target):
            found[source.host.name, target.host.name] = ports
    return found


@cache
def _piece(*names: str) -> str:
    """Scripts that run one after the other, in one session. They set the locale themselves, since sudo may reset the
    environment: the output of programs is parsed.
    """
    return "\n".join(("export LC_ALL=C", *((_PIECES / f"{name}.sh").read_text() for name in names)))
