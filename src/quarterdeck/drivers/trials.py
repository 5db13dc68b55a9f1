"""Trials on this host, where the programs that every site gets are: see ``engine.trials.Trials``.

Each program runs with its real flags and files on a loopback address of its own, with throw-away keys and a throw-away
etcd. A configuration that has started once is not tried again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Self

from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE, programs_of
from quarterdeck.components.controller import scheduler
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.endings import why_it_ended
from quarterdeck.components.ports import first_block, seat_with
from quarterdeck.components.replica import NAME, component_unit, configurations, trial_units, with_first_keys
from quarterdeck.components.settings import ClusterState, InitialCluster, Inputs, ReplicaSettings, service_ip
from quarterdeck.drivers.trial_processes import TrialFolder, TrialProcess, TrialResult
from quarterdeck.http import Http, NoAnswer
from quarterdeck.linux.free_ports import free_loopback_ports
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName, Seat
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, with_replica
from quarterdeck.pki.tls import client_context
from quarterdeck.progress import Progress, SilentProgress
from quarterdeck.upstream.upstream import cache_root

#: Seconds for all programs. They take four on two cores; one that has not ended by then is not at fault.
_DEADLINE = 60.0
#: Seconds for a program that only reads its flags.
_FLAGS_DEADLINE = 10.0
#: Seconds between two requests to a program, and for its answer.
_POLL, _ANSWER = 0.05, 2.0
#: Number of remembered configurations.
_KEPT = 500
_REPLICA = f"{NAME}-1"
#: Added before a program's own flags. A controller manager spends its whole request budget on finding out which APIs
#: exist: with the default one it is ready after five seconds.
_FIRST = {Component.CONTROLLER_MANAGER: ("--kube-api-qps=1000", "--kube-api-burst=1000")}
_LAST = {Component.ETCD: ("--unsafe-no-fsync",)}
#: pflag's errors about a command line, before anything else is done.
_BAD_FLAG = ("unknown flag: ", "unknown shorthand flag: ", "invalid argument ", "flag needs an argument: ")


@dataclass(kw_only=True)
class LocalTrials:
    """Trials of one user. ``cache`` is that user's folder with the configurations that have started (created when
    needed; without it everything is tried each time).
    """

    cache: Path
    progress: Progress = field(default_factory=SilentProgress)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, progress: Progress | None = None) -> Self:
        """With the cache next to that of the programs: QUARTERDECK_CACHE."""
        return cls(cache=cache_root(environment) / "trials", progress=progress or SilentProgress())

    async def failures(
        self, template: ReplicaTemplate, components: Collection[Component], programs: Mapping[Component, PurePosixPath]
    ) -> Mapping[Component, str]:
        """See ``engine.trials.Trials``. Raises Unavailable when no file can be written here."""
        known = await asyncio.to_thread(self._keys, template, components, programs)
        wanted = [each for each in known if not self._passed(known[each])]
        if not wanted:
            return {}
        task = f"trying {', '.join(wanted)}"
        self.progress.start(task, None)
        outcome = "interrupted"
        try:
            judged = await _judged(template, wanted, programs)
            failed = {each: words for each, words in judged.items() if words}
            unknown = [each for each in wanted if each not in judged]
            outcome = f"{', '.join(failed)} would not start" if failed else "done"
            if unknown and not failed:
                outcome = f"{', '.join(unknown)} could not be judged"
        finally:
            self.progress.finish(task, outcome)
        passed = [known[each] for each, words in judged.items() if not words and each in known]
        await asyncio.to_thread(self._remember, passed)
        return failed

    def _keys(
        self, template: ReplicaTemplate, components: Collection[Component], programs: Mapping[Component, PurePosixPath]
    ) -> dict[Component, str]:
        """The key of each program with its configuration. A file counts as unchanged as long as its size and times are;
        one that cannot be read is not tried.
        """
        found: dict[Component, str] = {}
        for component, configuration in configurations(template).items():
            if component in components:
                with suppress(OSError):
                    seen = Path(programs[component]).stat()
                    words = (str(programs[component]), str(seen.st_size), str(seen.st_mtime_ns), configuration)
                    found[component] = hashlib.sha256("\0".join(words).encode()).hexdigest()
        return found

    def _passed(self, key: str) -> bool:
        return (self.cache / key).exists()

    def _remember(self, keys: Collection[str]) -> None:
        """A cache that cannot be written costs time, and nothing else."""
        with suppress(OSError):
            self.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            for key in keys:
                (self.cache / key).touch(mode=0o600)
            for old in sorted(self.cache.iterdir(), key=lambda each: each.stat().st_mtime)[:-_KEPT]:
                old.unlink(missing_ok=True)


async def _judged(
    template: ReplicaTemplate, wanted: Collection[Component], programs: Mapping[Component, PurePosixPath]
) -> dict[Component, str]:
    """Why each program ends, or "" if it starts; no entry for one that was not judged in time, or could not be run."""
    ports = await asyncio.to_thread(_free_ports)
    if ports is None:
        return {}
    async with AsyncExitStack() as stack:
        folder = await stack.enter_async_context(TrialFolder.made())
        trial = _Trial(template=template, seat=seat_with(NAME, *ports), folder=folder, programs=programs, stack=stack)
        with suppress(TimeoutError):
            async with asyncio.timeout(_DEADLINE):
                await asyncio.gather(*(trial.judge(each) for each in wanted))
        return trial.words()


@dataclass(kw_only=True)
class _Trial:
    """One trial. Programs run until ``stack`` ends: others may need them."""

    template: ReplicaTemplate
    seat: Seat
    folder: Path
    programs: Mapping[Component, PurePosixPath]
    stack: AsyncExitStack
    _secrets: SharedSecrets = field(init=False)
    _judging: dict[Component, asyncio.Task[str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        now = datetime.now(UTC)
        address = self.seat.listen(PortName.APISERVER).host
        names = ReplicaNames(
            replica=_REPLICA,
            addresses=(address,),
            service_ip=service_ip(self.template),
            programs=programs_of(self.template),
        )
        self._secrets = with_replica(create_plane_secrets(NAME, now), names, now)

    async def judge(self, component: Component) -> str | None:
        """Why a program ends; "" if it starts, None where that is unknown. Each is judged once."""
        if component not in self._judging:
            self._judging[component] = asyncio.ensure_future(self._judge(component))
        return await self._judging[component]

    def words(self) -> dict[Component, str]:
        """The findings."""
        done = {each: task.result() for each, task in self._judging.items() if task.done() and not task.cancelled()}
        return {each: words for each, words in done.items() if words is not None}

    async def _judge(self, component: Component) -> str | None:
        if CATALOGUE[component].given is not None:
            return await self._flags_alone(component)
        if component == Component.APISERVER:
            # It reads its flags and files while etcd starts, and only then waits for etcd.
            apiserver = asyncio.ensure_future(self._start(component, self._ready(PortName.APISERVER, "/readyz")))
            self.stack.callback(apiserver.cancel)
            etcd = asyncio.ensure_future(self.judge(Component.ETCD))
            await asyncio.wait((apiserver, etcd), return_when=asyncio.FIRST_COMPLETED)
            return await apiserver if apiserver.done() or await etcd == "" else None
        if not component.is_controller:
            return await self._start(component, self._ready(PortName.ETCD_METRICS, "/health"))
        # Some flags are read only when it leads, or is about to.
        if await self.judge(Component.APISERVER) != "":
            return None
        return await self._start(component, self._works(component))

    def _works(self, component: Component) -> Callable[[Http], Awaitable[bool]]:
        """The check whether a program that needs an apiserver works."""
        if component == Component.CONTROLLER_MANAGER:
            return self._has_controllers
        if component == Component.SCHEDULER:
            return self._leads
        (port,) = CATALOGUE[component].ports
        return self._ready(port.name, "/healthz")

    async def _start(self, component: Component, ready: Callable[[Http], Awaitable[bool]]) -> str | None:
        unit = await asyncio.to_thread(self._written, component)
        first, last = _FIRST.get(component, ()), _LAST.get(component, ())
        argv = (unit.argv[0], *first, *unit.argv[1:], *unit.boot_argv, *last)
        process = await self.stack.enter_async_context(TrialProcess.started(argv))
        secrets = self._secrets
        authority = secrets.etcd_ca if component == Component.ETCD else secrets.kubernetes_ca
        client = secrets.etcd_manager if component == Component.ETCD else secrets.manager
        http = Http(client_context(authority.bundle, client))
        try:
            while not await _says(ready, http):
                ended = await process.ended(_POLL)
                if ended is not None:
                    return self._why(ended)
        finally:
            await http.close()
        return ""

    def _why(self, ended: TrialResult) -> str | None:
        """The program's own error, without the names of deleted folders."""
        if not ended.started:
            return None
        return why_it_ended(ended.output, ended.exit_code).replace(f"{self.folder}/", "")

    def _ready(self, port: str, path: str) -> Callable[[Http], Awaitable[bool]]:
        origin = self.seat.listen(port).url()

        async def asked(http: Http) -> bool:
            return (await http.ask("GET", origin, path, deadline=_ANSWER)).status == 200

        return asked

    async def _leads(self, http: Http) -> bool:
        """Whether a scheduler holds its lease."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{scheduler.LEASE}"
        return (await http.ask("GET", self.seat.listen(PortName.APISERVER).url(), path, deadline=_ANSWER)).status == 200

    async def _has_controllers(self, http: Http) -> bool:
        """Whether a controller manager lists a health check besides that of its election: it has those of its
        controllers when they have started (kubernetes: cmd/kube-controller-manager/app, StartControllers).
        """
        origin = self.seat.listen(PortName.CONTROLLER_MANAGER).url()
        answer = await http.ask("GET", origin, "/healthz?verbose", deadline=_ANSWER)
        return answer.status == 200 and answer.body.count(b"[+]") > 1

    async def _flags_alone(self, component: Component) -> str | None:
        """Whether a user's program knows its flags. It is not started: it might act on its cloud. Programs with the
        flags of k8s.io/cloud-provider parse all of them before they print their help (pflag).
        """
        unit = trial_units(self.template)[component]
        argv = (str(self.programs[component]), *unit.argv[1:], "--help")
        process = await self.stack.enter_async_context(TrialProcess.started(argv))
        ended = await process.ended(_FLAGS_DEADLINE)
        if ended is None or not ended.started:
            return None
        words = why_it_ended(ended.output)
        refused = ended.exit_code != 0 and any(each in words for each in _BAD_FLAG)
        return words if refused else ""

    def _written(self, component: Component) -> UnitSpec:
        """A program's unit, with its files written."""
        volume, audit = self.folder / "volume", self.folder / "audit"
        replica = ReplicaSettings(
            name=_REPLICA,
            seat=self.seat,
            volume=PurePosixPath(volume),
            audit=PurePosixPath(audit),
            folders={each: PurePosixPath(self.folder / each) for each in CATALOGUE},
            programs=self.programs,
        )
        issued = self._secrets.replica(_REPLICA)
        assert issued is not None, "it was issued above"
        peer = self.seat.advertised(PortName.ETCD_PEER).url()
        initial = InitialCluster(state=ClusterState.NEW, members=((_REPLICA, peer),), token=NAME)
        inputs = Inputs(
            plane=NAME,
            template=with_first_keys(self.template),
            replica=replica,
            secrets=self._secrets,
            certificates=issued,
            initial=initial,
            portable=True,
        )
        unit = component_unit(component, inputs)
        for each in (volume, audit):
            each.mkdir(mode=0o700, exist_ok=True)
        for file in unit.files:
            path = Path(file.path)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(file.content)
        return unit


async def _says(ready: Callable[[Http], Awaitable[bool]], http: Http) -> bool:
    try:
        return await ready(http)
    except NoAnswer:
        return False


def _free_ports() -> tuple[str, dict[str, int]] | None:
    """An unused loopback address, with a free port for each program; None where there is no such interface. Apiservers
    find events in the same etcd as all else.
    """
    try:
        address, ports = free_loopback_ports(first_block())
    except OSError:
        return None
    ports[PortName.EVENTS_CLIENT] = ports[PortName.ETCD_CLIENT]
    return address, ports
