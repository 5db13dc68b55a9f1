"""Certificates in PEM, as Kubernetes takes them (client-go: util/cert/pem.go), but for blocks of other kinds.

Text between the blocks is a comment: ``openssl`` writes ``subject=`` lines, bundles name each authority. Kubernetes
skips a block that is no certificate; here it is refused, since it may be a key.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

_CERTIFICATE = "CERTIFICATE"
_BEGIN = re.compile(r"-----BEGIN ([^\n]*?)-----[ \t\r]*(?:\n|$)")


def certificates(text: str) -> str:
    """The text, if it has certificates and no other blocks. Raises ValueError that names the block and its line."""
    if not list(_bodies(text)):  # all of them are looked at
        raise ValueError("has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    return text


def _bodies(text: str) -> Iterator[bytes]:
    from cryptography.x509 import load_der_x509_certificate  # slow to load

    for number, begin in enumerate(_BEGIN.finditer(text), start=1):
        block = f"block {number} (line {text.count(chr(10), 0, begin.start()) + 1})"
        if begin[1] != _CERTIFICATE:
            raise ValueError(f"{block} is not a certificate but {begin[1] or 'a block without a name'}; remove it")
        body, end, _ = text[begin.end() :].partition(f"-----END {_CERTIFICATE}-----")
        if not end or "-----BEGIN" in body:
            raise ValueError(f"{block} has no line -----END {_CERTIFICATE}-----")
        try:
            content = base64.b64decode("".join(body.split()), validate=True)
        except binascii.Error as error:
            raise ValueError(f"{block} is not a certificate: what is in it is not base64") from error
        try:
            load_der_x509_certificate(content)
        except ValueError as error:
            raise ValueError(f"{block} is not a certificate: {' '.join(str(error).split())}") from error
        yield content
