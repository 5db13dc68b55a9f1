"""The machines that other tests use are real, and can be hurt as real ones are; nothing is left of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.conditions import until
from support.hosts_lab import HostsLab, LabHost, why_not
from support.hosts_lab.guard import group_of, guarded
from support.leftovers import nothing_left, processes_of

from quarterdeck.sites.netns.layout import OUTSIDE, Cut

pytestmark = [
    pytest.mark.soak,  # they test the lab; what uses it is in full
    pytest.mark.hosts,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]
A1, A2, B1, W1 = "east-a1", "east-a2", "east-b1", "west-a1"
HOSTS = (LabHost(A1, "east", "a"), LabHost(A2, "east", "a"), LabHost(B1, "east", "b"), LabHost(W1, "west", "a"))
HOLDER = """
import sys, time
from support.conditions import until
from support.hosts_lab import HostsLab, LabHost
with HostsLab([LabHost("east-a1", "east", "a")]) as lab:
    print(lab.folder, lab.address("east-a1"), lab._guard.pid, flush=True)
    time.sleep(1000)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[HostsLab]:
    with HostsLab(HOSTS) as made:
        yield made


def ssh(lab: HostsLab, user: str, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = (*lab.enter_argv(), "ssh", "-F", str(lab.access.config), "-l", user, name, *words)
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


def greeting(lab: HostsLab, name: str, deadline: float = 2.0) -> bytes:
    """What a client hears from sshd; nothing where it is silent."""
    try:
        with lab.connect(name, 22, deadline) as connection:
            return connection.recv(4)
    except TimeoutError:
        return b""


def hears(lab: HostsLab, name: str) -> None:
    """Have a machine write down what comes to it by UDP."""
    script = "rm -f /run/heard; systemd-run --quiet --unit=hears-$1 socat -u UDP-RECV:9999 OPEN:/run/heard,creat,append"
    lab.sh(name, f"systemctl stop 'hears-*'; {script}", str(time.monotonic_ns()))
    until(lambda: "9999" in lab.sh(name, "ss -Hlun"), "it listens")


def tells(lab: HostsLab, source: str, target: str, word: str) -> None:
    lab.sh(source, 'echo "$1" | socat -u - "UDP-SENDTO:$2:9999"', word, lab.address(target))


def heard(lab: HostsLab, name: str) -> list[str]:
    return lab.sh(name, "cat /run/heard 2>/dev/null || true").split()


def seconds_to_connect(lab: HostsLab, source: str, target: str) -> float:
    """The least of some tries: the rest tells how busy this host is."""
    script = 'a=$EPOCHREALTIME; exec 3<>"/dev/tcp/$0/22"; b=$EPOCHREALTIME; echo $((${b/.} - ${a/.}))'
    argv = ("/bin/bash", "-c", script, lab.address(target))
    return min(int(lab.run(source, argv).stdout) for _ in range(5)) / 1e6


def test_a_machine_is_a_debian_of_its_own_with_systemd_and_no_python(lab: HostsLab) -> None:
    ids = {lab.sh(name, "cat /etc/machine-id; hostname; cat /etc/ssh/ssh_host_ed25519_key.pub") for name in lab.names}
    assert len(ids) == len(HOSTS)
    assert [lab.sh(name, "systemctl is-system-running --wait").strip() for name in lab.names] == ["running"] * len(
        HOSTS
    )
    assert lab.run(A1, ("python3", "--version")).returncode == 127
    assert lab.sh(A1, "perl -MIO::Socket::INET -e 'print 1'") == "1"
    lab.sh(A1, "for each in sudo nft curl zstd keepalived socat; do command -v $each; done")
    assert lab.sh(A1, "systemctl is-enabled keepalived || true") == "disabled\n"


def test_hands_in_a_machine_may_do_no_more_than_its_own_root(lab: HostsLab) -> None:
    same = "grep CapBnd /proc/self/status /proc/1/status | cut -f2 | uniq | wc -l"
    assert lab.sh(A1, same) == "1\n"
    assert lab.run(A1, ("date", "-s", "@0")).returncode == 1, "the clock is the host's"


def test_its_users_log_in_with_the_one_key_and_its_own_key_is_checked(lab: HostsLab) -> None:
    names = [ssh(lab, user, A1, "id", "-un").stdout for user in ("root", "deck", "plain")]
    assert names == ["root\n", "deck\n", "plain\n"]
    root = [ssh(lab, user, A1, "sudo", "-n", "id", "-un").stdout for user in ("deck", "plain")]
    assert root == ["root\n", ""]
    lab.set_sudo(A1, allowed=False)
    assert ssh(lab, "deck", A1, "sudo", "-n", "true").returncode == 1
    lab.set_sudo(A1, allowed=True)
    assert ssh(lab, "deck", A1, "sudo", "-n", "true").returncode == 0


def test_another_key_of_a_machine_is_not_believed_and_one_of_a_new_machine_is(lab: HostsLab) -> None:
    lab.sh(A2, "echo old > /etc/mark; echo old > /var/lib/mark")
    lab.change_host_key(A2)
    assert "Host key verification failed" in ssh(lab, "root", A2, "true").stderr
    lab.replace(A2)
    seen = ssh(lab, "root", A2, "ls /etc/mark /var/lib/mark")
    assert (seen.returncode, seen.stdout) == (2, ""), "it has nothing of the one before"


async def test_a_test_itself_is_a_client_as_long_as_it_wants(lab: HostsLab) -> None:
    mine = Path("/proc/thread-self/ns/net")
    own = mine.readlink()
    with lab.inside():
        reader, writer = await asyncio.open_connection(lab.address(A1), 22)
        assert await asyncio.to_thread(mine.readlink) != own
    assert mine.readlink() == own
    assert await reader.readexactly(4) == b"SSH-"
    writer.close()
    await writer.wait_closed()


def test_a_machine_without_power_is_silent_and_comes_back_with_its_disk(lab: HostsLab) -> None:
    lab.sh(B1, "echo 1 > /etc/mark; echo 2 > /var/lib/mark; echo 3 > /run/mark")
    with lab.connect(B1, 22, 0.3) as connection:
        while not connection.recv(100).endswith(b"\n"):
            pass
        lab.power_off(B1)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    assert greeting(lab, B1, 0.2) == b""
    lab.power_on(B1)
    assert lab.sh(B1, "cat /etc/mark /var/lib/mark; ls /run/mark || true").split() == ["1", "2"]
    assert greeting(lab, B1) == b"SSH-"


def test_a_machine_boots_again_when_it_says_so_itself(lab: HostsLab) -> None:
    lab.sh(B1, "touch /run/mark")
    lab.reboot(B1)
    assert lab.run(B1, ("ls", "/run/mark")).returncode == 2


def test_what_is_frozen_stands_still_while_its_kernel_answers(lab: HostsLab) -> None:
    lab.freeze(A1)
    with lab.connect(A1, 22, 0.3) as connection:
        with pytest.raises(TimeoutError):
            connection.recv(1)
        lab.thaw(A1)
        connection.settimeout(10.0)
        assert connection.recv(4) == b"SSH-"


def test_a_machine_that_is_cut_off_hears_nobody_until_it_is_mended(lab: HostsLab) -> None:
    lab.cut(A1)
    assert greeting(lab, A1, 0.3) == b""
    assert lab.sh(A1, "hostname") == f"{A1}\n"
    lab.mend(A1)
    assert greeting(lab, A1, 10.0) == b"SSH-"


@pytest.mark.parametrize("other", [A2, B1], ids=["in its zone", "in another one"])
def test_two_machines_are_cut_from_each_other_in_one_way_or_both(lab: HostsLab, other: str) -> None:
    for name in (A1, other):
        hears(lab, name)
    for number, (cut, lost) in enumerate(((Cut.A_TO_B, {other}), (Cut.BOTH, {A1, other}), (Cut.NONE, set()))):
        lab.cut_between(A1, other, cut)
        tells(lab, A1, other, f"cut-{number}")
        tells(lab, other, A1, f"cut-{number}")
        lab.cut_between(A1, other, Cut.NONE)
        tells(lab, A1, other, f"end-{number}")
        tells(lab, other, A1, f"end-{number}")
        for name in (A1, other):
            until(lambda name=name, word=f"end-{number}": word in heard(lab, name), f"{name} hears")
            assert (f"cut-{number}" in heard(lab, name)) == (name not in lost)


def test_sites_are_as_far_apart_as_wished_also_after_a_loss_of_power(lab: HostsLab) -> None:
    lab.delay("east", "west", 80.0)
    lab.delay(OUTSIDE, "west", 40.0)
    assert 0.08 <= seconds_to_connect(lab, B1, W1) < 0.16
    assert seconds_to_connect(lab, A1, B1) < 0.04
    lab.power_off(W1)
    lab.power_on(W1)
    assert 0.08 <= seconds_to_connect(lab, B1, W1) < 0.16
    since = time.monotonic()
    assert greeting(lab, W1) == b"SSH-"
    assert time.monotonic() - since >= 0.08
    for pair in (("east", "west"), (OUTSIDE, "west")):
        lab.delay(*pair, 0.0)
    assert seconds_to_connect(lab, B1, W1) < 0.04
    lab.cut_sites("east", "west")
    assert lab.run(B1, ("timeout", "0.3", "bash", "-c", f"exec 3<>/dev/tcp/{lab.address(W1)}/22")).returncode == 124
    lab.cut_sites("east", "west", Cut.NONE)


def test_a_folder_is_a_small_disk_for_a_while(lab: HostsLab) -> None:
    lab.sh(A1, "mkdir -p /var/lib/deck/below && chmod 0700 /var/lib/deck && echo 1 > /var/lib/deck/below/file")
    lab.limit_disk(A1, "/var/lib/deck", 2**20)
    assert lab.sh(A1, "cat /var/lib/deck/below/file; stat -c %a /var/lib/deck").split() == ["1", "700"]
    full = lab.run(A1, ("dd", "if=/dev/zero", "of=/var/lib/deck/full", "bs=1M", "count=2"))
    assert b"No space left on device" in full.stderr
    lab.lift_limit(A1, "/var/lib/deck")
    assert lab.sh(A1, "ls /var/lib/deck") == "below\n"


def test_sessions_of_ssh_are_cut_and_new_ones_let_in(lab: HostsLab) -> None:
    argv = (*lab.enter_argv(), "ssh", "-F", str(lab.access.config), A1, "echo in; exec sleep 1000")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"in\n"
        lab.kill_ssh(A1)
        assert session.wait(10) == 255
    assert ssh(lab, "root", A1, "echo in").stdout == "in\n"


def test_systemd_in_a_machine_freezes_units_and_shuts_them_in(lab: HostsLab) -> None:
    shut = "ProtectSystem=strict PrivateTmp=yes PrivateDevices=yes ProtectProc=invisible NoNewPrivileges=yes User=plain"
    options = " ".join(f"-p {each}" for each in (*shut.split(), "CPUWeight=20", "MemoryMax=500M", "TasksMax=50"))
    lab.sh(A1, f"systemd-run --quiet --unit=held {options} sh -c 'while echo x; do sleep 0.01; done'")
    lab.sh(A1, "systemctl freeze held")
    assert lab.sh(A1, "systemctl show -P FreezerState held") == "frozen\n"
    lab.sh(A1, "systemctl thaw held; systemctl stop held")
    refused = lab.run(
        A1, ("systemd-run", "--quiet", "--wait", "--pipe", "-p", "ProtectSystem=strict", "touch", "/etc/x")
    )
    assert b"Read-only file system" in refused.stderr


def test_with_both_versions_of_cgroups_limits_are_kept() -> None:
    with HostsLab([LabHost(A1, "east", "a")], unified=False) as lab:
        limited = ("systemd-run", "--quiet", "--wait", "--collect", "-p", "MemoryMax=50M")
        eats = lab.run(A1, (*limited, "perl", "-e", '"a" x 200_000_000'))
        assert eats.returncode != 0
        assert lab.sh(A1, "systemctl is-system-running --wait") == "running\n"


@pytest.mark.parametrize("guard_too", [False, True], ids=["alone", "with its guard"])
def test_nothing_is_left_when_who_holds_a_lab_is_killed(lab: HostsLab, guard_too: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, start_new_session=True) as holder:
        assert holder.stdout is not None
        folder, address, guard = holder.stdout.readline().decode().split()
        assert address == lab.address(A1), "two labs are not in each other's way"
        group = group_of(Path(folder))
        inside = [psutil.Process(pid) for pid in group.pids()]
        assert len(inside) > 5
        if guard_too:
            os.kill(int(guard), signal.SIGKILL)
        holder.kill()
    if guard_too:  # then the next one that comes looks after it
        until(lambda: not psutil.pid_exists(int(guard)), "the guard has ended")
        _folder, next_guard = guarded("the-next")
        assert next_guard.stdin is not None
        assert next_guard.stdout is not None
        with next_guard.stdin, next_guard.stdout:
            pass
        assert next_guard.wait(30) == 0
    until(lambda: not Path(folder).exists(), "the folder is gone")
    nothing_left(Path(folder))
    assert not processes_of(Path(folder))
    assert not [each for each in group.folders if each.exists()]
    assert not [each for each in inside if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert greeting(lab, A1) == b"SSH-"


def test_the_hosts_own_network_and_mounts_are_as_before(lab: HostsLab) -> None:
    assert lab.folder.exists()
    assert str(lab.folder) not in Path("/proc/self/mounts").read_text()
    shown = subprocess.run(("ip", "-o", "link"), capture_output=True, text=True, check=True).stdout
    assert not [each for each in ("br1", "v1-1", "wan0") if f"{each}@" in shown or f"{each}:" in shown]
