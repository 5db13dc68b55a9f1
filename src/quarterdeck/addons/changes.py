"""What a change of add-ons changes, object by object; never what the objects say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quarterdeck.addons.content import Content
from quarterdeck.addons.objects import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonChange:
    """Of one add-on: its objects that come, that say something else, and that go."""

    addon: str
    added: Sequence[Ref] = ()
    changed: Sequence[Ref] = ()
    removed: Sequence[Ref] = ()

    @property
    def words(self) -> str:
        """Such as ``3 added, 1 removed``."""
        counts = (("added", self.added), ("changed", self.changed), ("removed", self.removed))
        return ", ".join(f"{len(refs)} {word}" for word, refs in counts if refs)


def changes(before: Iterable[Content], after: Iterable[Content]) -> tuple[AddonChange, ...]:
    """All add-ons of which anything changes, by name."""
    old, new = ({each.addon: each for each in contents} for contents in (before, after))
    found = (_change(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))
    return tuple(each for each in found if each.words)


def _change(addon: str, before: Content | None, after: Content | None) -> AddonChange:
    old = {each.ref: each for each in before.objects} if before is not None else {}
    new = {each.ref: each for each in after.objects} if after is not None else {}
    changed = (ref for ref in old.keys() & new.keys() if old[ref] != new[ref])
    return AddonChange(
        addon=addon,
        added=sorted(new.keys() - old.keys()),
        changed=sorted(changed),
        removed=sorted(old.keys() - new.keys()),
    )
