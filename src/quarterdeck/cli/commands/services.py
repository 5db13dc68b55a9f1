"""Commands on the service that keeps planes from boot on: install, status, remove."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.output.operations import ChangeResult
from quarterdeck.api.output.sites import ManagerRow, ServiceStatus
from quarterdeck.cli.arguments import OutputOption, UnnamedOption, Yes
from quarterdeck.cli.context import Output, UnnamedOutput, err, here, out, plain, read
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.output import done, emit
from quarterdeck.cli.service_files import Service, service
from quarterdeck.cli.work import confirm
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.files import file_errors, write_atomic
from quarterdeck.runner import run_blocking

app = group("Install the manager as a service that starts at boot.")

_RUNS = Path("/run/systemd/system")
#: Seconds for a program that may ask a person for a password.
_DEADLINE = 300.0
System = Annotated[
    bool | None,
    typer.Option("--system/--user", help="A service of the system or of this user (default: of the system for root)."),
]


def _service(system: bool | None) -> Service:
    whole = os.geteuid() == 0 if system is None else system
    return service(here(), os.environ, user=getpass.getuser() if whole else "")


@command(app, "service install", "service install --user --print")
def install(
    system: System = None,
    only_print: Annotated[bool, typer.Option("--print", help="Print the service file, and change nothing.")] = False,
    yes: Yes = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Manage all planes from now on, also after a reboot, with systemd or else cron."""
    made = _service(system)
    if only_print:
        sys.stdout.write(f"# {made.unit_file}\n{made.unit}" if _RUNS.exists() else f"{made.line}\n")
    elif _RUNS.exists():
        confirm(f"write {made.unit_file} and start it?", yes=yes)
        _install_unit(made)
        text = f"planes are kept by {made.name}.service; see 'quarterdeck service status'"
        done(_changed(made, "install"), output, text)
    else:
        lines = [*_others(made), made.line]
        plain(made.line, out if output.for_people else err)
        confirm(f"add this line to the crontab of {getpass.getuser()}?", yes=yes)
        log = made.home / "log"
        with file_errors(f"making {log}"):
            log.mkdir(parents=True, exist_ok=True, mode=0o700)
        _put_crontab(lines)
        text = "planes are started at boot; to have them kept until then as well: quarterdeck serve"
        done(_changed(made, "install"), output, text)


def _install_unit(made: Service) -> None:
    with file_errors(f"writing {made.unit_file}"):
        made.unit_file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(made.unit_file, made.unit.encode(), mode=0o644)
    _systemctl(made, "daemon-reload")
    _systemctl(made, "enable", "--now", f"{made.name}.service")
    if not made.user:
        _call("loginctl", "enable-linger", doing="having the service start at boot, before anybody logs in")


def _changed(made: Service, action: str, *, news: bool = True) -> ChangeResult:
    return ChangeResult(resource="service", name=made.name, action=action, changed=news)


@command(app, "service status")
def status(system: System = None, output: UnnamedOption = UnnamedOutput.TABLE) -> None:
    """Show whether the service is installed, and which process manages the planes.

    Exits 1 if no process does.
    """
    made = _service(system)
    by_systemd = _RUNS.exists()
    managers = read(lambda records: records.managers())
    found = ServiceStatus(
        file=str(made.unit_file) if by_systemd else "crontab",
        installed=made.unit_file.exists() if by_systemd else made.mark in _crontab(),
        managers=tuple(ManagerRow(network=str(network), holder=holder) for network, holder in managers.items()),
    )
    emit(found, output, lambda: _print(found))
    if not found.managers:
        raise typer.Exit(1)


def _print(found: ServiceStatus) -> None:
    out.print(f"{found.file}: {'installed' if found.installed else 'not installed'}", soft_wrap=True)
    for each in found.managers:
        out.print(f"planes on {each.network} are kept by {each.holder}", soft_wrap=True)
    if not found.managers:
        out.print("nobody keeps planes now: see 'quarterdeck service install' and 'quarterdeck serve'")


@command(app, "service remove")
def remove(system: System = None, yes: Yes = False, output: OutputOption = Output.TABLE) -> None:
    """Stop managing planes at boot. The planes keep running."""
    made = _service(system)
    if _RUNS.exists():
        if not made.unit_file.exists():
            done(_changed(made, "remove", news=False), output, f"{made.unit_file} is not there: nothing to do")
            return
        confirm(f"stop {made.name}.service and remove {made.unit_file}?", yes=yes)
        _systemctl(made, "disable", "--now", f"{made.name}.service")
        with file_errors(f"removing {made.unit_file}"):
            made.unit_file.unlink()
        _systemctl(made, "daemon-reload")
    else:
        if made.mark not in _crontab():
            text = "there is no line of it in the crontab: nothing to do"
            done(_changed(made, "remove", news=False), output, text)
            return
        confirm(f"remove the line of {made.name} from the crontab of {getpass.getuser()}?", yes=yes)
        _put_crontab(_others(made))
    done(_changed(made, "remove"), output, "removed; planes run on, and nobody keeps them")


def _systemctl(made: Service, *arguments: str) -> None:
    scope = () if made.user else ("--user",)
    _call("systemctl", *scope, *arguments, doing=f"asking systemd to {arguments[0]}")


def _crontab() -> str:
    """The user's crontab; "" if there is none."""
    if shutil.which("crontab") is None:
        raise PreconditionFailed(
            "reading the crontab",
            "this host has neither systemd nor cron",
            "have 'quarterdeck serve' started at boot by whatever starts programs here ('service install --print')",
        )
    done = run_blocking(("crontab", "-l"), doing="reading the crontab", deadline=_DEADLINE)
    if done.code and "no crontab" not in done.errors:  # what cannot be read must not be written over
        raise Unavailable("reading the crontab", " ".join(done.errors.split()), "try 'crontab -l' by hand")
    return done.output if done.code == 0 else ""


def _others(made: Service) -> list[str]:
    """The lines of the crontab that are not the service's."""
    return [each for each in _crontab().splitlines() if made.mark not in each]


def _put_crontab(lines: list[str]) -> None:
    _call("crontab", "-", doing="writing the crontab", given="".join(f"{each}\n" for each in lines))


def _call(*argv: str, doing: str, given: str = "") -> None:
    try:
        done = run_blocking(argv, doing=doing, deadline=_DEADLINE, given=given)
    except OSError as error:
        raise Unavailable(doing, f"{argv[0]}: {error.strerror}", "see whether it is installed") from error
    if done.code:
        seen = " ".join((done.errors or done.output).split()) or f"{argv[0]} {done.how}"
        raise Unavailable(doing, seen, f"try '{' '.join(argv)}' by hand")
