"""Where the backups of a plane are, and the keys that open them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyrage import x25519

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.deposit import Deposit
from quarterdeck.backup.objects.port import ObjectStore
from quarterdeck.backup.sealing import Identities, Recipients
from quarterdeck.drivers.backup_stores import open_backup_store
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.files import file_errors, write_secret, write_temporary
from quarterdeck.input_files import PIPE_SILENCE_S, UnreadableFileError, private, read_bytes

_SECRET_PREFIX = "AGE-SECRET-KEY-1"  # noqa: S105 - how such keys begin, not one of them
_LONGEST_FILE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupKeys:
    """The private keys of age in a home's key file: the first one is the home's own, to which backups are encrypted."""

    path: Path
    own: str = field(repr=False)
    others: tuple[str, ...] = field(default=(), repr=False)

    @property
    def recipient(self) -> str:
        """The public key of the home's own one."""
        return str(x25519.Identity.from_str(self.own).to_public())

    @property
    def identities(self) -> Identities:
        """All of them."""
        return Identities((self.own, *self.others))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBackups:
    """The backups of one plane in their store."""

    store: ObjectStore
    url: str
    #: The folder of the plane in the store.
    folder: str
    chains: ChainStore
    deposit: Deposit
    keys: BackupKeys


def key_file(home: Path) -> Path:
    """The file with the private keys that open the backups of a home's planes."""
    return home / "backup.key"


def scratch_folder(home: Path, plane: str) -> Path:
    """A folder for the spool and for databases that are being built, of this user alone."""
    return home / "backup-scratch" / plane


async def backup_keys(home: Path) -> BackupKeys:
    """The keys of a home; the first time its own one is made. Raises PreconditionFailed for a file that is damaged, or
    that others may read, and Unavailable.
    """
    return await asyncio.to_thread(_keys, key_file(home))


def _keys(path: Path) -> BackupKeys:
    if not path.exists():
        _make(path)
    own, *others = _identities(path, require=private(path, _reading(path)))
    return BackupKeys(path=path, own=own, others=tuple(others))


def _make(path: Path) -> None:
    """Made once: of several processes at the same time, the first one wins."""
    own = x25519.Identity.generate()
    content = f"# public key: {own.to_public()}\n{own}\n"
    with file_errors("creating the key of backups"):
        made = write_temporary(path, content.encode(), mode=0o600)
        try:
            os.link(made, path)
        except FileExistsError:
            return
        finally:
            made.unlink()


def read_identities(path: Path) -> tuple[str, ...]:
    """The private keys of age in a file, as ``age-keygen`` writes it. Raises PreconditionFailed."""
    return _identities(path)


def _reading(path: Path) -> str:
    return f"reading the key file {path}"


def _identities(path: Path, *, require: Callable[[os.stat_result], None] | None = None) -> tuple[str, ...]:
    doing = _reading(path)
    try:
        content = read_bytes(path, _LONGEST_FILE, pipe_silence_s=PIPE_SILENCE_S, require=require).decode(
            errors="replace"
        )
    except UnreadableFileError as error:
        raise PreconditionFailed(doing, str(error), "give the file with the private key of the backups") from error
    found = tuple(each.strip() for each in content.splitlines() if each.strip().startswith(_SECRET_PREFIX))
    if not found:
        raise PreconditionFailed(doing, f"no line of it begins with {_SECRET_PREFIX}", "give the right file")
    try:
        Identities(found).parsed()
    except InvalidInput as error:
        raise PreconditionFailed(doing, error.seen, "give the right file") from None
    return found


async def add_identities(home: Path, added: tuple[str, ...]) -> None:
    """Add private keys to the key file of a home, behind its own one."""
    keys = await backup_keys(home)
    new = [each for each in added if each not in keys.identities.keys]
    if not new:
        return
    lines = (keys.own, *keys.others, *new)
    with file_errors("adding a key of backups"):
        await asyncio.to_thread(write_secret, keys.path, "\n".join(lines).encode() + b"\n")


def store_options(plane: ControlPlane) -> Mapping[str, str]:
    """The options of a plane's backup store. Raises InvalidInput."""
    file = plane.spec.backup.options_file
    return read_options(Path(file)) if file is not None else {}


def read_options(path: Path) -> Mapping[str, str]:
    """The options in a file of lines ``NAME=VALUE``. Raises InvalidInput, which shows no value."""
    doing = f"reading the options of a backup store in {path}"
    try:
        content = read_bytes(path, _LONGEST_FILE, pipe_silence_s=PIPE_SILENCE_S).decode()
    except (UnreadableFileError, UnicodeDecodeError) as error:
        raise InvalidInput(doing, str(error), "give a text file that you may read") from error
    lines = [each.strip() for each in content.splitlines()]
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(doing, f"line {number} is not of the form NAME=VALUE", "correct it")
        found[name.strip()] = value.strip()
    return found


def default_store(home: Path) -> str:
    """The URL of the backup store of planes that name none."""
    return (home / "backups").as_uri()


def folder_of(plane: ControlPlane) -> str:
    """The folder of a plane in its store: a later plane of the same name has another one."""
    return f"{plane.name}/{plane.metadata.uid}"


async def open_backups(home: Home, plane: ControlPlane) -> OpenBackups:
    """The backups of a plane, in the store that its spec names. Raises InvalidInput, Unavailable."""
    url = plane.spec.backup.store or default_store(home.folder)
    return await open_backups_at(home, plane, url, folder_of(plane))


async def open_backups_at(home: Home, plane: ControlPlane, url: str, folder: str) -> OpenBackups:
    """Backups of that plane, of the one that it was before its home was lost, or of the one that it is a copy of, in a
    folder of a store.
    """
    return await open_backups_in(home, url, folder, store_options(plane), plane.spec.backup.recipients)


async def open_backups_in(
    home: Home, url: str, folder: str, options: Mapping[str, str], recipients: tuple[str, ...] = ()
) -> OpenBackups:
    """Backups in a folder of a store, of whatever plane. Raises InvalidInput, Unavailable."""
    keys = await backup_keys(home.folder)
    if url == default_store(home.folder):
        with file_errors("creating the folder of backups"):
            await asyncio.to_thread(Path(home.folder / "backups").mkdir, mode=0o700, exist_ok=True)
    store = open_backup_store(url, options)
    return OpenBackups(
        store=store,
        url=url,
        folder=folder,
        chains=ChainStore(store, folder.rpartition("/")[2], folder),
        deposit=Deposit(store=store, prefix=folder, recipients=Recipients((keys.recipient, *recipients))),
        keys=keys,
    )
