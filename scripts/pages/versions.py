"""docs/reference/versions.md, made from the tables of minor versions and feature gates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pages.declared import table
from quarterdeck.components.feature_gates import ETCD_GATES, KUBERNETES_GATES, Gate
from quarterdeck.components.minors import ETCD, KUBERNETES, Minor, MinorRelease, dotted

_OPENING = """# Versions of Kubernetes and etcd

What each supported minor version has no more, or did not have, compared with the one before it. A plane whose extra
arguments set a flag or a feature gate that its version refuses is refused when it is created or changed. The known
flaws of a patch release are warnings of `create`, `apply`, `plan` and `status`.
"""
_ETCD = """
A cluster of etcd 3.5 takes one learner at a time, which later versions make configurable: a plane on it moves with one
replica, does not grow, and has no standby. Checks refuse all that.
"""
_NONE = "-"


def page() -> str:
    """The whole page."""
    return "".join(
        (
            _OPENING,
            _support("Kubernetes", KUBERNETES),
            _changes("Kubernetes", KUBERNETES, KUBERNETES_GATES),
            _support("etcd", ETCD),
            _ETCD,
            _changes("etcd", ETCD, ETCD_GATES),
        )
    )


def _support(name: str, minors: Mapping[Minor, MinorRelease]) -> str:
    rows = [
        (
            dotted(minor),
            f"{dotted(minor)}.{release.lowest}",
            f"{dotted(minor)}.{release.newest}",
            f"{release.supported_until:%Y-%m-%d}" if release.supported_until else _NONE,
            "; ".join(f"before {dotted(minor)}.{each.fixed}: {each.what}" for each in release.flaws) or _NONE,
        )
        for minor, release in sorted(minors.items(), reverse=True)
    ]
    header = ("version", "from", "known up to", "supported by upstream until", "known flaws")
    return f"\n## {name}\n{table(header, rows)}"


def _changes(name: str, minors: Mapping[Minor, MinorRelease], gates: Mapping[str, Gate]) -> str:
    return "".join(
        f"\n### {name} {dotted(minor)}\n{table(('change', 'what'), _rows(minor, minors[minor], gates))}"
        for minor in sorted(minors, reverse=True)
        if minor != min(minors)
    )


def _rows(minor: Minor, release: MinorRelease, gates: Mapping[str, Gate]) -> list[tuple[str, str]]:
    rows = [(f"flags gone from {program}", _quoted(flags)) for program, flags in release.flags_gone.items()]
    rows += [(f"new flags of {program}", _quoted(flags)) for program, flags in release.flags_new.items()]
    rows += [
        (
            "APIs no longer served",
            "; ".join(f"`{api}`: {', '.join(kinds)}" for api, kinds in release.apis_gone.items()),
        ),
        ("feature gates gone", ", ".join(name for name, gate in gates.items() if gate.gone == minor)),
        ("new feature gates", ", ".join(name for name, gate in gates.items() if gate.known == minor)),
        ("feature gates locked on", ", ".join(_locked(minor, gates, on=True))),
        ("feature gates locked off", ", ".join(_locked(minor, gates, on=False))),
    ]
    return [row for row in rows if row[1]]


def _locked(minor: Minor, gates: Mapping[str, Gate], *, on: bool) -> Iterable[str]:
    """The gates that were locked to this value in this version."""
    for name, gate in gates.items():
        if any(each.since == minor and each.locked and each.on is on for each in gate.stages):
            yield name


def _quoted(flags: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in sorted(flags))
