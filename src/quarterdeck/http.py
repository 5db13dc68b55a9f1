"""One request over HTTP with a deadline, and without a socket left behind."""

from __future__ import annotations

import asyncio

import httpx2


async def answered(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    deadline: float,
    headers: dict[str, str] | None = None,
    content: bytes | None = None,
) -> httpx2.Response:
    """The whole answer to one request. ``deadline`` is in seconds, for each of connecting, the TLS handshake, the head
    of the answer and its body. Raises httpx2.TransportError, of which TimeoutException is one.

    The library closes its socket when its own timeout passes. When it is cancelled in a handshake, it drops it, and
    the garbage collector may come late: so no timeout of ours runs before the connection stands.
    """
    request = client.build_request(method, url, headers=headers, content=content, timeout=deadline)
    response = await client.send(request, stream=True)
    try:
        async with asyncio.timeout(deadline):
            await response.aread()
    except TimeoutError:
        raise httpx2.ReadTimeout(f"its body did not come within {deadline:g} s", request=request) from None
    finally:
        await response.aclose()
    return response
