"""Hosts as people have them, one after the other on one machine: where 'site check' finds nothing in the way a plane
comes up, and else the check names the true reason.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support.hosts_lab import LabHost, why_not
from support.hosts_planes import HostsPlanes, hosts_planes

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600), pytest.mark.skipif(bool(why_not()), reason=why_not())]

HOST, SITE, NAME = "rack-a", "rack", "demo"
#: Another one of the subnet of the machine's own.
OTHER = "10.89.1.99"
PRECONDITION = 5
#: Beside what a host is, this takes no more: the image has an apiserver's answer in a few seconds.
CREATE = 180.0

SSHD = "/etc/ssh/sshd_config.d/variation.conf"
SUDOERS = "/etc/sudoers.d/variation"
RELOAD = "systemctl reload ssh"
SLOW_SUDO = "sed -i '1i session optional pam_exec.so /bin/sleep 6' /etc/pam.d/sudo"
SUDO_AS_IT_WAS = "sed -i 1d /etc/pam.d/sudo"
LOCALE = "de_DE.utf8"


@dataclass(frozen=True)
class Variation:
    """What is done to a host, and undone. ``says``: what a check says of it, which refuses unless a plane ``comes_up``;
    ``address``: of the host in its inventory ("": its own); ``twice``: it is there by a second address as well.
    """

    name: str
    done: str = ":"
    undone: str = ":"
    comes_up: bool = False
    says: Sequence[str] = ()
    address: str = ""
    twice: bool = False


def mounted(folder: str, option: str) -> dict[str, str]:
    """A folder of the machine with an option of its mount."""
    return {
        "done": f"mount --bind {folder} {folder} && mount -o remount,bind,{option} {folder}",
        "undone": f"mount -o remount,bind,rw,exec {folder} && umount --lazy {folder}",  # sshd uses it
    }


def sshd(text: str) -> dict[str, str]:
    """Settings of the machine's sshd."""
    return {"done": f"printf '%s\\n' '{text}' > {SSHD} && {RELOAD}", "undone": f"rm {SSHD} && {RELOAD}"}


def sudoers(text: str) -> dict[str, str]:
    """What the user may do instead of all."""
    return {
        "done": f"mv /etc/sudoers.d/deck /root/deck && printf '%s\\n' '{text}' > {SUDOERS}",
        "undone": f"rm {SUDOERS} && mv /root/deck /etc/sudoers.d/deck",
    }


VARIATIONS = (
    Variation("as it is", comes_up=True),
    Variation(
        "its shell prints something",
        done="printf 'echo hello\\n' > /home/deck/.bashrc; printf 'echo welcome\\n' > /etc/ssh/sshrc",
        undone="rm /home/deck/.bashrc /etc/ssh/sshrc",
        comes_up=True,
    ),
    Variation(
        "systemd has a proxy for all services",
        done="mkdir -p /etc/systemd/system.conf.d && printf '[Manager]\\nDefaultEnvironment=HTTPS_PROXY=http://192.0.2.9:3128"
        " http_proxy=http://192.0.2.9:3128\\n' > /etc/systemd/system.conf.d/proxy.conf && systemctl daemon-reexec",
        undone="rm /etc/systemd/system.conf.d/proxy.conf && systemctl daemon-reexec",
        comes_up=True,
        says=("HTTPS_PROXY", "http_proxy", "run without them"),
    ),
    Variation(
        "sudo takes its time",
        done=SLOW_SUDO,
        undone=SUDO_AS_IT_WAS,
        comes_up=True,
        says=("sudo takes ",),
    ),
    Variation(
        "its locale has a decimal comma",
        done=f"cp -r /srv/storage/{LOCALE} /usr/lib/locale; [ $(LC_ALL={LOCALE} /usr/bin/printf %.1f 1) = 1,0 ]"
        f" && printf 'LANG={LOCALE}\\nLC_ALL={LOCALE}\\n' | tee /etc/default/locale > /etc/locale.conf"
        " && systemctl daemon-reexec",
        undone=f"rm -r /etc/default/locale /etc/locale.conf /usr/lib/locale/{LOCALE} && systemctl daemon-reexec",
        comes_up=True,
    ),
    Variation(
        "a port of etcd is bound, and nobody listens there",
        done="systemd-run --quiet --unit=binds --service-type=notify --property=NotifyAccess=all perl -MSocket -e"
        " 'socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(2380, INADDR_ANY)) or die;"
        ' system("systemd-notify", "--ready"); sleep 600\'',
        undone="systemctl stop binds",
        says=("nothing can listen at port 2380", "Address already in use"),
    ),
    Variation("one session for each connection", **sshd("MaxSessions 1"), comes_up=True),
    Variation("nothing can be executed in /var/lib", **mounted("/var/lib", "noexec"), says=("/var/lib", "noexec")),
    Variation("/etc is read-only", **mounted("/etc", "ro"), says=("/etc", "Read-only file system")),
    Variation("/usr is read-only", **mounted("/usr", "ro"), says=("/usr", "Read-only file system")),
    Variation(
        "its login shell lets nobody in",
        done="usermod --shell /usr/sbin/nologin deck",
        undone="usermod --shell /bin/bash deck",
        says=("the login shell of user deck", "This account is currently not available"),
    ),
    Variation(
        "it may run one program",
        **sudoers("deck ALL=(root) NOPASSWD: /usr/bin/true"),
        says=("sudo",),
    ),
    Variation(
        "sudo wants a terminal", **sudoers("Defaults:deck requiretty\ndeck ALL=(ALL) NOPASSWD: ALL"), says=("tty",)
    ),
    Variation("its sshd runs one command", **sshd("ForceCommand /bin/echo go away"), says=("go away",)),
    Variation("it has not the address", address=OTHER, says=(f"{OTHER} is on none of its interfaces", "10.89.1.1")),
    Variation(
        "it is there twice",
        done=f"ip address add {OTHER}/32 dev $(ip -o route get 10.89.1.254 | sed 's/.* dev \\([^ ]*\\).*/\\1/')",
        undone=f"ip address del {OTHER}/32 dev $(ip -o route get 10.89.1.254 | sed 's/.* dev \\([^ ]*\\).*/\\1/')",
        twice=True,
        says=("are the same machine", "fail together"),
    ),
)


