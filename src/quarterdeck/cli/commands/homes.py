"""Commands on the home itself: sealing the keys that are in its store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.output.operations import KeyResult
from quarterdeck.app import key_file, sealed
from quarterdeck.app.sealed import KEY_FILE, Key, read_key
from quarterdeck.cli.arguments import UnnamedOption, Yes
from quarterdeck.cli.context import UnnamedOutput, here, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.output import emit
from quarterdeck.cli.work import confirm
from quarterdeck.errors import InvalidInput

app = group("Encrypt the private keys of all planes with a key file.")

_WRITE_DOWN = "keep a copy of the key file elsewhere: without it nobody, you included, gets at the planes' keys"


@command(app, "home seal --make")
def seal(
    make: Annotated[
        bool, typer.Option("--make", help=f"Create the key file that {KEY_FILE} names, with random content.")
    ] = False,
    yes: Yes = False,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Encrypt the keys of all planes with the key file that QUARTERDECK_KEY_FILE names.

    The key file has random bytes or a passphrase.
    """
    path = _named("sealing the home")
    if make:
        sealed.make_key_file(path)
    confirm(f"Seal {here()} by {path}? {_WRITE_DOWN}.", yes=yes)
    count = sealed.seal(here(), path)
    _tell(
        path,
        count,
        output,
        f"sealed: the keys of {count} planes. From now on every command needs {KEY_FILE}={path}; {_WRITE_DOWN}",
    )


@command(app, "home unseal")
def unseal(yes: Yes = False, output: UnnamedOption = UnnamedOutput.TABLE) -> None:
    """Store the keys of all planes unencrypted again."""
    key = _current("unsealing the home")
    confirm(f"Store the keys of all planes of {here()} in the clear?", yes=yes)
    count = sealed.unseal(here(), key)
    _tell(None, count, output, f"unsealed: the keys of {count} planes. Unset {KEY_FILE}")


@command(app, "home rekey --to /etc/quarterdeck/new.key")
def rekey(
    to: Annotated[Path, typer.Option("--to", help="The new key file.", show_default=False)],
    yes: Yes = False,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Encrypt the keys of all planes with another key file than QUARTERDECK_KEY_FILE."""
    key, new = _current("sealing the home by another key"), read_key(to.absolute())
    confirm(f"Seal {here()} by {new.path} in place of {key.path}? {_WRITE_DOWN}.", yes=yes)
    count = sealed.rekey(here(), key, new)
    _tell(
        new.path,
        count,
        output,
        f"sealed again: the keys of {count} planes. From now on every command needs {KEY_FILE}={new.path}",
    )


def _tell(key: Path | None, planes: int, output: UnnamedOutput, text: str) -> None:
    result = KeyResult(home=str(here()), key_file=str(key) if key is not None else None, planes=planes)
    emit(result, output, lambda: out.print(text))


def _named(doing: str) -> Path:
    path = key_file(os.environ)
    if path is None:
        raise InvalidInput(doing, f"{KEY_FILE} is not set", "set it to the path of the key file")
    return path


def _current(doing: str) -> Key:
    return read_key(_named(doing))
