"""Machines that can join a plane, on the networks that it is on."""

from __future__ import annotations

import os
import secrets
import time
from base64 import b64decode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from quarterdeck.sites.netns.lab import Lab
from support.hosts_lab.guard import dismissed, group_of, guarded
from support.hosts_lab.image import image
from support.hosts_lab.machine import SESSIONS, Machine
from support.hosts_lab.network import Network, Place, done
from support.nodes_lab.images import archive
from support.nodes_lab.programs import Programs

#: The number of their site in a lab's networks: above all that others are given.
_SITE = 200
_BOOTING, _JOINING = 30.0, 120.0
_SETUP = Path(__file__).with_name("setup.sh")
#: Containers need what nspawn takes from its own: to mount, to make devices, to use keyrings.
_RIGHTS = ("--capability=all", "--system-call-filter=@keyring bpf", "--bind=/dev/kmsg")


class NodeMachines:
    """Machines, by name, that run while the block does. ``networks``: the folder of the lab of networks that they are
    on; ``resolvers``: who knows the names of planes in ``zone`` (host:port).
    """

    def __init__(
        self, networks: Path, names: Sequence[str], programs: Programs, *, zone: str, resolvers: Sequence[str]
    ) -> None:
        self.names = tuple(names)
        self._network, self._programs = Network(networks), programs
        self._zone, self._resolvers = zone, tuple(resolvers)
        self._machines: dict[str, Machine] = {}

    def __enter__(self) -> Self:
        root = image()
        self._folder, self._guard = guarded(secrets.token_hex(4))
        try:
            group_of(self._folder).make()
            binds = tuple(f"--bind-ro={path}:/opt/{name}" for name, path in self._programs.folders.items())
            for number, name in enumerate(self.names, 1):
                self._machines[name] = Machine(
                    Place("nodes", "a", name, (_SITE, number)),
                    self._folder / "machines" / name,
                    group_of(self._folder).below(name),
                    root,
                    "",
                    unified=False,
                    arguments=(*_RIGHTS, *binds),
                )
            group_of(self._folder).weigh(SESSIONS * len(self.names))
            with ThreadPoolExecutor() as pool:
                list(pool.map(self._boot, self.names))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code = dismissed(self._guard)
        for machine in self._machines.values():
            machine.power_off()
            done(Lab(self._network.folder).remove_machine(machine.place.bridge, machine.name))
        assert code == 0, f"the guard of the machines ended with {code}: see {self._folder}"

    def join(self, name: str, command: str) -> str:
        """Have a machine run what ``node token --print-join-command`` said; what kubeadm says."""
        assert command.startswith("kubeadm join ")
        # What runs here has cgroups of version 1, which kubeadm has everybody ask for by name.
        return self.sh(name, f"exec {command} --ignore-preflight-errors=SystemVerification 2>&1", timeout=_JOINING)

    def bootstrap(self, name: str, kubeconfig: str, kubelet: str) -> None:
        """Have a machine's kubelet join by itself: with what ``node token --kubeconfig`` wrote, and a configuration."""
        cluster = yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]
        files = {
            "/etc/kubernetes/bootstrap-kubelet.conf": kubeconfig.encode(),
            "/etc/kubernetes/pki/ca.crt": b64decode(cluster["certificate-authority-data"]),
            "/var/lib/kubelet/config.yaml": kubelet.encode(),
        }
        for path, content in files.items():
            self.sh(name, 'mkdir -p "$(dirname "$1")"; umask 077; cat > "$1"', path, stdin=content)
        self.sh(name, "systemctl restart kubelet")

    def sh(self, name: str, script: str, *arguments: str, stdin: bytes = b"", timeout: float = 60.0) -> str:
        """What a script says that must succeed as root on a machine."""
        done = self._machines[name].run(("/bin/sh", "-euc", script, "sh", *arguments), stdin, timeout)
        output = (done.stdout + done.stderr).decode(errors="replace")
        assert done.returncode == 0, f"{name}: a script ended with {done.returncode}: {output[-4000:]}"
        return done.stdout.decode()

    def logs(self, name: str, unit: str, lines: int = 40) -> str:
        """The last that a unit of a machine wrote."""
        return self.sh(name, f"journalctl --unit={unit} --no-pager --lines={lines}")

    def _boot(self, name: str) -> None:
        machine = self._machines[name]
        machine.make_disk()
        self._network.plug(machine.place)
        network = self._network.descriptor(machine.place)
        try:
            machine.power_on(network)
        finally:
            os.close(network)
        machine.wait_until("the end of its boot", lambda: _is_up(machine), time.monotonic() + _BOOTING)
        pods = f"10.92.{machine.place.numbers[1]}.0/24"
        arguments = (machine.place.address, pods, self._zone, *self._resolvers)
        picture = archive(self._programs.work / "work")
        # The script is no file on the machine: it is what its administrator types.
        self.sh(name, _SETUP.read_text(), *arguments, stdin=picture)


def _is_up(machine: Machine) -> bool:
    """Whether its systemd says that all has been started that is to be, as well as that went."""
    if machine.leader is None:
        return False
    state = machine.run(("systemctl", "is-system-running")).stdout.strip()
    return state in (b"running", b"degraded")