@pytest.fixture(scope="module")
def lab() -> Iterator[HostsPlanes]:
    with hosts_planes({LabHost(HOST, SITE, "a"): ("control", "edge", "dns")}) as made:
        if not without_locales():
            argv = ("localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", str(made.hosts.storage / LOCALE))
            subprocess.run(argv, check=True, capture_output=True)
        yield made


def without_locales() -> str:
    """Why no locale can be made here; "" if one can be."""
    return "" if Path("/usr/share/i18n/locales/de_DE").exists() else "locales are made of Debian's package locales"


@pytest.mark.parametrize("variation", [pytest.param(each, id=each.name.replace(" ", "-")) for each in VARIATIONS])
def test_a_plane_comes_up_or_the_check_names_what_is_in_the_way(lab: HostsPlanes, variation: Variation) -> None:
    if LOCALE in variation.done and without_locales():
        pytest.skip(without_locales())
    lab.hosts.sh(HOST, variation.done)
    try:
        file = lab.planes.file(inventory(lab, variation))
        checked = lab.planes.start("site", "check", "--inventory", str(file)).end(120.0)
        output = " ".join(f"{checked.out} {checked.err}".split())
        print(f"{variation.name}: {checked.code}: {output}", flush=True)
        assert checked.code == (0 if variation.comes_up else PRECONDITION), output
        for words in variation.says:
            assert words in output
        if variation.comes_up:
            comes_up(lab, file, "create", NAME, "--site", SITE, "--replicas", "1")
    finally:
        lab.hosts.sh(HOST, variation.undone)


def test_a_plane_is_applied_where_sudo_takes_its_time(lab: HostsPlanes) -> None:
    lab.hosts.sh(HOST, SLOW_SUDO)
    try:
        spec = {"placement": {"site": SITE}, "replicas": 1}
        manifest = {"apiVersion": "quarterdeck.dev/v1alpha1", "kind": "ControlPlane", "metadata": {"name": NAME}}
        plane = lab.planes.file(yaml.safe_dump({**manifest, "spec": spec}))
        comes_up(lab, lab.planes.file(lab.inventory(HOST)), "apply", "-f", str(plane))
    finally:
        lab.hosts.sh(HOST, SUDO_AS_IT_WAS)


def test_hosts_are_known_by_a_file_that_the_configuration_of_ssh_includes(lab: HostsPlanes, tmp_path: Path) -> None:
    known = tmp_path / ".ssh/config.d"
    known.mkdir(parents=True)
    (known / "rack.conf").symlink_to(lab.hosts.access.config)
    (known.parent / "config").write_text(f"Include {known}/*.conf\n")
    file = lab.planes.file(lab.inventory(HOST))
    lab.planes.run("site", "check", "--inventory", str(file), HOME=str(tmp_path))
    comes_up(lab, file, "create", NAME, "--site", SITE, "--replicas", "1", HOME=str(tmp_path))


def comes_up(lab: HostsPlanes, file: Path, *argv: str, **environment: str) -> None:
    """A plane is there and well after this command, at a site of that inventory. Both are removed again."""
    planes = lab.planes
    planes.run("site", "add", SITE, "--driver", "ssh", "--inventory", str(file), deadline=CREATE, **environment)
    try:
        done = planes.run(*argv, deadline=CREATE, **environment)
        print(f"{argv[0]}: {done.seconds:.0f} s", flush=True)
        planes.run("status", NAME, **environment)
    finally:
        deleted = planes.start("delete", NAME, "--yes", **environment).end(CREATE)
        planes.run("site", "remove", SITE, "--yes", deadline=CREATE, **environment)
    assert deleted.code == 0, str(deleted)


def inventory(lab: HostsPlanes, variation: Variation) -> str:
    """An inventory of the one host, or of the host by two addresses."""
    host = {
        "name": "one",
        "address": variation.address or lab.hosts.address(HOST),
        "zone": "a",
        "roles": ["control", "edge", "dns"],
        "host": HOST,
        "user": "deck",
    }
    again = {"name": "two", "address": OTHER, "zone": "b", "roles": ["control"], "host": OTHER, "user": "root"}
    if variation.twice:
        known = lab.hosts.access.known_hosts
        known.write_text(f"{known.read_text()}{known.read_text().replace(f'{lab.hosts.address(HOST)},{HOST}', OTHER)}")
    return yaml.safe_dump({"hosts": [host, again] if variation.twice else [host]})
