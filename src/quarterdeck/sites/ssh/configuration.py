"""The configuration of the ssh client for one host, as ``ssh`` itself evaluates it.

``ssh -G HOST`` prints it after all Host and Match blocks, Include and CanonicalizeHostname (ssh(1), ssh_config(5)).
Where no ssh client is installed, asyncssh reads the same files, without what it does not support.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.encryption import get_encryption_algs
from asyncssh.kex import get_kex_algs
from asyncssh.mac import get_mac_algs
from asyncssh.public_key import get_certificate_algs, get_public_key_algs

from quarterdeck.errors import PreconditionFailed, TimedOut
from quarterdeck.runner import run
from quarterdeck.sites.ssh.hosts import Login

_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
_USER_KNOWN = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_SYSTEM_KNOWN = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_KEYS = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")
#: Seconds for ``ssh -G``, which may run commands of ``Match exec`` and look up names.
_READING = 15.0
_CERTIFICATE = "-cert-v01@openssh.com"
_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
#: The output of ``ssh -G`` without a configuration, by the program and its modification time (nanoseconds).
_DEFAULTS: dict[tuple[str, int], Mapping[str, list[str]]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfiguration:
    """How the ssh client connects to a host."""

    host: str
    identities: tuple[Path, ...]
    known_hosts: tuple[Path, ...]
    #: The hosts of ProxyJump, the first one first.
    jumps: tuple[Login, ...]
    #: Further arguments of ``asyncssh.connect``.
    options: Mapping[str, Any]
    #: KnownHostsCommand, which quarterdeck does not run; "": none is set.
    known_hosts_command: str = ""


async def client_configuration(login: Login) -> ClientConfiguration:
    """The configuration for a host. Raises PreconditionFailed if ssh cannot read its own."""
    program = shutil.which("ssh")
    if program is None or _home_of_user() is None:  # ssh does nothing for users without an entry
        return _without_ssh(login)
    found = await _evaluated(program, login)
    return _configuration(login, found, _algorithms(found, await _defaults(program, login)))


async def _defaults(program: str, login: Login) -> Mapping[str, list[str]]:
    """ssh's defaults without any configuration. They depend on the program alone, which runs once for them."""
    installed = program, Path(program).stat().st_mtime_ns
    if installed not in _DEFAULTS:
        _DEFAULTS[installed] = await _printed(login, [program, "-G", "-F", "/dev/null", "--", login.host])
    return _DEFAULTS[installed]


async def _evaluated(program: str, login: Login) -> Mapping[str, list[str]]:
    argv, config = [program, "-G"], ""
    if (home := os.environ.get("HOME", "")) and home != _home_of_user():
        # ssh takes the home from the password database: these are the files of HOME, in the order of ssh
        argv += ["-F", "/dev/stdin"]
        known = " ".join(f"{home}/{each[2:]}" for each in _USER_KNOWN)
        config = f"Include {home}/.ssh/config\nInclude {_FILES[1]}\nHost *\nUserKnownHostsFile {known}\n"
    if login.user:
        argv += ["-l", login.user]
    if login.port is not None:
        argv += ["-p", str(login.port)]
    return await _printed(login, [*argv, "--", login.host], config)


async def _printed(login: Login, argv: Sequence[str], config: str = "") -> Mapping[str, list[str]]:
    """The output of ``ssh -G``, by keyword in lower case. Raises PreconditionFailed."""
    doing = "reading the configuration of ssh"
    try:
        ended = await run(argv, doing=doing, deadline=_READING, given=config.encode())
    except TimedOut as error:
        raise _unreadable(login, error.seen) from None
    if ended.code != 0:
        raise _unreadable(login, "; ".join(ended.errors.strip().splitlines()))
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in ended.output.splitlines():
        key, _, value = line.partition(" ")
        found[key.lower()].append(value)
    return found


def _home_of_user() -> str | None:
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return None


def _unreadable(login: Login, seen: str) -> PreconditionFailed:
    return PreconditionFailed(
        "reading the configuration of ssh", seen, f"correct it: 'ssh -G {login.host}' must succeed"
    )


def _algorithms(found: Mapping[str, list[str]], defaults: Mapping[str, list[str]]) -> Mapping[str, list[str]]:
    """The configured lists of algorithms, as arguments of ``asyncssh.connect``.

    ``ssh -G`` always prints a list. One that equals ssh's default is left to asyncssh, which supports other algorithms
    and prefers those of the known host keys. asyncssh raises ValueError for an algorithm that it does not support, and
    for an empty list: the former are left out, and where none is left, its default applies.
    """
    keys = [*get_public_key_algs(), *get_certificate_algs()]
    supported: Mapping[str, tuple[str, Iterable[bytes]]] = {
        "kexalgorithms": ("kex_algs", get_kex_algs()),
        "ciphers": ("encryption_algs", get_encryption_algs()),
        "macs": ("mac_algs", get_mac_algs()),
        "hostkeyalgorithms": ("server_host_key_algs", keys),
        "pubkeyacceptedalgorithms": ("signature_algs", get_public_key_algs()),
    }
    lists: dict[str, list[str]] = {}
    for keyword, (option, known) in supported.items():
        if found.get(keyword) == defaults.get(keyword):
            continue
        names = [name for value in found.get(keyword, ()) for name in value.split(",")]
        if option == "signature_algs":  # asyncssh names the signature algorithm, also for a certificate
            names = list(dict.fromkeys(name.removesuffix(_CERTIFICATE) for name in names))
        if usable := [name for name in names if name.encode() in known]:
            lists[option] = usable
    return lists


