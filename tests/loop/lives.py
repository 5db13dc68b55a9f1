"""Lives of a plane: what the user asks for, who drives, what goes wrong, and how it must end."""

from __future__ import annotations

import asyncio
import gc
import pickle
import warnings
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePosixPath
from random import Random
from zlib import crc32

from model.invariants import check_done
from support.former_versions import former
from support.resources import with_spec

from loop.calls import Call
from loop.clock import JumpingLoop
from loop.fake_world import Joined
from loop.faults import OF_THE_WORLD, Faults, Kind, NoFaults
from loop.mishaps import strike
from loop.secrets import cheap_secrets
from loop.session import Books, Died, Session
from loop.truths import Truths
from loop.units import PLANE
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import ControlPlane, Placement, new_control_plane
from quarterdeck.api.operation import Operation, OperationPhase, OperationType
from quarterdeck.api.plane.authentication import Authentication
from quarterdeck.api.plane.backup import BackupSettings
from quarterdeck.api.plane.certificates import AuthorityUse, Certificates
from quarterdeck.api.plane.controllers import CloudControllerManager
from quarterdeck.api.plane.epochs import StandbyPlacement
from quarterdeck.api.plane.etcd import Events
from quarterdeck.api.plane.keys import Keys, KeyUse
from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.api.plane.service_accounts import ServiceAccounts
from quarterdeck.api.values import DEFAULT_ETCD_VERSION, DEFAULT_KUBERNETES_VERSION
from quarterdeck.engine.workspace import operations
from quarterdeck.errors import NotFound, QuarterdeckError
from quarterdeck.model.components import Component
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.units import MachineState, UnitSpec

#: Seconds of the world's clock within which a life ends once nothing goes wrong any more.
PATIENCE = 240.0
#: Seconds until another process drives on where one ended, and that a frozen one stands still.
NEXT_DRIVER = 1.0
STANDS_STILL = 12.0


#: How the units of the programs of Kubernetes are called in the end.
_KUBERNETES = tuple(f"-{each}" for each in (Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER))
#: A flag of etcd.
_FLAG = "snapshot-count"


class Ended(AssertionError):
    """A life ended as it must not."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks for: replicas at a site, whose etcd has a flag set (``count``), whose apiservers trust this
    ``issuer``, other ones than there are now (``others``), whose events are kept in an etcd of their own (``apart``),
    which have a cloud controller manager (``cloud``), with a standby at another site (``standby``), of the former minor
    version of Kubernetes (``former``) or of etcd (``former_etcd``), with other authorities and keys (``rotated``),
    whose tokens have this issuer (``signer``); or (``site`` empty) that the plane goes.
    """

    site: str = ""
    replicas: int = 0
    count: str = ""
    issuer: str = ""
    others: bool = False
    apart: bool = False
    cloud: bool = False
    standby: str = ""
    former: bool = False
    rotated: bool = False
    signer: str = ""
    former_etcd: bool = False

    def __str__(self) -> str:
        details = f"{' with a flag' if self.count else ''}{' with an issuer' if self.issuer else ''}"
        details += f"{', all others' if self.others else ''}{', events apart' if self.apart else ''}"
        details += ", with a cloud controller manager" if self.cloud else ""
        details += f", with a standby at {self.standby}" if self.standby else ""
        details += ", of the former version" if self.former else ""
        details += ", with other authorities and keys" if self.rotated else ""
        details += f", with tokens of {self.signer}" if self.signer else ""
        details += ", of the former etcd" if self.former_etcd else ""
        return f"{self.replicas} at {self.site}{details}" if self.site else "no plane"

    def of(self, plane: ControlPlane) -> ControlPlane:
        """The plane as it is asked for."""
        spec = operations.moved(plane, Placement(site=self.site), self.replicas).spec
        flags = {_FLAG: self.count} if self.count else {}
        there = tuple(each.name for each in plane.status.memory.replicas) if self.others else ()
        return plane.model_copy(
            update={
                "spec": spec.model_copy(
                    update={
                        "etcd": spec.etcd.model_copy(
                            update={"events": Events(separate=self.apart), "version": _etcd(self)}
                        ),
                        "extra_args": spec.extra_args.model_copy(update={"etcd": flags}),
                        "authentication": _trusted(self.issuer) if self.issuer else None,
                        "replace_replicas": there,
                        "cloud_controller_manager": CLOUD if self.cloud else None,
                        "standby": _standby(self),
                        "kubernetes_version": _version(self),
                        "certificates": _OTHERS if self.rotated else Certificates(),
                        "keys": Keys(encryption=KeyUse(current=1, also=0)) if self.rotated else Keys(),
                        "service_accounts": ServiceAccounts(issuers=(self.signer,))
                        if self.signer
                        else ServiceAccounts(),
                    }
                )
            }
        )


