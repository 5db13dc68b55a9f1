"""What a check says of hosts that are to be a site's, or to be reached otherwise: what is in their way refuses that."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from quarterdeck.api.site import Site
from quarterdeck.engine.findings import enforce
from quarterdeck.engine.home import Home
from quarterdeck.engine.site_use import declared_elsewhere
from quarterdeck.model.findings import Checked, Finding, HostFinding, Verdict


async def checked(home: Home, site: Site) -> Checked:
    """What is to be looked at of the hosts of a site, whether it was added or not. Changes nothing."""
    sites = await home.store.list(Site)
    found = await home.sites.check(site, sites)
    step = "a host belongs to one site: see 'site show'"
    shared = [
        HostFinding(host, Finding("site", Verdict.WARN, seen, step)) for host, seen in declared_elsewhere(site, sites)
    ]
    return replace(found, findings=(*shared, *found.findings)) if shared else found


async def require_fit(home: Home, doing: str, site: Site, hosts: Collection[str] | None = None) -> Checked:
    """What is to be looked at of ``hosts`` of a site, as it is to become (None: of all). Changes nothing. Raises
    PreconditionFailed that names each of them that planes cannot be on, with what stands in the way and what to do.

    How the site's other hosts are is no matter: they may be dead.
    """
    found = await checked(home, site)
    if hosts is not None:
        about = _of(hosts, found.findings)
        found = Checked(findings=about, summary=f"{', '.join(sorted(hosts))}: {len(about)} to look at")
    enforce([_named(each) for each in found.findings], doing)
    return found


def _of(hosts: Collection[str], findings: Sequence[HostFinding]) -> tuple[HostFinding, ...]:
    """Those that are about any of ``hosts``; of the ways to another host not those that it could not try."""
    lost = {each.host for each in findings if _is_lost(each)}.difference(hosts)
    return tuple(each for each in findings if each.about & {*hosts} and not each.about & lost)


def _is_lost(each: HostFinding) -> bool:
    """Whether a host did not answer any more while the ways from it were tried."""
    return each.finding.check == "network" and each.finding.verdict is Verdict.REFUSE


def _named(each: HostFinding) -> Finding:
    return replace(each.finding, check=f"{each.host}: {each.finding.check}")
