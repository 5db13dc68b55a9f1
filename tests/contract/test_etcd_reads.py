"""What the etcd port promises of reads of keys: on the cluster in memory and on real etcd processes alike."""

from __future__ import annotations

import pytest
from support.etcd_cluster import (  # noqa: F401
    Lab,
    etcd_binary,
    eventually,
    fake_lab,
    leader,
    real_lab,
    real_labs,
    urls,
)
from support.tiers import smoke

from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.etcd.calls import LONGEST_ANSWER
from quarterdeck.etcd.faults import EtcdCompacted, EtcdRefused, Reason
from quarterdeck.etcd.kv import Get, prefix_end


@pytest.fixture(params=smoke("fake_lab", "real_lab"))
def lab(request: pytest.FixtureRequest) -> Lab:
    return request.getfixturevalue(request.param)


async def written(lab: Lab, values: dict[bytes, bytes]) -> int:
    """Write keys; the revision at which they are there."""
    everywhere = urls(lab.founders)
    for key, value in values.items():
        await lab.etcd.keep_for(everywhere, key, value, 600)
    return await lab.etcd.revision(everywhere)


def within(start: bytes, *, revision: int = 0, limit: int = 0, keys_only: bool = False) -> Get:
    return Get(
        key=start,
        range_end=prefix_end(start[: start.rindex(b"/") + 1]),
        revision=revision,
        limit=limit,
        keys_only=keys_only,
    )


async def test_keys_are_read_in_order_at_a_revision_by_whichever_member(lab: Lab) -> None:
    then = await written(lab, {b"/read/%d" % each: b"%d" % each for each in range(5)})
    await lab.etcd.forget(urls(lab.founders), b"/read/1")
    now = await written(lab, {b"/read/2": b"new", b"/other": b"value"})
    for url in urls(lab.founders):
        first = await lab.etcd.read(url, within(b"/read/", limit=2))
        assert [(each.key, each.value) for each in first.items] == [(b"/read/0", b"0"), (b"/read/2", b"new")]
        assert (first.revision, first.count, first.more) == (now, 4, True)
        before = await lab.etcd.read(url, within(b"/read/1", revision=then, limit=9, keys_only=True))
        assert [(each.key, each.value) for each in before.items] == [(b"/read/%d" % each, b"") for each in range(1, 5)]
        assert (before.revision, before.more) == (now, False)
        (one,) = (await lab.etcd.read(url, Get(key=b"/read/2", revision=then))).items
        assert one.value == b"2"
        with pytest.raises(NotFound):
            await lab.etcd.read(url, within(b"/read/", revision=now + 1_000))


async def test_a_read_of_what_was_compacted_is_refused(lab: Lab) -> None:
    then = await written(lab, {b"/compacted/%d" % each: b"value" for each in range(3)})
    now = await written(lab, {b"/compacted/%d" % each: b"value" for each in range(3)})
    await lab.etcd.compact(urls(lab.founders), now - 1)

    async def compacted() -> None:
        for url in urls(lab.founders):
            with pytest.raises(EtcdCompacted):
                await lab.etcd.read(url, within(b"/compacted/", revision=then))

    await eventually(compacted)
    assert (await lab.etcd.read(urls(lab.founders)[0], within(b"/compacted/", revision=now - 1))).count == 3


async def test_an_answer_that_is_too_long_is_not_taken(lab: Lab) -> None:
    size = 1 << 20
    await written(lab, {b"/long/%02d" % each: bytes(size) for each in range(LONGEST_ANSWER // size + 1)})
    for url in urls(lab.founders):
        with pytest.raises(EtcdRefused, match="ask for fewer keys") as error:
            await lab.etcd.read(url, within(b"/long/"))
        assert error.value.reason is Reason.TOO_LARGE
        fewer = await lab.etcd.read(url, within(b"/long/", limit=LONGEST_ANSWER // size - 1))
        assert sum(len(each.value) for each in fewer.items) == LONGEST_ANSWER - size
        assert (await lab.etcd.read(url, within(b"/long/", keys_only=True))).count == LONGEST_ANSWER // size + 1


async def test_a_member_that_is_down_and_one_without_a_quorum_read_nothing(lab: Lab) -> None:
    await written(lab, {b"/left/1": b"value"})
    left, *lost = lab.founders
    for each in lost:
        await lab.kill(each)
    for each in lab.founders:
        with pytest.raises(Unavailable):
            await lab.etcd.read(each.client_url, within(b"/left/"))
    kept = await lab.etcd.read(left.client_url, Get(key=b"/left/1", serializable=True))
    assert kept.items[0].value == b"value"
