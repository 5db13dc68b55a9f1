"""A plane whose main cluster is about to begin again, with a new founder beside the replicas of before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from fakes.site import FakeSite
from fakes.site_machines import Behaviour

from quarterdeck.actions.status import write_memory
from quarterdeck.components.ports import seat_with
from quarterdeck.model.epochs import MemberWord, Seed, SurvivorOrigin
from quarterdeck.model.memory import Replica
from quarterdeck.model.units import UnitSpec
from support.small_plane import NAME, SmallPlane, small_plane

A1 = "east-a1"
_PORTS = (
    "kube-apiserver",
    "etcd-client",
    "etcd-peer",
    "etcd-metrics",
    "kube-controller-manager",
    "kube-scheduler",
    "events-client",
    "events-peer",
    "events-metrics",
)


def member_word(replica: str, applied: int, **changes: object) -> MemberWord:
    """The report of a voter of three that has applied so many entries, all that it knows of, and has no quorum."""
    word = MemberWord(
        replica=replica,
        term=2,
        committed=applied,
        applied=applied,
        revision=5,
        learner=False,
        follows=False,
        voters=("east-1", "east-2", "east-3"),
    )
    return replace(word, **changes)


#: What could take the place of the survivor.
OTHER = member_word("east-2", 4, revision=4, voters=())


class Jobs:
    """What jobs were run with, and what becomes of them."""

    def __init__(self, exit_code: int = 0, output: str = "") -> None:
        self.argv: list[tuple[str, ...]] = []
        self.ends = Behaviour(exit_code=exit_code, output=output)

    def behave(self, spec: UnitSpec) -> Behaviour:
        if not spec.name.startswith("restore"):
            return Behaviour()
        self.argv.append(spec.argv)
        return self.ends


async def begun(jobs: Jobs | None = None, *, restored: bool = False) -> SmallPlane:
    """A plane of three whose second epoch is about to begin with east-4, from what east-1 has on the same machine."""
    behave = (jobs or Jobs()).behave
    small = await small_plane(site=lambda settings, number: FakeSite(settings, number=number, behave=behave))
    memory = small.plane.memory
    old = memory.replicas[0]
    seat = seat_with(A1, "127.1.1.9", dict(zip(_PORTS, range(7000, 7009), strict=False)))
    founder = Replica(name="east-4", slot=old.slot, machine=A1, storage_class="standard", seat=seat, epoch=1)
    origin = SurvivorOrigin(replica="east-1", others=(OTHER,))
    seed = Seed(origin=origin, founder="east-4", revision=5, seen=7, restored=restored)
    then = replace(
        memory,
        epoch=1,
        seed=seed,
        bootstrap=("east-4",),
        created=False,
        replicas=(*(replace(each, storage_class="standard") for each in memory.replicas), founder),
    )
    await write_memory(small.plane, then)

    async def etcdutl() -> PurePosixPath:
        return PurePosixPath("/programs/etcdutl")

    small.plane.etcdutl = etcdutl
    await small.sites["east"].create_volume(A1, f"{NAME}-east-1", "standard")
    small.sites["east"].put_file(A1, f"{NAME}-east-1", "etcd/member/snap/db", 1_000)
    small.sites["east"].put_file(A1, f"{NAME}-east-1", "etcd/member/wal/0.wal", 1_000)
    return replace(small, world=replace(small.world, memory=small.plane.memory, membership=None))
