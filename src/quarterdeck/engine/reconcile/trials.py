"""Trials: before a plane is created or changed, its programs are started for a moment; one that exits with an error is
the reason to refuse the change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Protocol

from typing_extensions import override

from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE, flags_field
from quarterdeck.components.replica import configurations
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component


class Trials(Protocol):
    """Starts programs in isolation, and reports which of them cannot start."""

    async def failures(
        self, template: ReplicaTemplate, components: Collection[Component], programs: Mapping[Component, PurePosixPath]
    ) -> Mapping[Component, str]:
        """Why programs with a revision's configuration exit, in their own words, for each that does. Programs without a
        clear result are left out.
        """
        ...


class NoTrials(Trials):
    """Tries nothing: for callers that cannot wait."""

    @override
    async def failures(
        self, template: ReplicaTemplate, components: Collection[Component], programs: Mapping[Component, PurePosixPath]
    ) -> Mapping[Component, str]:
        del template, components, programs
        return {}


async def require_start(
    trials: Trials,
    plane: str,
    wanted: ReplicaTemplate,
    current: ReplicaTemplate | None,
    programs: Mapping[Component, PurePosixPath],
) -> None:
    """Try the programs of a new plane, or those whose configuration a change of ``current`` touches. Raises
    InvalidInput with the words of each one that does not start.
    """
    before = configurations(current) if current is not None else {}
    touched = [each for each, digest in configurations(wanted).items() if before.get(each) != digest]
    there = {**programs, **_named(wanted, touched)}
    failures = await trials.failures(wanted, [each for each in touched if each in there], there)
    if failures:
        places = " and ".join(filter(None, map(flags_field, failures)))
        raise InvalidInput(
            f"trying the programs of plane {plane}",
            "; ".join(f"{component} does not start: {words}" for component, words in failures.items()),
            f"correct {places}, or the other fields of the spec that it names (--no-trial accepts it anyway)",
        )


def _named(template: ReplicaTemplate, components: Iterable[Component]) -> Mapping[Component, PurePosixPath]:
    """The paths of the programs that a revision names itself; an image is not tried."""
    given = ((each, CATALOGUE[each].given) for each in components)
    paths = ((each, program(template).path) for each, program in given if program is not None)
    return {each: path for each, path in paths if path is not None}
