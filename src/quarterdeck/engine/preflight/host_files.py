"""Files of machines that flags of a plane name: a plane keeps a flag that is refused only since it was given."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from quarterdeck.components.catalogue import flags_of
from quarterdeck.components.refusals import names_host_file
from quarterdeck.engine.notices.findings import Finding, ok, refuse
from quarterdeck.engine.observation.move import Move
from quarterdeck.errors import Unavailable
from quarterdeck.model.jobs import Job
from quarterdeck.model.units import MachineState

#: Prints those of its arguments that are not there.
_MISSING = 'for file; do [ -e "$file" ] || echo "$file"; done'
_DEADLINE = 30.0


async def host_files(move: Move) -> Finding:
    """Every machine of the target that may get a replica has the files that flags name. Raises Unavailable."""
    files = sorted(set(_named(move)))
    if not files:
        return ok("host files", "no flag names a file of a machine")
    up = [each.name for each in move.open if each.state is MachineState.UP]
    found = await asyncio.gather(*(_missing(move, each, files) for each in up))
    missing = [f"{machine}: {', '.join(gone)}" for machine, gone in zip(up, found, strict=True) if gone]
    if missing:
        return refuse(
            "host files", f"flags name what is not there: {'; '.join(missing)}", "put it there, or change them"
        )
    return ok("host files", f"{', '.join(files)}: on every machine")


def _named(move: Move) -> Iterator[str]:
    """The absolute paths in values of flags; of a log that is written, its folder."""
    for flags in flags_of(move.wanted.spec).values():
        for flag, value in flags.items():
            for path in value.split(",") if names_host_file(flag, value) else ():
                if path.startswith("/"):
                    yield path.rpartition("/")[0] or "/" if flag.endswith("-path") else path


async def _missing(move: Move, machine: str, files: list[str]) -> list[str]:
    site = move.plane.site(move.wanted.spec.placement.site)
    job = Job(name="look for files", argv=("/bin/sh", "-c", _MISSING, "sh", *files), deadline=_DEADLINE)
    ended = await site.run_job(machine, job)
    if ended.exit_code != 0:
        raise Unavailable(f"looking for files on machine {machine}", ended.output.strip() or "it was not possible")
    return ended.output.split("\n")[:-1]
