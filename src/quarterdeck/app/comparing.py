"""What differs between a plane as it is wanted now and as it would be, and what each difference needs."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.revision import AuditTemplate, ReplicaRevision, ReplicaTemplate
from quarterdeck.components.difference import Difference, differences, spec_differences
from quarterdeck.engine.home import Home
from quarterdeck.engine.revisions import audit_wanted, template_of
from quarterdeck.errors import InvalidInput


async def compared(home: Home, current: ControlPlane, wanted: ControlPlane) -> tuple[Difference, ...]:
    """Every difference, by path; content that the spec only names a file of is compared as well.

    Raises InvalidInput for a file that cannot be used.
    """
    if current.spec == wanted.spec and wanted.spec.audit is None:
        return ()
    after = template_of(wanted, await home.site_as_known(wanted), audit_wanted(wanted))
    before = await _now(home, current)
    found = (*differences(before, after), *spec_differences(current.spec, wanted.spec))
    return tuple(sorted(found, key=lambda each: each.path))


async def _now(home: Home, plane: ControlPlane) -> ReplicaTemplate:
    """What the replicas of a plane are to be now: the revision that it names, if it has been given one."""
    if plane.status.revision:
        return (await home.store.get(ReplicaRevision, plane.status.revision)).spec
    try:
        audit = audit_wanted(plane)
    except InvalidInput:  # what was read once may be gone by now
        audit = AuditTemplate(policy="", max_age_days=0, max_backups=0, max_size_megabytes=0)
    return template_of(plane, await home.site_as_known(plane), audit)
