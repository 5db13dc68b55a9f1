"""CoreDNS as the DNS server of a hub site: one zone, and one small zone file for each name in it.

Upstream's ``hosts`` plugin gives all names one time to live, set when the server starts, and one file for all
names would be rewritten by every plane at once. So each name is a zone of its own below the base zone (plugin
``auto``, which finds new files by itself): writers never meet, and each record has its own time to live.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from quarterdeck.model.endpoints import DnsRecord
from quarterdeck.model.units import UnitFile, UnitSpec

_BASE_TTL = 60
#: Ports below this one are the privileged ones.
LOW_PORTS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsSettings:
    """What one CoreDNS is. ``zone`` and all names are absolute, in lower case, with the last dot.

    ``reload`` is how often (seconds) it looks for changed files: a few system calls for each name.
    """

    unit: str
    binary: PurePosixPath
    folder: PurePosixPath
    address: str
    port: int
    zone: str
    reload: float = 0.25


def dns_unit(settings: DnsSettings) -> UnitSpec:
    """The unit. The base zone's file (``base_file``) should be there when it starts."""
    corefile = settings.folder / "Corefile"
    return UnitSpec(
        name=settings.unit,
        argv=(str(settings.binary), "-conf", str(corefile)),
        files=(UnitFile(corefile, _corefile(settings).encode()),),
        stop_timeout=5.0,
        low_ports=settings.port < LOW_PORTS,
    )


def base_file(settings: DnsSettings) -> UnitFile:
    """The base zone: it has no plane's name itself, and says with authority that others do not exist."""
    lines = (_line(_server_name(settings), _BASE_TTL, settings.address),)
    return UnitFile(zone_path(settings, settings.zone), _zone(settings, settings.zone, _BASE_TTL, lines), 0o644)


def record_file(
    settings: DnsSettings, name: str, record: DnsRecord, texts: tuple[tuple[str, str], ...] = ()
) -> UnitFile:
    """The zone file of one name. ``texts`` are names at or below it with their text records (of no quotes)."""
    lines = (
        *(_line(name, record.ttl, address) for address in record.addresses),
        *(f'{where} {record.ttl} IN TXT "{text}"' for where, text in texts),
    )
    return UnitFile(zone_path(settings, name), _zone(settings, name, record.ttl, lines), 0o644)


def zone_path(settings: DnsSettings, name: str) -> PurePosixPath:
    """The path of the zone file of ``name``."""
    return settings.folder / "zones" / f"db.{name.rstrip('.')}"


def _corefile(settings: DnsSettings) -> str:
    zones = settings.folder / "zones"
    return f"""{settings.zone}:{settings.port} {{
    bind {settings.address}
    errors
    auto {{
        directory "{zones}" ^db\\.(.*)$ {{1}}
        reload {round(settings.reload * 1000)}ms
    }}
}}
"""


def _zone(settings: DnsSettings, name: str, ttl: int, lines: tuple[str, ...]) -> bytes:
    """A zone file. The server reloads it when its serial differs, so the serial is made from the content.

    The last field of the SOA says how long (seconds) a "there is none" may be remembered.
    """
    server = _server_name(settings)
    serial = int.from_bytes(hashlib.sha256("\n".join([name, *lines]).encode()).digest()[:4], "big") or 1
    head = (
        f"{name} {ttl} IN SOA {server} hostmaster.{settings.zone} {serial} 3600 600 86400 1",
        f"{name} {ttl} IN NS {server}",
    )
    return "\n".join([*head, *lines, ""]).encode()


def _server_name(settings: DnsSettings) -> str:
    return f"ns.{settings.zone}"


def _line(name: str, ttl: int, address: str) -> str:
    return f"{name} {ttl} IN {'AAAA' if ':' in address else 'A'} {address}"
