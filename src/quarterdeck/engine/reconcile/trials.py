"""Trials: the programs of a plane are started for a moment, before the plane is created or changed, and one that ends
with an error is the reason to refuse it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Protocol

from typing_extensions import override

from quarterdeck.components.refusals import FLAGS_OF
from quarterdeck.components.settings import PlaneSettings
from quarterdeck.components.trial import configurations
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component


class Trials(Protocol):
    """Starts programs where they disturb nobody, and says which of them cannot start."""

    async def failures(
        self, plane: PlaneSettings, components: Collection[Component], programs: Mapping[Component, PurePosixPath]
    ) -> Mapping[Component, str]:
        """Why programs end that are started with a plane's settings, in their own words, for each that does. One about
        which nothing was found out is not among them.
        """
        ...


class NoTrials(Trials):
    """Tries nothing: for those who cannot wait."""

    @override
    async def failures(
        self, plane: PlaneSettings, components: Collection[Component], programs: Mapping[Component, PurePosixPath]
    ) -> Mapping[Component, str]:
        del plane, components, programs
        return {}


async def require_start(
    trials: Trials,
    wanted: PlaneSettings,
    current: PlaneSettings | None,
    programs: Mapping[Component, PurePosixPath],
) -> None:
    """Try the programs that a new plane has, or whose configuration a change of ``current`` touches. Raises
    InvalidInput with the words of each one that does not start.
    """
    before = configurations(current) if current is not None else {}
    touched = [each for each, digest in configurations(wanted).items() if before.get(each) != digest]
    cloud = wanted.cloud.program if wanted.cloud is not None else None
    there = {**programs, **({Component.CLOUD_CONTROLLER_MANAGER: cloud} if cloud is not None else {})}
    failures = await trials.failures(wanted, [each for each in touched if each in there], there)
    if failures:
        places = " and ".join(FLAGS_OF[each] for each in failures)
        raise InvalidInput(
            f"trying the programs of plane {wanted.name}",
            "; ".join(f"{component} does not start: {words}" for component, words in failures.items()),
            f"correct {places}, or what else of the spec it names (--no-trial accepts it all the same)",
        )
