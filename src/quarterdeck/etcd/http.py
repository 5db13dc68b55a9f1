"""What etcd tells over plain HTTP requests: the version on its peer port, numbers in its metrics."""

from __future__ import annotations

import httpx2

from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.faults import Reason, fault
from quarterdeck.pki.tls import client_context


class EtcdHttp:
    """GET requests to members, each within ``deadline`` seconds."""

    def __init__(self, tls: ClientTls, *, deadline: float) -> None:
        self._deadline = deadline
        self._client = httpx2.AsyncClient(verify=client_context(tls.ca, tls.client), timeout=deadline, trust_env=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def peer_version_answers(self, peer_url: str) -> bool:
        """Whether the peer port answers /version: the request that a starting member makes of all others."""
        try:
            response = await self._client.get(f"{peer_url}/version")
        except httpx2.TransportError:
            return False
        return response.status_code == httpx2.codes.OK

    async def metric(self, metrics_url: str, wanted: str) -> int:
        """A counter or gauge without labels. Raises Unavailable."""
        doing = f"reading etcd's metrics at {metrics_url}"
        try:
            response = await self._client.get(f"{metrics_url}/metrics")
        except httpx2.TimeoutException as error:
            raise fault(doing, Reason.DEADLINE, f"no answer within {self._deadline:g} s") from error
        except httpx2.TransportError as error:
            raise fault(doing, Reason.UNREACHABLE, str(error) or type(error).__name__) from error
        for line in response.text.splitlines():
            name, _, number = line.partition(" ")
            if name == wanted:
                return int(float(number))
        raise fault(doing, Reason.OTHER, f"status {response.status_code} without {wanted}")