#: What planes are upgraded from, and go back to.
FORMER = former(Component.APISERVER)


def _version(wish: Wish) -> str:
    return f"v{FORMER}" if wish.former else DEFAULT_KUBERNETES_VERSION


def _tokens(wish: Wish) -> ServiceAccounts:
    return ServiceAccounts(issuers=(wish.signer,)) if wish.signer else ServiceAccounts()


def _etcd(wish: Wish) -> str:
    return str(former(Component.ETCD)) if wish.former_etcd else DEFAULT_ETCD_VERSION


def _standby(wish: Wish) -> StandbyPlacement | None:
    return StandbyPlacement(site=wish.standby) if wish.standby else None


_OTHER = AuthorityUse(issuer=1, also=0)
_OTHERS = Certificates(kubernetes=_OTHER, etcd=_OTHER, front_proxy=_OTHER)

CLOUD = CloudControllerManager(program=PurePosixPath("/programs/ccm"), provider="fake")


def _trusted(issuer: str) -> Authentication:
    claims = {"username": {"claim": "sub", "prefix": ""}}
    jwt = [{"issuer": {"url": issuer, "audiences": ["a"]}, "claimMappings": claims}]
    return Authentication.model_validate({"jwt": jwt}, strict=False)


@dataclass(frozen=True, slots=True)
class Story:
    """From where, to where; ``back``: what the user wants who goes back. ``reattachable``: volumes outlive machines."""

    name: str
    start: Wish | None
    wish: Wish
    back: Wish | None = None
    reattachable: bool = False

    @property
    def start_apart(self) -> bool:
        """Whether its events are kept apart in the beginning."""
        return self.start is not None and self.start.apart

    def __str__(self) -> str:
        return self.name


