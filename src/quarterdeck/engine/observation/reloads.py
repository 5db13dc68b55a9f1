"""As which revisions apiservers have their files, as they say: asked only where that is not plain."""

from __future__ import annotations

from dataclasses import dataclass, field

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.components.template import loaded_hash
from quarterdeck.engine.observation.asking import or_none
from quarterdeck.model.memory import Memory, Replica

#: Seconds for an apiserver to go by a new file. It sees that at once, asks each new issuer for its keys, and looks
#: whether all have answered: at first too early, then every 10 s (kubernetes: updateAuthenticationConfig).
PATIENCE = 35.0


@dataclass(kw_only=True)
class Loads:
    """What the apiservers of one plane have said. Their answer is long, so that only who drives asks, once, and then
    again as long as one may have to take something up.
    """

    plane: Plane
    _said: dict[str, str | None] = field(default_factory=dict)

    async def of(self, memory: Memory, record: Replica, *, ready: bool | None) -> frozenset[str] | None:
        """The revisions whose files an apiserver goes by; None if it is not asked, or does not say."""
        if self.plane.guard is None or not ready:
            self._said.pop(record.name, None)  # it may start with other files
            return None
        own = self._hash(record.revision)
        if own is None:
            return None
        if self._said.get(record.name) != own or self._may_change(memory, record):
            self._said[record.name] = await or_none(self.plane.kube.loaded(apiserver_address(record)))
        said = self._said[record.name]
        return None if said is None else frozenset(each for each in self._known() if self._hash(each) == said)

    def given(self, record: Replica) -> tuple[frozenset[str], frozenset[str]]:
        """The revisions whose files a replica was given while it ran: of late, and so long ago that it takes them up no
        more.
        """
        now = self.plane.steady()
        since = {revision: now - at for (name, revision), at in self.plane.given.items() if name == record.name}
        late = frozenset(revision for revision, passed in since.items() if passed > PATIENCE)
        return frozenset(since) - late, late

    def _may_change(self, memory: Memory, record: Replica) -> bool:
        """Whether it is, or may be about to be, of another revision that it takes up while it runs."""
        wanted = {self.plane.revisions.goal, *(each.revision for each in memory.replicas)}
        changes = self.plane.revisions.changes
        return any(one == record.revision and other in wanted and change.reload for one, other, change in changes)

    def _known(self) -> tuple[str, ...]:
        return tuple(self.plane.revisions.templates)

    def _hash(self, revision: str) -> str | None:
        template = self.plane.revisions.templates.get(revision)
        return None if template is None else loaded_hash(template)
