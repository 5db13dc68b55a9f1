"""The changes of planes, one line each, where there is no terminal to redraw."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.api.output.status import PlaneReplica, PlaneStatus
from quarterdeck.app.plane_watch import WatchedPlane
from quarterdeck.app.words import quorum_of, survival
from quarterdeck.cli.plane_text import state

#: Keys of facts that hold or do not hold; the others have a value.
_SENTENCES = ("warning", "event", "trouble")


class ChangeLines:
    """Remembers the last lines of each plane."""

    def __init__(self) -> None:
        self._shown: dict[str, dict[tuple[str, str], str]] = {}

    def lines(self, seen: tuple[WatchedPlane, ...]) -> Iterator[str]:
        """The lines that differ from the last ones; all lines of a new plane."""
        for plane in seen:
            before, now = self._shown.get(plane.name, {}), _lines_of(plane)
            self._shown[plane.name] = now
            for key, text in now.items():
                if before.get(key) != text:
                    yield f"{plane.name}  {_title(key)}: {text}"
            for key, text in before.items():
                if key not in now and key[0] != "event":
                    yield f"{plane.name}  no more: {text if key[0] in _SENTENCES else _title(key)}"
        for name in self._shown.keys() - {each.name for each in seen}:
            del self._shown[name]
            yield f"{name}  is gone"


def _title(key: tuple[str, str]) -> str:
    kind, name = key
    return kind if kind in _SENTENCES else f"{kind} {name}".rstrip()


def _lines_of(plane: WatchedPlane) -> dict[tuple[str, str], str]:
    """All lines of a plane, by their subject."""
    lines: dict[tuple[str, str], str] = {}
    if plane.trouble:
        lines["trouble", plane.trouble] = plane.trouble
    for event in plane.events:
        lines["event", f"{event.reason} {event.message}"] = f"{event.reason}: {event.message}"
    return lines if plane.facts is None else _of_facts(plane.facts) | lines


def _of_facts(status: PlaneStatus) -> dict[tuple[str, str], str]:
    lines = {
        ("state", ""): state(status),
        ("under way", ""): status.operation or "nothing",
        ("doing", ""): ", ".join(status.doing) or "nothing",
        ("waiting for", ""): "; ".join(map(str, status.waiting)) or "nothing",
        ("name leads to", ""): status.name_leads_to or "nothing",
    }
    if status.voters is not None:
        lines["etcd", ""] = quorum_of(status.voters, status.may_fail, status.quorum_at)
    if survives := survival(status.survives):
        lines["survives", ""] = "; ".join(survives).removeprefix("survives: ")
    for each in status.warnings:
        lines["warning", each.message] = each.message
    for member in status.members:
        lines["replica", member.replica] = _replica(member)
    for balancer in status.load_balancers:
        backends = ", ".join(balancer.backends) or "nobody"
        sends = f"sends to {backends}" if balancer.running else "does not run"
        lines["load balancer", balancer.site] = sends if balancer.running is not None else "unknown"
    return lines


def _replica(member: PlaneReplica) -> str:
    """Lag is left out: it differs at each look."""
    words = [member.member, member.health or "", f"apiserver {member.apiserver}"]
    if member.machine_state != "up":
        words.append(f"machine {member.machine} {member.machine_state}")
    return ", ".join(filter(None, words))
