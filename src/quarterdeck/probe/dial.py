"""Opening connections: name, TCP, TLS."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.happy_eyeballs import connected
from quarterdeck.probe.http1 import Http1Connection, close_stream, describe
from quarterdeck.probe.http2 import Http2Connection
from quarterdeck.probe.network import Network
from quarterdeck.probe.resolve import ClientResolver
from quarterdeck.probe.target import ProbeTarget
from quarterdeck.probe.wire import ClientConnection

_GOODBYE = 0.5  # seconds for the peer to answer a TLS close


class HttpVersion(StrEnum):
    """The protocol, by its ALPN name."""

    ONE = "http/1.1"
    TWO = "h2"


def tls_context(target: ProbeTarget, http: HttpVersion) -> ssl.SSLContext:
    """Mutual TLS that trusts the target's CA only. Raises InvalidInput when the PEMs are invalid."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no other CA, checks the name
        context.load_verify_locations(cadata=target.ca_pem)
        memory = os.memfd_create("client", os.MFD_CLOEXEC)  # OpenSSL needs a file, and the key must not touch a disk
        with os.fdopen(memory, "wb") as stream:
            stream.write(f"{target.client_cert_pem}\n{target.client_key_pem}".encode())
            stream.flush()
            context.load_cert_chain(f"/proc/self/fd/{memory}")
    except (ssl.SSLError, ValueError) as error:
        raise InvalidInput(
            "loading the probe's certificates", str(error), "are the PEMs of the kubeconfig complete?"
        ) from error
    context.set_alpn_protocols([http.value])
    return context


@dataclass(slots=True, kw_only=True)
class Dialer:
    """Opens connections for one client, and counts them."""

    target: ProbeTarget
    resolver: ClientResolver
    network: Network
    context: ssl.SSLContext
    http: HttpVersion
    opened: int = 0

    async def dial(self) -> ClientConnection:
        """A new connection, after TCP and TLS handshakes. Raises Unavailable, and what ``Network`` does."""
        addresses = await self.resolver.resolve()
        host, port = self.target.host, self.target.port
        doing = f"connecting to {' or '.join(addresses)} port {port}"
        try:
            address, reached = await connected(addresses, port, self.network.connect)
            reader, writer = await asyncio.open_connection(
                sock=reached, ssl=self.context, server_hostname=host, ssl_shutdown_timeout=_GOODBYE
            )
        except ssl.SSLCertVerificationError as error:
            raise Unavailable(doing, f"the certificate is not trusted: {error.verify_message}") from error
        except ssl.SSLError as error:
            raise Unavailable(doing, f"TLS: {(error.reason or str(error)).lower().replace('_', ' ')}") from error
        except OSError as error:
            raise Unavailable(doing, describe(error)) from error
        self.opened += 1
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if self.http is HttpVersion.ONE:
            return Http1Connection(reader, writer, address=address, host=authority)
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() != HttpVersion.TWO.value:
            await close_stream(writer)
            raise Unavailable(doing, "the server does not speak HTTP/2")
        return Http2Connection(reader, writer, address=address, host=authority)
