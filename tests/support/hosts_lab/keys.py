"""How one logs in at the machines of a lab: one key for people, one for each machine, all of them known."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

USERS = ("root", "deck", "plain")
"""Who can log in: root; one who may become root by sudo; one who may not."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An ed25519 key for ssh, as files have it."""

    private: bytes
    public: str

    @classmethod
    def new(cls) -> KeyPair:
        """A new one."""
        key = Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        return cls(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), public.decode())

    def save(self, path: Path) -> Path:
        """Write both halves, the public one with .pub behind its name; returns the path."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self.private)
        path.with_name(f"{path.name}.pub").write_text(f"{self.public}\n")
        return path


@dataclass(frozen=True, slots=True)
class Access:
    """What a client of the lab has, in ``folder``: ``key``, ``known_hosts`` and ``ssh_config``."""

    folder: Path
    people: KeyPair

    @classmethod
    def made(cls, folder: Path) -> Access:
        """With a new key."""
        folder.mkdir()
        people = KeyPair.new()
        people.save(folder / "key")
        access = cls(folder, people)
        access.tell(())
        return access

    @property
    def key(self) -> Path:
        """The private key of all USERS."""
        return self.folder / "key"

    @property
    def known_hosts(self) -> Path:
        """Whose key is whose, by address and by name."""
        return self.folder / "known_hosts"

    @property
    def config(self) -> Path:
        """For ``ssh -F``: a host by the name of each machine, at which one is root and keys are checked."""
        return self.folder / "ssh_config"

    def tell(self, machines: tuple[tuple[str, str, str], ...]) -> None:
        """Write down the machines: name, address and public key of each."""
        self.known_hosts.write_text("".join(f"{address},{name} {key}\n" for name, address, key in machines))
        hosts = "".join(f"Host {name}\n  HostName {address}\n\n" for name, address, _key in machines)
        self.config.write_text(
            f"{hosts}Host *\n  User root\n  IdentityFile {self.key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  StrictHostKeyChecking yes\n  BatchMode yes\n"
        )
