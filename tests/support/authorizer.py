"""A webhook that authorizes: a small HTTPS server on the loopback that wants a client certificate."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from quarterdeck.components.credentials import KeyPair
from quarterdeck.files import write_secret
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import CA_LIFETIME, CertificateRequest, Usage

_IP = "127.0.0.1"


@dataclass
class Authorizer:
    """``answers``: the status of each user's requests, ``{}`` for others. ``asked``: the users asked about."""

    answers: Mapping[str, Mapping[str, Any]]
    authority: KeyPair
    client: KeyPair
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def server(self) -> dict[str, Any]:
        """The ``server`` of a webhook in ``spec.authorization``."""
        return {
            "url": self.url,
            "certificateAuthority": self.authority.certificate.decode(),
            "clientCertificate": self.client.certificate.decode(),
            "clientKey": self.client.key.decode(),
        }


@contextmanager
def authorizer(folder: Path, answers: Mapping[str, Mapping[str, Any]]) -> Iterator[Authorizer]:
    """A webhook that answers for the block."""
    now = datetime.now(UTC)
    authority = create_authority("authorizer-ca", now)
    shown, client = (
        issue(authority, CertificateRequest(common_name=name, usage=usage, lifetime=CA_LIFETIME, ip_addresses=of), now)
        for name, usage, of in (("authorizer", Usage.SERVER, (_IP,)), ("kube-apiserver", Usage.CLIENT, ()))
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    write_secret(folder / "authorizer.pem", shown.certificate + shown.key)
    context.load_cert_chain(folder / "authorizer.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.certificate.decode())
    made = Authorizer(answers, authority, client)
    server = ThreadingHTTPServer((_IP, 0), partial(_Reviews, made))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made.url = f"https://{_IP}:{server.server_port}/authorize"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Reviews(BaseHTTPRequestHandler):
    def __init__(self, authorizer: Authorizer, *args: Any) -> None:
        self._authorizer = authorizer
        super().__init__(*args)

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = review["spec"]["user"]
        self._authorizer.asked.append(user)
        review["status"] = {"allowed": False, **self._authorizer.answers.get(user, {})}
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""
