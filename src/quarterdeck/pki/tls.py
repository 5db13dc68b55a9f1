"""The one builder of TLS contexts, from bytes."""

from __future__ import annotations

import os
import ssl

from quarterdeck.components.credentials import KeyPair


def client_context(authority: bytes, client: KeyPair | None = None) -> ssl.SSLContext:
    """A context that trusts only ``authority`` (PEM) and presents ``client``, if given. TLS 1.2 or later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority.decode())
    if client is not None:
        _load(context, client)
    return context


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Python loads keys from files only: this one is in memory, and no other process can open it by name."""
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.write(pair.certificate + b"\n" + pair.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
