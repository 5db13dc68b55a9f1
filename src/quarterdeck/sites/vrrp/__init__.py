"""The script that runs keepalived on machines of all kinds."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath

from quarterdeck.components.traffic.keepalived import Routing
from quarterdeck.model.units import UnitFile

#: Its name determines its place among the pieces of a host's script.
PIECE = Path(__file__).with_name("8-vrrp.sh")
#: The program of the distribution, and where that may have the one that changes addresses and routes.
_KEEPALIVED = Path("/usr/sbin/keepalived")
_IP = tuple(Path(folder, "ip") for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"))
#: The remedy where one of them is missing.
INSTALL_BOTH = "install keepalived and iproute2 from this host's distribution; keepalived's own service need not run"

_HEAD = """\
#!/bin/bash -p
set -u -o pipefail
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
"""
_TAIL = """
retake() {  # the configuration that the unit has now
  [ "$FOLDER/keepalived.conf" -nt "$FOLDER/state/keepalived.conf" ] || return 0
  local own
  own=$(own_address < "$FOLDER/keepalived.conf")
  placed "$(< "$FOLDER/keepalived.conf")" "$(interface_of "$own")" "$FOLDER/state" > "$FOLDER/state/new"
  touch -r "$FOLDER/keepalived.conf" "$FOLDER/state/new"
  mv -f "$FOLDER/state/new" "$FOLDER/state/keepalived.conf"
}
FOLDER=$1 VRRP_RETAKE=retake
rm -rf "$FOLDER/state"
mkdir -p "$FOLDER/state"
retake
run_vrrp "$FOLDER/state/keepalived.conf" "$FOLDER" "$FOLDER/state"
"""


def why_not_here() -> str:
    """Why machines of this host cannot have addresses that move; "" if they can."""
    there = {"keepalived": _KEEPALIVED.exists(), "iproute2": any(each.exists() for each in _IP)}
    missing = [name for name, found in there.items() if not found]
    return f"{' and '.join(missing)} must be installed on this host: addresses that move need it" if missing else ""


@cache
def script() -> bytes:
    """The script of machines of this host. May block for a moment the first time."""
    return b"".join((_HEAD.encode(), PIECE.read_bytes(), _TAIL.encode()))


def routing_of_this_host(folder: PurePosixPath) -> Routing:
    """How a machine of this host runs keepalived for the unit in ``folder``. May block for a moment the first time."""
    file = UnitFile(folder / "vrrp.sh", script())
    return Routing(argv=("/bin/bash", "-p", str(file.path), str(folder)), files=(file,))
