"""The certificates of a plane's replicas: issued, stored with the plane's keys, and deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import SecretStr

from quarterdeck.actions.addresses import seat_of
from quarterdeck.actions.plane import Plane
from quarterdeck.api.belongings import PlaneSecrets as SecretsResource
from quarterdeck.api.plane.certificates import Signer
from quarterdeck.components.catalogue import programs_of
from quarterdeck.components.credentials import ReplicaSecrets, SharedSecrets, uses
from quarterdeck.components.settings import service_ip
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuance import ReplicaNames, has_all, with_replica, without_program, without_replica


async def certificates_of(plane: Plane, record: Replica) -> ReplicaSecrets:
    """A replica's certificates: issued and stored the first time, then unchanged until its revision has a newer
    generation, or other authorities issue them.
    """
    template = plane.template_of(record)
    generation = template.certificates.generation
    names = ReplicaNames(
        replica=record.name,
        addresses=_addresses(plane, record),
        service_ip=service_ip(template),
        programs=programs_of(template),
        endpoint_names=(template.endpoint_name,) if template.endpoint_name else (),
        endpoint_addresses=tuple(sorted(plane.addresses | _of_the_user(plane))),
    )
    used = uses(template.certificates)
    if not has_all(plane.secrets.used(used), names, generation):
        now = datetime.now(UTC)  # of two units of a replica, one issues them, and the other finds them
        await _write_secrets(plane, lambda secrets: with_replica(secrets.used(used), names, now, generation=generation))
    found = plane.secrets.replica(record.name)
    assert found is not None
    return found


def _of_the_user(plane: Plane) -> frozenset[str]:
    address = plane.resource.spec.endpoint.address
    return frozenset({address} if address is not None else ())


def _addresses(plane: Plane, record: Replica) -> tuple[str, ...]:
    """The addresses of its seat, and that of its machine, from which its connections come: members of etcd accept only
    peers whose certificate has the address that they connect from.
    """
    machine = plane.machines.get((record.site, record.machine))
    hosts = (*seat_of(record).hosts, *([machine.address] if machine is not None else []))
    return tuple(dict.fromkeys(hosts))


async def forget_certificates(plane: Plane, record: Replica) -> None:
    """Delete the certificates of a released replica."""
    if plane.secrets.replica(record.name) is not None:
        await _write_secrets(plane, lambda secrets: without_replica(secrets, record.name))


async def forget_program(plane: Plane, record: Replica, program: Component) -> None:
    """Delete the certificates of a program that a replica no longer has."""
    if without_program(plane.secrets, record.name, program) is not plane.secrets:
        await _write_secrets(plane, lambda secrets: without_program(secrets, record.name, program))


async def _write_secrets(plane: Plane, change: Callable[[SharedSecrets], SharedSecrets]) -> None:
    async with plane.writing:
        stored = await plane.store.get(SecretsResource, plane.name)
        secrets = decode(stored.data.get_secret_value())
        changed = change(secrets)
        if changed is not secrets:
            data = SecretStr(encode(changed))
            await plane.store.update(stored.model_copy(update={"data": data}), lease=plane.lease)
        plane.secrets = changed.used({each: plane.secrets.authority(each).use for each in Signer})
