"""The checks of hosts that join a site, or get a new address: obstacles refuse the change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from quarterdeck.api.hosts import Host
from quarterdeck.api.site import Site, SshSpec
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.site_use import declared_elsewhere
from quarterdeck.model.findings import CLASS_CHECKS, LOGIN, Checked, Finding, HostFinding, Verdict, enforce
from quarterdeck.model.units import MachineRole

_NOTHING = Checked(findings=(), summary="nothing that has to be checked")


async def checked(home: Home, site: Site) -> Checked:
    """The findings about the hosts of a site, whether it was added or not. Changes nothing."""
    sites = await home.store.list(Site)
    found = await home.sites.check(site, sites)
    step = "a host belongs to one site: see 'site show'"
    shared = [
        HostFinding(host, Finding("site", Verdict.WARN, seen, step)) for host, seen in declared_elsewhere(site, sites)
    ]
    return replace(found, findings=(*shared, *found.findings)) if shared else found


async def require_fit(home: Home, doing: str, site: Site, hosts: Collection[str] | None = None) -> Checked:
    """The findings about ``hosts`` of a site, as it will become (None: about all). Changes nothing. Raises
    PreconditionFailed that names each of them that planes cannot run on, with the obstacle and the next step.

    The state of the site's other hosts does not matter: they may be dead.
    """
    found = await checked(home, site)
    if hosts is not None:
        about = _of(hosts, found.findings)
        found = Checked(findings=about, summary=f"{', '.join(sorted(hosts))}: {len(about)} to check")
    enforce([_named(each) for each in found.findings], doing)
    return found


async def require_fit_change(home: Home, doing: str, before: Site | None, site: Site) -> Checked:
    """The findings of ``require_fit`` about what is new in a site as it will become: all of it (``before``: None), or
    hosts and storage classes on existing hosts. Raises as it does.
    """
    if before is None:
        return await require_fit(home, doing, site)
    if not isinstance(before.spec, SshSpec) or not isinstance(site.spec, SshSpec):
        return _NOTHING
    hosts = {each.name for each in site.spec.hosts if _is_news(each, before.spec, site.spec)}
    fit = await require_fit(home, doing, site, hosts) if hosts else _NOTHING
    classes = tuple(each for each in site.spec.storage_classes if each not in before.spec.storage_classes)
    if not classes:
        return fit
    narrowed = site.model_copy(update={"spec": site.spec.model_copy(update={"storage_classes": classes})})
    of_classes = tuple(_of_classes(hosts, (await checked(home, narrowed)).findings))
    enforce([_named(each) for each in of_classes], doing)
    return replace(fit, findings=(*fit.findings, *of_classes))


def _is_news(host: Host, before: SshSpec, after: SshSpec) -> bool:
    """Whether a host is new, is reached differently, or has other roles."""
    return before.host(host.name) != host or (MachineRole.EDGE in host.roles and before.edge != after.edge)


def _of_classes(besides: Collection[str], findings: Sequence[HostFinding]) -> Iterator[HostFinding]:
    """The findings about storage classes; a host that does not answer is named, and may be dead for now."""
    for each in findings:
        if each.host in besides:
            continue
        if each.finding.check in CLASS_CHECKS:
            yield each
        elif each.finding.check == LOGIN:
            seen = f"its storage classes were not checked: {each.finding.seen}"
            yield replace(each, finding=replace(each.finding, verdict=Verdict.WARN, seen=seen))


def _of(hosts: Collection[str], findings: Sequence[HostFinding]) -> tuple[HostFinding, ...]:
    """The findings about any of ``hosts``; of the connections to another host not those that it could not try."""
    lost = {each.host for each in findings if _is_lost(each)}.difference(hosts)
    return tuple(each for each in findings if each.about & {*hosts} and not each.about & lost)


def _is_lost(each: HostFinding) -> bool:
    """Whether a host stopped answering while the connections from it were tried."""
    return each.finding.check == "network" and each.finding.verdict is Verdict.REFUSE


def _named(each: HostFinding) -> Finding:
    return replace(each.finding, check=f"{each.host}: {each.finding.check}")