def known_algorithms_first(
    algorithms: Sequence[str], known: asyncssh.SSHKnownHosts, host: str, port: int
) -> Sequence[str]:
    """HostKeyAlgorithms with those of the known keys of a host first: an sshd presents one of its keys, by the client's
    order, and another one than the known one would not be verified (``order_hostkeyalgs`` of OpenSSH's sshconnect2.c).
    """
    keys, authorities, *_ = known.match(host, "", None if port == 22 else port)
    signatures = {name.decode() for key in keys for name in key.sig_algorithms}
    return sorted(
        algorithms, key=lambda each: each not in signatures and not (authorities and each.endswith(_CERTIFICATE))
    )


def _configuration(
    login: Login, found: Mapping[str, list[str]], algorithms: Mapping[str, list[str]]
) -> ClientConfiguration:
    def value(key: str) -> str:
        return next(iter(found.get(key, ())), "")

    host, port, user = value("hostname") or login.host, int(value("port") or 22), value("user")
    files = [login.identity] if login.identity else found.get("identityfile", [])
    identities = tuple(_expanded(each) for each in files if each.lower() != "none")
    options: dict[str, Any] = {"config": None, "port": port, "username": user, **algorithms}
    if alias := value("hostkeyalias"):
        options["host_key_alias"] = alias
    if (family := _FAMILIES.get(value("addressfamily"))) is not None:
        options["family"] = family
    if (address := value("bindaddress")) and address != "none":
        options["local_addr"] = (address, 0)
    if (agent := value("identityagent")) and agent != "SSH_AUTH_SOCK":
        options["agent_path"] = None if agent == "none" else str(_expanded(agent))
    if certificates := [str(each) for each in map(_expanded, found.get("certificatefile", ())) if each.is_file()]:
        options["client_certs"] = certificates
    if value("identitiesonly") == "yes":
        options["agent_identities"] = _public(identities)
        if not options["agent_identities"]:
            options["agent_path"] = None
    if (command := value("proxycommand")) and command != "none":
        tokens = {"%h": host, "%p": str(port), "%r": user, "%n": login.host, "%%": "%"}
        options["proxy_command"] = ["/bin/sh", "-c", "exec " + _filled(command, tokens)]
    known_hosts_command = value("knownhostscommand")
    known = [*value("userknownhostsfile").split(), *value("globalknownhostsfile").split()]
    jump = value("proxyjump")
    return ClientConfiguration(
        host=host,
        identities=identities,
        known_hosts=tuple(map(_expanded, known)),
        jumps=tuple(map(_jump, jump.split(","))) if jump and jump != "none" else (),
        options=options,
        known_hosts_command="" if known_hosts_command == "none" else known_hosts_command,
    )


def _without_ssh(login: Login) -> ClientConfiguration:
    files = [each for each in map(_expanded, _FILES) if each.is_file()]
    options: dict[str, Any] = {
        "config": [str(each) for each in files],
        "port": login.port or (),
        "username": login.user or (),
    }
    return ClientConfiguration(
        host=login.host,
        identities=(_expanded(login.identity),) if login.identity else (),
        known_hosts=tuple(map(_expanded, (*_USER_KNOWN, *_SYSTEM_KNOWN))),
        jumps=(),
        options=options,
    )


def default_identities() -> tuple[Path, ...]:
    """The keys that ssh tries if its configuration names none."""
    return tuple(_expanded(f"~/.ssh/{name}") for name in _KEYS)


def known_hosts_of(files: Sequence[Path]) -> asyncssh.SSHKnownHosts:
    """The host keys of several files. Lines that cannot be read are skipped, as by ssh. May block."""
    known = asyncssh.import_known_hosts("")
    for file in files:
        try:
            text = file.read_text(errors="replace")
        except OSError:  # most of the default files do not exist; ssh skips what it cannot read
            continue
        for line in text.splitlines():
            try:
                known.load(line)
            except ValueError:
                continue
    return known


def _expanded(path: str) -> Path:
    return Path(path.strip('"')).expanduser()


def _public(identities: Sequence[Path]) -> list[str]:
    """The public halves of keys: with IdentitiesOnly an agent is used for no others."""
    halves = (each if each.suffix == ".pub" else Path(f"{each}.pub") for each in identities)
    return [str(each) for each in halves if each.is_file()]


def _filled(command: str, tokens: Mapping[str, str]) -> str:
    """The command with its tokens replaced (ssh_config(5), TOKENS)."""
    pieces, at = [], 0
    while at < len(command):
        token = command[at : at + 2]
        pieces.append(tokens.get(token, command[at]))
        at += 2 if token in tokens else 1
    return "".join(pieces)


def _jump(text: str) -> Login:
    """A host of ProxyJump: ``[user@]host[:port]`` or ``ssh://[user@]host[:port]``."""
    user, _, rest = text.strip().removeprefix("ssh://").rpartition("@")
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    else:
        host, port = rest, ""
    return Login(host=host, user=user, port=int(port) if port else None)
