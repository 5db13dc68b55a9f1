"""What etcd makes of members of two versions: on the cluster in memory and on real etcd processes alike."""

from __future__ import annotations

import pytest
from support.etcd_cluster import (  # noqa: F401
    FakeLab,
    Lab,
    RealLabs,
    etcd_binary,
    eventually,
    fake_lab,
    leader,
    real_lab,
    real_labs,
    urls,
)

from quarterdeck.etcd.faults import EtcdFault, Reason
from quarterdeck.model.membership import EtcdMinor

OLD, NEW = "3.6.16", "3.7.3"


@pytest.fixture(params=["fake_lab", "real_lab"])
def lab(request: pytest.FixtureRequest) -> Lab:
    return request.getfixturevalue(request.param)


async def agree(lab: Lab, works_as: EtcdMinor, downgrade: EtcdMinor | None = None) -> None:
    """Wait until all members work and store as that version, and report that downgrade."""

    async def all_do() -> None:
        if isinstance(lab, FakeLab):
            lab.cluster.agree()
        assert {await lab.etcd.works_as(url) for url in urls(lab.founders)} == {works_as}
        found = [await lab.etcd.status(url) for url in urls(lab.founders)]
        assert {each.storage for each in found} == {works_as}
        assert {each.downgrade for each in found} == {downgrade}

    await eventually(all_do)


async def refused(lab: Lab, target: EtcdMinor) -> Reason:
    with pytest.raises(EtcdFault) as caught:
        await lab.etcd.enable_downgrade(urls(lab.founders), target)
    return caught.value.reason


async def test_a_downgrade_takes_the_cluster_to_the_former_version_and_ends_by_itself(lab: Lab) -> None:
    await agree(lab, (3, 7))
    assert await refused(lab, (3, 7)) is Reason.BAD_DOWNGRADE
    assert await refused(lab, (3, 5)) is Reason.BAD_DOWNGRADE
    await lab.etcd.cancel_downgrade(urls(lab.founders))  # none is no error
    await lab.etcd.enable_downgrade(urls(lab.founders), (3, 6))
    await lab.etcd.enable_downgrade(urls(lab.founders), (3, 6))
    await agree(lab, (3, 6), downgrade=(3, 6))
    await lab.etcd.enable_downgrade(urls(lab.founders), (3, 6))  # also once it has taken effect
    await lab.restart_as(lab.founders[0], OLD)
    await agree(lab, (3, 6), downgrade=(3, 6))
    for founder in lab.founders[1:]:
        await lab.restart_as(founder, OLD)
    await agree(lab, (3, 6))


async def test_a_cancelled_downgrade_lets_the_cluster_rise_once_no_member_is_older(lab: Lab) -> None:
    await agree(lab, (3, 7))
    await lab.etcd.enable_downgrade(urls(lab.founders), (3, 6))
    await agree(lab, (3, 6), downgrade=(3, 6))
    await lab.restart_as(lab.founders[0], OLD)
    await lab.etcd.cancel_downgrade(urls(lab.founders))
    await agree(lab, (3, 6))
    await lab.restart_as(lab.founders[0], NEW)
    await agree(lab, (3, 7))


async def test_one_older_member_keeps_the_cluster_at_its_version(lab: Lab) -> None:
    await lab.etcd.enable_downgrade(urls(lab.founders), (3, 6))
    await agree(lab, (3, 6), downgrade=(3, 6))
    for founder in lab.founders:
        await lab.restart_as(founder, OLD)
    await agree(lab, (3, 6))
    for founder in lab.founders[:2]:
        await lab.restart_as(founder, NEW)
    await agree(lab, (3, 6))
    versions = {(await lab.etcd.status(url)).version for url in urls(lab.founders)}
    assert versions == {OLD, NEW}
    await lab.restart_as(lab.founders[2], NEW)
    await agree(lab, (3, 7))
