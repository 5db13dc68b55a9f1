"""The metrics of several processes, merged into those of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from typing_extensions import override


def merged(texts: Sequence[bytes]) -> bytes:
    """One text of several. Counters of the same series are added; of all others the first one counts."""
    families: dict[str, Family] = {}
    for text in texts:
        for found in text_string_to_metric_families(text.decode()):
            known = families.setdefault(found.name, found)
            if known is not found:
                known.samples = _together(known.samples, found.samples, counted=found.type != "gauge")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families.values()))
    return generate_latest(registry)


def _together(some: Iterable[Sample], others: Iterable[Sample], *, counted: bool) -> list[Sample]:
    found = {_series(each): each for each in some}
    for each in others:
        known = found.get(_series(each))
        if known is None:
            found[_series(each)] = each
        elif counted:
            found[_series(each)] = each._replace(value=known.value + each.value)
    return list(found.values())


def _series(sample: Sample) -> tuple[str, frozenset[tuple[str, str]]]:
    return sample.name, frozenset(sample.labels.items())


class _Families(Collector):
    """Families as they were parsed."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = tuple(families)

    @override
    def collect(self) -> Iterator[Family]:
        """See ``Collector``."""
        yield from self._families
