"""A driver's process: it lives, stands still or is dead, and all that it does goes through ports that may fail."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from fakes.site import FakeSite
from model.invariants import Broken

from loop.calls import Call, step_of
from loop.fake_world import Joined
from loop.faults import AFTER, DEADLINE, LATENESS, Faults, Kind, NoFaults, changes, error_of
from loop.members import Members, cluster_at
from loop.truths import Truths
from loop.units import PLANE
from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.components.template import Revisions
from quarterdeck.engine.notices.watchers import Unwatched
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace.belongings import drop, secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.engine.workspace.revisions import known
from quarterdeck.engine.workspace.settings import front_site
from quarterdeck.errors import QuarterdeckError
from quarterdeck.etcd.faults import Reason, fault
from quarterdeck.kube.port import Address, HealthAnswer
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.seats import Slot
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import AddLearner, Swap
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import Fence, MachineState, Volume
from quarterdeck.model.world import World
from quarterdeck.planner.simulated.parts import edge
from quarterdeck.stores.lease import LeaseGuard
from quarterdeck.stores.port import Lease
from quarterdeck.upstream.catalog import UpstreamProgram, Versions

#: Calls of etcd that need a leader.
_LED = frozenset(["members", "add_learner", "promote", "remove", "move_leader", "alarms"])
#: Changes that nothing follows from in this world.
_QUIET = frozenset({"install", "set_priority", "create_volume", "allocate", "occupy", "release"})
#: Changes that tales leave out.
_NO_NEWS = frozenset({"renew", "append", "record", "acquire"})


class Died(BaseException):
    """The process is dead: nothing of it may go on."""


@dataclass(slots=True)
class Books:
    """What all sessions of a life write down together."""

    calls: int = 0
    tale: list[tuple[float, str, Call | None, str]] = field(default_factory=list)
    faults: Faults = field(default_factory=NoFaults)
    broken: AssertionError | None = None
    #: Sites whose load balancer could once not be let go.
    stuck: set[str] = field(default_factory=set)

    def tell(self, when: float, process: str, call: Call | None, what: str) -> None:
        self.tale.append((when, process, call, what))


class Port:
    """A port of a session: its calls are those of ``inner``, as far as nothing comes between."""

    def __init__(self, session: Session, name: str, inner: object) -> None:
        self._session = session
        self._name = name
        self._inner = inner

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._inner, method)
        if not inspect.iscoroutinefunction(found):
            return found
        session, name = self._session, self._name

        async def called(*args: object, **kwargs: object) -> object:
            return await session.call(Call(name, method, args, kwargs), found)

        self.__dict__[method] = called
        return called


@dataclass(eq=False, kw_only=True)
class Session(Unwatched):
    """One process that drives. ``watch`` is told what it begins and ends, as any watcher is."""

    name: str
    world: Joined
    truths: Truths
    books: Books
    #: What the driver has happen at a call besides what goes wrong with the call itself.
    happens: Callable[[Session, Kind, Call], Awaitable[None]]
    dead: bool = False
    cut_off: bool = False
    doing: list[Step] = field(default_factory=list)
    #: What failed, and is begun again without another word.
    failed: list[Step] = field(default_factory=list)
    slots: tuple[Slot, ...] = ()
    revision: str = ""
    unseen: frozenset[str] = frozenset()
    token: int = 0
    #: What had happened to the world (``Joined.strikes``) when the last look began, and when the one under way did.
    knows: int = 0
    looks_since: int | None = None
    task: asyncio.Task[None] | None = None
    stands_still: asyncio.Event = field(default_factory=asyncio.Event)
    _awake: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._awake.set()

    # --- its life --------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """As kill -9 does."""
        self.dead = True
        self._awake.set()
        self.stop()

    def stop(self) -> None:
        """As Ctrl-C does: it may still let go of what it has."""
        assert self.task is not None
        self.cut_off = True
        # Who is cut off in the middle leaves calls behind that nobody makes any more.
        warnings.filterwarnings("ignore", ".* was never awaited", RuntimeWarning)
        self.task.cancel()

    def freeze(self) -> None:
        self.stands_still.set()
        self._awake.clear()

    def thaw(self) -> None:
        self._awake.set()

    async def _alive(self) -> None:
        if not self._awake.is_set():
            await self._awake.wait()
        if self.dead:
            raise Died

    async def observed(self, world: World, plan: Plan) -> None:
        self.slots, self.revision = world.slots, world.revision
        self.knows, self.looks_since = self.looks_since or 0, None
        self.unseen = frozenset(edge(each.site) for each in world.balancers if not each.reachable)
        self.doing = [step for step in plan.now if step in self.doing or step in self.failed]
        held = {site for site, until in self.world.held.items() if until > self.world.clock.now} - self.books.stuck
        if held and self.books.broken is None:
            # What a watcher raises is told, and goes no further.
            self.books.broken = Broken(f"5: held still, and no step is under way: {', '.join(sorted(held))}")

    async def begins(self, step: Step) -> None:
        self.doing.append(step)

    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        if error is not None:
            self.failed.append(step)
        elif step in self.doing:
            self.doing.remove(step)
        self.books.tell(self.world.clock.now, self.name, None, f"{type(step).__name__}: {error or 'done'}")

    async def troubled(self, error: QuarterdeckError) -> None:
        self.books.tell(self.world.clock.now, self.name, None, f"is troubled: {error}")

    # --- its calls -------------------------------------------------------------------------------------------------

    async def call(self, call: Call, function: Callable[..., Awaitable[object]]) -> object:
        """Make a call, as far as nothing goes wrong."""
        number, clock = self.books.calls, self.world.clock
        self.books.calls += 1
        await self._alive()
        kind = self.books.faults.of(call, number)
        if kind is not None or (changes(call) and call.method not in _NO_NEWS):
            self.books.tell(clock.now, self.name, call, f"{number}" if kind is None else f"{number}: {kind}")
        if call.method == "let_go" and kind is not None:
            self.books.stuck.add(call.site)
        if kind is None:
            await asyncio.sleep(0)
            return await self._effect(call, function)
        if kind not in AFTER:
            await self.happens(self, kind, call)
        if kind is Kind.HANGS:
            await asyncio.sleep(DEADLINE)
        elif kind is Kind.LATE:
            await asyncio.sleep(LATENESS)
        await self._alive()
        if kind in (Kind.FAILS, Kind.HANGS):
            return self._no_answer(call, kind)
        answer = await self._effect(call, function)
        if kind in AFTER:
            await self.happens(self, kind, call)
            await self._alive()
        return self._no_answer(call, kind) if kind is Kind.LOST else answer

    def _no_answer(self, call: Call, kind: Kind) -> object:
        if call.port == "kube":
            if call.method in ("readyz", "ping", "livez", "healthz"):
                return HealthAnswer(None, "a fault of the test")
            if call.method in ("leads", "listens"):
                return None
        raise error_of(call, kind)

    async def _effect(self, call: Call, function: Callable[..., Awaitable[object]]) -> object:
        world = self.world
        world.settle()
        if not await self._reaches(call):
            return self._no_answer(call, Kind.HANGS)
        if call.port == "etcd" and call.method in _LED and self._cluster(call).leaderless:
            raise fault(f"{call.method} of etcd", Reason.NO_LEADER, "an election is under way")
        if call.method == "facts":
            return self._seen(await function(*call.args))
        if not changes(call):
            return await function(*call.args, **call.kwargs)
        if call.port == "store" or call.method in _QUIET:
            return await function(*call.args, **call.kwargs)
        if call.port.startswith("balancer:") and call.method != "let_go":
            # A real one consists of units and files of its machine, which asks for the token of whoever changes them.
            await self.fenced(world.sites[call.site]).hold_unit(f"{call.site}-edge", "envoy", 0.0)
        before = self.truths.now()
        step = step_of(call, self.truths, self.doing)
        if isinstance(step, (AddLearner, ReleaseReplica, StopUnit)) and before is not None and self.slots:
            # The user may have changed what is wanted since it was decided.
            before = replace(before, slots=self.slots, revision=self.revision)
        if before is not None and before.deleting and self.unseen:
            # A deletion does not wait for what does not answer.
            before = replace(before, mute=before.mute | self.unseen)
        answer = await function(*call.args, **call.kwargs)
        self._followed(call, answer)
        if call.method == "let_go":
            await self.fenced(world.sites[call.site]).let_go_unit(f"{call.site}-edge", "envoy")
        try:
            swapping = any(isinstance(each, Swap) for each in self.doing)
            self.truths.check(step, before, swapping=swapping, blind=world.strikes != self.knows)
        except AssertionError as broken:
            self.books.broken = self.books.broken or broken
            raise
        return answer

    async def _reaches(self, call: Call) -> bool:
        """Whether a call comes to whom it is to, be it late. Etcd has several members, and says who is silent."""
        world, machine = self.world, self._asked(call)
        if machine is None or world.answers(machine):
            return True
        if call.method == "let_go":
            self.books.stuck.add(call.site)
        within = call.kwargs.get("within")
        await asyncio.sleep(within if isinstance(within, float) else DEADLINE)
        world.settle()
        return call.port == "etcd" or world.answers(machine)

    def _cluster(self, call: Call) -> Members:
        """The etcd cluster that a call is to."""
        urls = call.args[0]
        assert isinstance(urls, str | Sequence)
        return self.world.clusters[cluster_at(urls if isinstance(urls, str) else next(iter(urls), ""))]

    def _asked(self, call: Call) -> str | None:
        """The one machine that a call is to."""
        first = call.args[0] if call.args else None
        if call.port.startswith("balancer:"):
            return f"{call.site}-edge"
        if isinstance(first, Address):
            return self.world.machine_at(first.host)
        if call.port == "etcd" and isinstance(first, str):
            return self.world.machine_at(urlsplit(first).hostname or "")
        return first if isinstance(first, str) and first in self.world.machines else None

    def _seen(self, site: SiteFacts) -> SiteFacts:
        """A site as it is for us. A look begins with it."""
        if self.looks_since is None:
            self.looks_since = self.world.strikes
        return replace(site, machines=tuple(map(self._as_seen, site.machines)))

    def _as_seen(self, facts: MachineFacts) -> MachineFacts:
        if facts.machine.name not in self.world.unseen:
            return facts
        return MachineFacts(machine=replace(facts.machine, state=MachineState.UNREACHABLE))

    def _followed(self, call: Call, answer: object) -> None:
        """What a change brings with it."""
        world, method = self.world, call.method
        if method == "move_leader":
            self._cluster(call).moved_on_purpose()
        elif method == "delete_volume":
            wanted = self.truths.wanted()
            there = set[Cluster]()
            if wanted is not None and not wanted.deleting:
                there = {Cluster.MAIN, *((Cluster.EVENTS,) if wanted.memory.events.exists else ())}
            world.forget_deleted(there)
        elif isinstance(answer, Volume):
            world.follow(answer)
        elif method == "hold":
            world.held[call.site] = world.clock.now + float(call.args[0])
        elif method == "let_go":
            world.held.pop(call.site, None)
        world.touch()

    # --- what it is given ------------------------------------------------------------------------------------------

    def port(self, name: str, inner: object) -> Any:
        return Port(self, name, inner)

    def fenced(self, site: FakeSite) -> FakeSite:
        """The site as it is for this driver: it refuses one that was overtaken."""
        return site.fenced(Fence(PLANE, self.token)) if self.token else site

    def engine(self) -> Engine:
        clock = self.world.clock
        return Engine(
            home=LoopHome(folder=Path("/proc/nowhere"), store=self.port("store", self.world.store), session=self),
            upstream=Programs(),
            requester=self.requester(),
            watchers=(self,),
            clocks=clock.clocks(),
            processor=clock.processor,
        )

    def requester(self) -> Requester:
        return Requester(name=self.name, now=lambda: datetime.fromtimestamp(self.world.clock.wall(), UTC))


class Programs:
    """The upstream programs, which nobody runs here."""

    async def ensure(self, programs: tuple[UpstreamProgram, ...], versions: Versions) -> dict[UpstreamProgram, Path]:
        return {each: Path("/programs") / str(versions.of(each.project)) / each.value for each in programs}


@dataclass(kw_only=True)
class LoopHome(Home):
    """A home whose planes have the ports of a session."""

    session: Session

    async def forget(self, plane: ControlPlane, *, lease: Lease | None = None) -> None:
        """As a home does that has no door."""
        await drop(self.store, plane, lease=lease)

    async def plane(
        self,
        resource: ControlPlane,
        stack: AsyncExitStack,
        *,
        guard: LeaseGuard | None = None,
        programs: Mapping[Component, PurePosixPath] | None = None,
        dns_program: Path | None = None,
        revisions: Revisions | None = None,
    ) -> Plane:
        session, world = self.session, self.session.world
        session.token = guard.lease.token if guard is not None else 0
        sites = {name: session.port(f"site:{name}", session.fenced(site)) for name, site in world.sites.items()}
        return Plane(
            resource=resource,
            store=self.store,
            guard=guard,
            sites=sites,
            machines={(each.site, each.name): each for site in world.sites.values() for each in await site.machines()},
            etcd=session.port("etcd", world.etcd()),
            kube=session.port("kube", world.kube),
            balancers={
                name: {f"{name}-edge": session.port(f"balancer:{name}", each)} for name, each in world.balancers.items()
            },
            dns=session.port("dns", world.dns),
            revisions=revisions or await known(self.store, resource, guess=False),
            secrets=await secrets_of(self.store, resource),
            programs=programs or {},
            clock=world.clock.wall,
            steady=world.clock.monotonic,
            boot="the only one",
        )


__all__ = ["PLANE", "Books", "Died", "LoopHome", "Port", "Session", "front_site"]
