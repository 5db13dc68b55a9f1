"""Which machine a host is, by what it says of itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.golden import Golden

from quarterdeck.errors import Corrupt
from quarterdeck.model.findings import Verdict
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh.hosts import Login, SshHost
from quarterdeck.sites.ssh.identity import Identified, Identity, judge_address, judge_machines, read_identity

OUTPUT = """\
rights\tnone
machine-id\t0123456789abcdef0123456789abcdef
boot-id\t6a9f0c1e-0000-4000-8000-000000000001
host-key\tAAAAC3one
host-key\tAAAAC3two
address\t127.0.0.1
address\t192.0.2.1
address\t20010db8000000000000000000000001
"""
ONE = Identity(machine_id="m1", boot_id="b1", host_keys=frozenset({"k1"}), addresses=frozenset({"192.0.2.1"}))
TWO = Identity(machine_id="m2", boot_id="b2", host_keys=frozenset({"k2"}), addresses=frozenset({"192.0.2.2"}))


def host(number: int, zone: str = "a") -> SshHost:
    address = f"192.0.2.{number}"
    return SshHost(
        name=f"host{number}", address=address, zone=zone, roles=(MachineRole.CONTROL,), login=Login(host=address)
    )


def test_an_identity_is_read_with_the_key_that_the_connection_showed(golden: Golden) -> None:
    assert read_identity("x", OUTPUT, "AAAAC3shown") == Identity(
        machine_id="0123456789abcdef0123456789abcdef",
        boot_id="6a9f0c1e-0000-4000-8000-000000000001",
        host_keys=frozenset({"AAAAC3one", "AAAAC3two", "AAAAC3shown"}),
        addresses=frozenset({"127.0.0.1", "192.0.2.1", "2001:db8::1"}),
    )
    assert read_identity("x", "") == Identity()
    with golden.raises(Corrupt):
        read_identity("x", "address\tnoon\n")


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        (TWO, None),
        # one machine with two addresses, by whatever it is recognized
        (replace(ONE, addresses=frozenset({"192.0.2.1", "192.0.2.2"})), Verdict.REFUSE),
        (replace(ONE, addresses=frozenset()), Verdict.REFUSE),
        (replace(ONE, boot_id=""), Verdict.REFUSE),
        # two sshds of one machine, each with its own key
        (replace(ONE, host_keys=frozenset({"k9"}), addresses=frozenset({"192.0.2.1", "192.0.2.2"})), Verdict.REFUSE),
        # containers in the network of their host, each with its own id
        (replace(TWO, boot_id="b1", addresses=frozenset({"192.0.2.1"})), Verdict.REFUSE),
        # copies: each has booted by itself, or has a network by itself
        (replace(TWO, machine_id="m1"), Verdict.WARN),
        (replace(TWO, machine_id="m1", boot_id="b1"), Verdict.WARN),
        (replace(TWO, machine_id="m1", host_keys=ONE.host_keys), Verdict.WARN),
        (replace(TWO, host_keys=ONE.host_keys), Verdict.WARN),
        # containers of one host are machines of their own, and who says nothing is not taken for another one
        (replace(TWO, boot_id="b1"), None),
        (Identity(), None),
    ],
)
def test_two_hosts_that_are_one_machine_are_refused_and_copies_are_named(
    second: Identity, verdict: Verdict | None, golden: Golden
) -> None:
    one, other = Identified(host=host(1), identity=ONE), Identified(host=host(2, "b"), identity=second)
    for found in ([*judge_machines((one, other))], [*judge_machines((other, one))]):
        assert [each.finding.verdict for each in found] == ([verdict] if verdict else [])
        for each in found:
            assert each.about == {"host1", "host2"}
            golden(each.finding.seen)
            assert each.finding.next_step


def test_a_host_that_is_a_machine_of_another_site_is_refused_at_this_one(golden: Golden) -> None:
    again = replace(ONE, addresses=frozenset())
    other = Identified(host=host(2), identity=again, site="west")
    (found,) = judge_machines((Identified(host=host(1), identity=ONE),), (other,))
    assert (found.host, found.finding.verdict) == ("host1", Verdict.REFUSE)
    golden(found.finding.seen)


def test_an_address_that_the_host_does_not_have_is_named_with_those_that_it_has(golden: Golden) -> None:
    has = replace(ONE, addresses=frozenset({"127.0.0.1", "10.0.0.7", "fe80::1", "2001:db8::1"}))
    (found,) = judge_address(host(1), has)
    assert found.finding.verdict is Verdict.REFUSE
    golden(found.finding.seen)
    golden(found.finding.next_step)
    assert [*judge_address(host(1), ONE)] == []
    assert [*judge_address(host(1), Identity())] == [], "a host that lists none is not known to lack it"
    (found,) = judge_address(host(1), replace(ONE, addresses=frozenset({"127.0.0.1"})))
    golden(found.finding.next_step)
