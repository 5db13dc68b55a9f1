"""An issuer of JSON web tokens, as OIDC has it: a small HTTPS server on the loopback."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

from quarterdeck.files import write_secret
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import CA_LIFETIME, CertificateRequest, Usage

AUDIENCE = "quarterdeck"
_IP = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Issuer:
    """``authority`` (PEM) signed its certificate."""

    url: str
    authority: str
    key: ec.EllipticCurvePrivateKey

    def authentication(self) -> dict[str, Any]:
        """``spec.authentication`` that lets in who shows a token of it."""
        trusted = {"url": self.url, "audiences": [AUDIENCE], "certificateAuthority": self.authority}
        return {"jwt": [{"issuer": trusted, "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}}}]}

    def token(self, subject: str) -> str:
        """A token (ES256) for an hour."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 3600}
        text = f"{_part({'alg': 'ES256', 'kid': 'k'})}.{_part(claims)}"
        r, s = utils.decode_dss_signature(self.key.sign(text.encode(), ec.ECDSA(SHA256())))
        return f"{text}.{_encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


@contextmanager
def issuer(folder: Path) -> Iterator[Issuer]:
    """An issuer that answers for the block."""
    now = datetime.now(UTC)
    authority = create_authority("issuer-ca", now)
    request = CertificateRequest(common_name="issuer", usage=Usage.SERVER, lifetime=CA_LIFETIME, ip_addresses=(_IP,))
    pair = issue(authority, request, now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    write_secret(folder / "issuer.pem", pair.certificate + pair.key)
    context.load_cert_chain(folder / "issuer.pem")
    key = ec.generate_private_key(ec.SECP256R1())
    pages: dict[str, object] = {}
    server = ThreadingHTTPServer((_IP, 0), partial(_Pages, pages))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://{_IP}:{server.server_port}"
    point = key.public_key().public_numbers()
    public = {"kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "alg": "ES256"}
    public |= {"x": _encoded(point.x.to_bytes(32, "big")), "y": _encoded(point.y.to_bytes(32, "big"))}
    pages["/keys"] = {"keys": [public]}
    pages["/.well-known/openid-configuration"] = {
        "issuer": url,
        "jwks_uri": f"{url}/keys",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Issuer(url, authority.certificate.decode(), key)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Pages(BaseHTTPRequestHandler):
    def __init__(self, pages: dict[str, object], *args: Any) -> None:
        self._pages = pages
        super().__init__(*args)

    def do_GET(self) -> None:
        body = json.dumps(self._pages.get(self.path)).encode()
        self.send_response(200 if self.path in self._pages else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def _part(of: dict[str, object]) -> str:
    return _encoded(json.dumps(of).encode())


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
