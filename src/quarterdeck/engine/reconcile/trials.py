"""Trials: the programs of a plane are started for a moment, before the plane is created or changed, and one that ends
with an error is the reason to refuse it.
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
    """Starts programs where they disturb nobody, and says which of them cannot start."""

    async def failures(
        self, template: ReplicaTemplate, components: Collection[Component], programs: Mapping[Component, PurePosixPath]
    ) -> Mapping[Component, str]:
        """Why programs end that are started as a revision has them, in their own words, for each that does. One about
        which nothing was found out is not among them.
        """
        ...


class NoTrials(Trials):
    """Tries nothing: for those who cannot wait."""

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
    """Try the programs that a new plane has, or whose configuration a change of ``current`` touches. Raises
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
            f"correct {places}, or what else of the spec it names (--no-trial accepts it all the same)",
        )


def _named(template: ReplicaTemplate, components: Iterable[Component]) -> Mapping[Component, PurePosixPath]:
    """Where the programs are that a revision names itself; an image is not tried."""
    given = ((each, CATALOGUE[each].given) for each in components)
    paths = ((each, program(template).path) for each, program in given if program is not None)
    return {each: path for each, path in paths if path is not None}
