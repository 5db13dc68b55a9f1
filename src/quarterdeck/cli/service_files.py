"""What starts ``serve`` at boot: a unit of systemd, or a line of crontab where there is no systemd. Text alone."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import quarterdeck
from quarterdeck.app import RESTARTED_BY, home_folder
from quarterdeck.cli.context import INSIDE

#: Planes run in the unit's control group, too: they were started by what it starts. So only ``serve`` itself ends with
#: it (KillMode), and none of their processes that runs out of memory ends it (OOMPolicy). What they need is not taken
#: from them: namespaces, folders anywhere, settings of their own networks.
_UNIT = """\
[Unit]
Description=quarterdeck keeps the control planes of {home}
After=network.target local-fs.target
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={command}
{environment}{user}Restart=always
RestartSec=2
WatchdogSec=60
TimeoutStopSec=30
KillMode=process
OOMPolicy=continue
TasksMax=infinity
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
{system}
[Install]
WantedBy={target}
"""
#: What only the system's own manager can do.
_SYSTEM = """\
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
LimitNOFILE=524288
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The service of one home, for ``user`` ("": it belongs to the service manager of the current user)."""

    home: Path
    user: str
    environment: Mapping[str, str]
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """One for each home: the default one has no more than the program's name."""
        if self.home == home_folder({}):
            return "quarterdeck"
        return f"quarterdeck-{hashlib.sha256(str(self.home).encode()).hexdigest()[:8]}"

    @property
    def unit(self) -> str:
        """The unit of systemd."""
        environment = {**self.environment, RESTARTED_BY: "systemd"}
        variables = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in environment.items())
        return _UNIT.format(
            home=self.home,
            command=" ".join(map(_quoted, self.command)),
            environment=variables,
            user=f"User={self.user}\n" if self.user else "",
            system=_SYSTEM if self.user else "",
            target="multi-user.target" if self.user else "default.target",
        )

    @property
    def unit_file(self) -> Path:
        """Where that is."""
        if self.user:
            return Path("/etc/systemd/system") / f"{self.name}.service"
        config = os.environ.get("XDG_CONFIG_HOME")
        return (Path(config) if config else Path.home() / ".config") / "systemd" / "user" / f"{self.name}.service"

    @property
    def line(self) -> str:
        """The line of crontab."""
        words = [*(f"{name}={value}" for name, value in self.environment.items()), *self.command]
        log = self.home / "log" / "serve.log"
        # A % is the end of the command for cron (crontab(5)).
        return f"@reboot env {shlex.join(words)} >>{shlex.quote(str(log))} 2>&1 {self.mark}".replace("%", r"\%")

    @property
    def mark(self) -> str:
        """What tells its line from others."""
        return f"# {self.name}: keeps control planes"


def _quoted(word: str) -> str:
    """A word of a unit file (systemd.service(5)): ``%`` and ``$`` mean something there."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if any(each in word for each in " \t\"'\\;") else plain


def command() -> tuple[str, ...]:
    """What starts ``serve`` of this installation: the checkout's own script, which finds its environment again, or
    Python.
    """
    script = Path(quarterdeck.__file__).absolute().parents[2] / "quarterdeck"
    start = (str(script),) if script.is_file() and os.access(script, os.X_OK) else (sys.executable, "-m", "quarterdeck")
    return (*start, "serve", "--log-format", "json")


def service(home: Path, environment: Mapping[str, str], *, user: str) -> Service:
    """The service of a home: what is set of this program in the environment stays so."""
    kept = {name: value for name, value in sorted(environment.items()) if name.startswith("QUARTERDECK_")}
    for of_one_process in (INSIDE, RESTARTED_BY):
        kept.pop(of_one_process, None)
    return Service(home=home, user=user, environment={**kept, "QUARTERDECK_HOME": str(home)}, command=command())