def spread(calls: Sequence[int], most: int, what: str = "") -> Sequence[int]:
    """About so many of the calls of a life, spread over all of it. They begin elsewhere for each ``what``: tests of a
    few calls each try different ones.
    """
    step = max(1, len(calls) // max(1, most))
    return calls[crc32(what.encode()) % step :: step]


EAST1, EAST3 = Wish("east", 1), Wish("east", 3)
WEST1, WEST3 = Wish("west", 1), Wish("west", 3)

EAST3_CLOUD = replace(EAST3, cloud=True)
EAST3_BESIDE = replace(EAST3, standby="north")
EAST3_FORMER = replace(EAST3, former=True)
EAST3_ROTATED = replace(EAST3, rotated=True)
EAST3_FORMER_ETCD = replace(EAST3, former_etcd=True)
EAST3_APART, WEST3_APART = replace(EAST3, apart=True), replace(WEST3, apart=True)

STORIES = (
    Story("create 1", None, EAST1),
    Story("create 3", None, EAST3),
    Story("1 to 1", EAST1, WEST1, EAST1),
    Story("3 to 3", EAST3, WEST3, EAST3),
    Story("3 to 1", EAST3, WEST1, EAST3),
    Story("1 to 3", EAST1, WEST3, EAST1),
    Story("1 to 3 here", EAST1, EAST3, EAST1),
    Story("3 to 1 here", EAST3, EAST1, EAST3),
    Story("a flag of 3", EAST3, replace(EAST3, count="5000"), EAST3),
    Story("a flag of 1", EAST1, replace(EAST1, count="5000"), EAST1),
    Story("an issuer of 3", EAST3, replace(EAST3, issuer="https://login.example"), EAST3),
    Story("3 others", EAST3, replace(EAST3, others=True), EAST3),
    Story("events apart", EAST3, EAST3_APART, EAST3),
    Story("3 apart to 3", EAST3_APART, WEST3_APART, EAST3_APART),
    Story("events back", EAST3_APART, EAST3, EAST3_APART),
    Story("a cloud", EAST3, EAST3_CLOUD, EAST3),
    Story("no cloud", EAST3_CLOUD, EAST3, EAST3_CLOUD),
    Story("a standby", EAST3, EAST3_BESIDE, EAST3),
    Story("3 to the standby", EAST3_BESIDE, Wish("north", 3, standby="east"), EAST3_BESIDE),
    Story("an upgrade", EAST3_FORMER, EAST3, EAST3_FORMER),
    Story("an upgrade back", EAST3, EAST3_FORMER, EAST3),
    Story("a rotation", EAST3, EAST3_ROTATED, EAST3),
    Story("a newer etcd", EAST3_FORMER_ETCD, EAST3, EAST3_FORMER_ETCD),
    Story("an older etcd", EAST3, EAST3_FORMER_ETCD, EAST3),
    Story("delete 1", EAST1, Wish()),
    Story("delete 3", EAST3, Wish()),
)


@dataclass(kw_only=True)
class Life:
    """One life. ``run`` returns when it has ended well, and raises AssertionError with its tale when it has not."""

    story: Story
    faults: Faults = field(default_factory=NoFaults)
    seed: int = 0
    world: Joined = field(init=False)
    truths: Truths = field(init=False)
    books: Books = field(init=False)
    wishes: list[Wish] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)

    def run(self) -> Life:
        self.world = _settled(self.story.start)
        self.world.random = Random(self.seed)
        self.world.luck = 0.7 if self.seed else 1.0
        if self.story.reattachable:
            self.world.have_reattachable_volumes()
        self.truths = Truths(self.world)
        self.books = Books(faults=self.faults)
        try:
            with warnings.catch_warnings():
                _run(self.world, self._lived(), self.trouble)
                if any(session.cut_off for session in self.sessions):
                    gc.collect()
            self._checked()
        except AssertionError as error:
            raise Ended(f"{error}\n{self.tale()}") from error
        return self

    async def _lived(self) -> None:
        await self.ask(self.story.wish)
        deadline = self.world.clock.now + PATIENCE
        before = self.world.strikes
        # What is left on machines that do not answer is the next one's, once they do.
        while not await self._driven() or self.world.hurt or self.world.strikes != before:
            before = self.world.strikes
            if self.world.clock.now > deadline:
                raise Ended("no driver came to an end")
            await asyncio.sleep(NEXT_DRIVER)
        await self._after()

    async def _driven(self) -> bool:
        """One process drives, as far as it comes. Whether all is as wanted."""
        session = Session(
            name=f"driver {len(self.sessions) + 1}",
            world=self.world,
            truths=self.truths,
            books=self.books,
            happens=self._happens,
        )
        self.sessions.append(session)
        engine = session.engine()
        session.task = asyncio.create_task(engine.drive(PLANE, wait=15.0), name=session.name)
        still = asyncio.create_task(session.stands_still.wait(), name="standing still")
        await asyncio.wait({session.task, still}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        still.cancel()
        await asyncio.wait({still})
        if session.stands_still.is_set():
            return False
        if not session.task.done():
            raise Ended(f"{session.name} did not come to an end within {PATIENCE:g} s")
        return self._came_to(session)

    def _came_to(self, session: Session) -> bool:
        assert session.task is not None
        if session.task.cancelled():
            self._tell(session, "is dead" if session.dead else "was stopped")
            return False
        error = session.task.exception()
        if self.books.broken is not None:
            raise self.books.broken
        if error is None:
            return self._over()
        if isinstance(error, Died):
            self._tell(session, "is dead")
            return False
        if isinstance(error, NotFound) and self.truths.wanted() is None:
            return True
        if not isinstance(error, QuarterdeckError):
            raise Ended(f"{session.name} raised {error!r}") from error
        self._tell(session, f"gave up: {type(error).__name__}: {error}")
        return False

    def _over(self) -> bool:
        """Whether nothing was asked for that nobody drives: a command that asks drives as well, until it is done."""
        return all(each.status.phase.over for each in self.operations())

    def _tell(self, session: Session, what: str) -> None:
        self.books.tell(self.world.clock.now, session.name, None, what)

    async def _happens(self, session: Session, kind: Kind, call: Call) -> None:
        match kind:
            case Kind.DIES | Kind.DIES_AFTER:
                session.kill()
            case Kind.STOPS:
                session.stop()
            case Kind.ABORTS:
                await self._abort()
            case Kind.FREEZES | Kind.FREEZES_BACK | Kind.SENT_LATE | Kind.SENT_LATE_BACK:
                if kind in (Kind.FREEZES_BACK, Kind.SENT_LATE_BACK):
                    await self._abort()
                session.freeze()
                asyncio.get_running_loop().call_later(STANDS_STILL, session.thaw)
            case _ if kind in (*OF_THE_WORLD, Kind.LOST_MACHINE, Kind.HANGS_UP):
                what = await strike(self.world, kind, Random(self.books.calls))
                self.truths.calm = self.truths.calm and not self.world.strikes
                self.books.tell(self.world.clock.now, "the world", None, what or "nothing that it could happen to")
            case _:
                pass

    async def _abort(self) -> None:
        if self.story.back is not None and self.wishes[-1] != self.story.back:
            await self.ask(self.story.back)

    async def _after(self) -> None:
        """All sessions have ended, and nothing of them is left."""
        for session in self.sessions:
            if session.task is not None and not session.task.done():
                session.thaw()
                await asyncio.wait({session.task}, timeout=PATIENCE)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if tasks:
            raise Ended(f"left behind: {', '.join(task.get_name() + ' ' + repr(task.get_coro()) for task in tasks)}")
        truth = self.truths.now()
        known = truth.memory.replicas if truth is not None else ()
        gone = (each.name for each in known if truth is not None and not truth.up(each.name))
        left = truth.memory.left if truth is not None else ()
        behind = (f"what {each.replica} had on {each.machine}" for each in left if not self._is_up(each.machine))
        self.plan = Plan(leftovers=(*(f"{name}, whose machine is off for good" for name in gone), *behind))

    # --- the user --------------------------------------------------------------------------------------------------

    async def ask(self, wish: Wish) -> Operation:
        """The user asks for something, over a store that does nothing wrong."""
        await asyncio.sleep(0.01)  # nobody asks for two things in one moment
        self.wishes.append(wish)
        self.books.tell(self.world.clock.now, "the user", None, f"wants {wish}")
        user = Session(name="the user", world=self.world, truths=self.truths, books=Books(), happens=self._happens)
        engine = user.engine()
        home, requester = engine.home, engine.requester
        if len(self.wishes) == 1 and self.story.start is None:
            return await operations.create(home, new_plane(wish), requester)
        if not wish.site:
            return await operations.delete(home, PLANE, requester)
        plane = await home.store.get(ControlPlane, PLANE)
        moves = wish.site != plane.spec.placement.site
        kind = OperationType.MIGRATE if moves else OperationType.APPLY
        return await operations.change(
            home, wish.of(plane), kind if len(self.wishes) == 1 else OperationType.ABORT, requester
        )

    # --- the end ---------------------------------------------------------------------------------------------------

    def _checked(self) -> None:
        world = self.world
        held = {site: until for site, until in world.held.items() if until > world.clock.now}
        if held:
            raise Ended(f"load balancers are held still: {held}")
        if self.trouble:
            raise Ended("; ".join(self.trouble))
        if not self.wishes[-1].site:
            if self.truths.wanted() is not None:
                raise Ended("the plane is still there")
            if world.remains():
                raise Ended(f"left of the plane: {', '.join(world.remains())}")
            return
        truth = self.truths.now()
        assert truth is not None
        check_done(truth, self.plan)
        self._check_flags()
        self._check_books()
        self._check_conditions()

    def _check_flags(self) -> None:
        """Each member runs with the flags that are wanted, and none with others."""
        units = (unit for site in self.world.sites.values() for unit in site.everything() if unit.wanted)
        specs = [unit.spec for unit in units if unit.power is not MachineState.DOWN]
        members = [spec for spec in specs if spec.name.endswith(f"-{Component.ETCD}")]
        count = self.wishes[-1].count
        wrong = [spec.name for spec in members if (f"--{_FLAG}={count}" in spec.argv) is not bool(count)]
        if wrong or len(members) != self.wishes[-1].replicas + bool(self.wishes[-1].standby):
            raise Ended(f"of {len(members)} members these run with other flags: {wrong}")
        self._check_issuers()
        self._check_events(specs)
        self._check_cloud(specs)
        self._check_version(specs)

    def _check_version(self, specs: list[UnitSpec]) -> None:
        """Programs of Kubernetes are of the wanted version, and emulate no other one."""
        wanted = _version(self.wishes[-1]).removeprefix("v")
        ours = [spec for spec in specs if spec.name.endswith(_KUBERNETES)]
        others = [spec.name for spec in ours if f"/{wanted}/" not in spec.argv[0]]
        emulating = [spec.name for spec in ours if any(each.startswith("--emulated") for each in spec.argv)]
        if others or emulating:
            raise Ended(f"of other versions than {wanted}: {others}; emulating: {emulating}")

    def _check_cloud(self, specs: list[UnitSpec]) -> None:
        """Replicas have a cloud controller manager exactly where that is wanted, and else nothing is left of one."""
        cloud = self.wishes[-1].cloud
        managers = [spec for spec in specs if spec.name.endswith(f"-{Component.CONTROLLER_MANAGER}")]
        alone = [each.name for each in managers if ("--cloud-provider=external" in each.argv) is not cloud]
        there = [unit for site in self.world.sites.values() for unit in site.everything()]
        names = {unit.spec.name for unit in there if unit.power is not MachineState.DOWN}
        clouds = [name for name in sorted(names) if name.endswith(f"-{Component.CLOUD_CONTROLLER_MANAGER}")]
        if alone or len(clouds) != self.wishes[-1].replicas * cloud:
            raise Ended(f"in a cloud: {cloud}; {clouds}, other controller managers {alone}")

    def _check_events(self, specs: list[UnitSpec]) -> None:
        """Apiservers keep events apart exactly where that is wanted, and else nothing is left of their cluster."""
        apart = self.wishes[-1].apart
        servers = [spec for spec in specs if spec.name.endswith(f"-{Component.APISERVER}")]
        other = [each.name for each in servers if any("overrides" in flag for flag in each.argv) is not apart]
        members = [spec.name for spec in specs if spec.name.endswith(f"-{Component.EVENTS_ETCD}")]
        known = [path for path in self.world.data if self._is_on(path)]
        left = [] if apart else [str(path) for path in known if "-events-" in path.parent.name]
        if other or left or len(members) != self.wishes[-1].replicas * apart:
            raise Ended(f"events apart: {apart}; {members}, other apiservers {other}, left {left}")

    def _is_up(self, machine: str) -> bool:
        return self.world.site_of(machine).power(machine) is MachineState.UP

    def _is_on(self, path: PurePosixPath) -> bool:
        """Whether the machine of a folder is not off for good."""
        there = [name for name in self.world.machines if name in path.parts]
        return all(self.world.site_of(name).power(name) is not MachineState.DOWN for name in there)

    def _check_issuers(self) -> None:
        """Each apiserver goes by the issuers that are wanted."""
        issuer = self.wishes[-1].issuer.encode()
        servers = [each for each in self.world.processes.values() if each.component == Component.APISERVER]
        strange = [each.replica for each in servers if (b"issuer" in each.authentication) is not bool(issuer)]
        if strange:
            raise Ended(f"these apiservers trust other issuers: {strange}")

    def _check_conditions(self) -> None:
        """They say of the last look what is so."""
        body = self.world.store._bodies[ControlPlane.__name__, PLANE]
        plane = ControlPlane.model_validate_json(body, by_alias=True, by_name=False)
        wanted = {
            ConditionType.READY: "True",
            ConditionType.AVAILABLE: "True",
            ConditionType.RECONCILING: "False",
            ConditionType.STALLED: "False",
        }
        found = {each.type: each.status.value for each in plane.status.conditions}
        if any(each.cloud for each in (self.story.start, *self.wishes) if each is not None):
            # Who goes back before that may never have been told what such a program may do.
            wanted |= (
                {ConditionType.ADDONS_APPLIED: "True"}
                if self.wishes[-1].cloud or ConditionType.ADDONS_APPLIED in found
                else {}
            )
        if self.world.has_unreleased_locks:
            found |= {ConditionType.READY: "True", ConditionType.CONTROLLERS_LEAD: "Unknown"}
        # Who has only just come to lead has not renewed yet.
        wanted |= {
            ConditionType.CONTROLLERS_LEAD: found[ConditionType.CONTROLLERS_LEAD]
            if found[ConditionType.CONTROLLERS_LEAD] != "False"
            else "True or Unknown"
        }
        generations = {each.observed_generation for each in plane.status.conditions}
        if found != wanted or generations != {plane.metadata.generation}:
            raise Ended(f"conditions of the end: {found}, of generations {generations}")

    def operations(self) -> list[Operation]:
        """All of them, in the order in which they were asked for."""
        return [
            Operation.model_validate_json(body, by_alias=True, by_name=False)
            for (kind, _), body in self.world.store._bodies.items()
            if kind == Operation.__name__
        ]

    def _check_books(self) -> None:
        stored = self.operations()
        if not all(each.status.phase.over for each in stored):
            raise Ended(f"operations are not over: {[(each.name, each.status.phase.value) for each in stored]}")
        last = stored[-1]  # as they were created
        if last.status.phase is not OperationPhase.SUCCEEDED:
            raise Ended(f"{last.name} is {last.status.phase.value}: {last.status.message}")

    def tale(self, lines: int = 120) -> str:
        rows = [
            f"{when:10.3f} {process}: {call.port + ' ' + call.method + ' ' + call.target() if call else ''} {what}"
            for when, process, call, what in self.books.tale[-lines:]
        ]
        return "\n".join((f"the life of {self.story.name!r}, seed {self.seed}, {self.faults}:", *rows))


def new_plane(wish: Wish) -> ControlPlane:
    plane = new_control_plane(PLANE, site=wish.site, replicas=wish.replicas)
    endpoint = plane.spec.endpoint.model_copy(update={"ttl": 1, "drain": 0.4})
    etcd = plane.spec.etcd.model_copy(update={"events": Events(separate=wish.apart), "version": _etcd(wish)})
    changes = {"endpoint": endpoint, "etcd": etcd, "nodes": Nodes(bootstrap=False)}  # add-ons are no part of most
    changes |= {"backup": BackupSettings(enabled=False)}  # the recorder writes files and has threads
    changes |= {"kubernetes_version": _version(wish), "service_accounts": _tokens(wish)}
    changes |= {"cloud_controller_manager": CLOUD if wish.cloud else None, "standby": _standby(wish)}
    return with_spec(plane, **changes)


def _run(world: Joined, life: Awaitable[None], trouble: list[str]) -> None:
    """Live a life in a loop of its own; whatever nobody looked at is trouble."""
    loop = JumpingLoop(world.clock)
    loop.set_exception_handler(lambda _, context: trouble.append(f"{context['message']}: {context.get('exception')!r}"))
    task = loop.create_task(life)
    try:
        loop.run_until_complete(task)
    finally:
        left = asyncio.all_tasks(loop)
        for each in left:
            each.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()


@cache
def _start(wish: Wish | None) -> bytes:
    """The world in which a wish is fulfilled (none: nothing is there yet), to be copied."""
    if wish is None:
        world = Joined()
        loop = JumpingLoop(world.clock)
        loop.run_until_complete(world.furnish())
        loop.close()
    else:
        life = Life(story=Story(f"create {wish}", None, wish)).run()
        world = life.world
        world.clock.now += 60.0
        world.touch()
        world.settle()
    return pickle.dumps(world)


def _settled(wish: Wish | None) -> Joined:
    return pickle.loads(_start(wish))


@contextmanager
def many() -> Iterator[None]:
    """What makes many lives in a row cheap."""
    with cheap_secrets():
        gc.collect()
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()
