"""A plane on fakes whose add-ons are seen to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fakes.kube import FakeApiserver
from fakes.kube_objects import FakeObjects

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import refresh
from quarterdeck.addons.applyset import ApplySetParent
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.addons import Addon, AddonStatus
from quarterdeck.engine.background.addon_task import AddonTask
from quarterdeck.engine.workspace import addons
from quarterdeck.kube.port import Address
from quarterdeck.stores.port import amend
from quarterdeck.yaml_text import dumped
from support.fake_plane import FakePlane, host_of


def config_map(name: str, namespace: str | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def text(*objects: Mapping[str, Any]) -> str:
    return "---\n".join(dumped(dict(each)) for each in objects)


def addon(name: str, *objects: Mapping[str, Any], **fields: str) -> Addon:
    return Addon(name=name, inline=text(*objects), **fields)


@dataclass
class AddonLab:
    """``background task`` is one process's; ``now`` its clock."""

    fake: FakePlane
    plane: Plane
    now: float = 0.0
    task: AddonTask = field(init=False)

    @classmethod
    async def made(cls) -> AddonLab:
        fake = FakePlane()
        for name in fake.names:
            fake.kube.apiservers[Address(host_of(name), 6443)] = FakeApiserver()
        return cls(fake, await fake.open())

    def __post_init__(self) -> None:
        self.another_process()

    @property
    def objects(self) -> FakeObjects:
        return self.fake.kube.objects

    def another_process(self) -> None:
        """One that knows nothing but what the store has."""
        self.task = AddonTask(monotonic=lambda: self.now)

    async def want(self, *wanted: Addon) -> None:
        """Write down what is wanted, as ``apply`` does."""

        def respecified(seen: ControlPlane) -> ControlPlane:
            spec = seen.spec.model_copy(update={"addons": wanted})
            status = seen.status.model_copy(update={"addon_manifests": ""})
            return seen.model_copy(update={"spec": spec, "status": status})

        resource = await amend(self.plane.store, ControlPlane, "demo", respecified)
        await addons.established(self.plane.store, resource)
        await refresh(self.plane)

    async def turn(self, *, later: float = 0.0) -> dict[str, AddonStatus]:
        """See to them once; what is known of each then."""
        self.now += later
        await self.task.see_to(self.plane)
        return {each.name: each for each in self.plane.resource.status.addons}

    async def applied(self, *wanted: Addon) -> None:
        await self.want(*wanted)
        assert all(not each.why for each in (await self.turn()).values())

    def there(self, path: str) -> bool:
        return path in self.objects.objects

    def value(self, path: str, *where: str) -> object:
        return self.objects.objects[path].fields.get(where)

    def condition(self) -> tuple[str, str]:
        found = next(each for each in self.plane.resource.status.conditions if each.type == "AddonsApplied")
        return f"{found.status.value} {found.reason}", found.message

    def parent(self, name: str) -> str:
        return f"/api/v1/namespaces/kube-system/configmaps/{ApplySetParent(name).name}"
