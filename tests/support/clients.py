"""Clients of a plane: by its kubeconfig alone, one that writes and remembers, and the project's own probe."""

from __future__ import annotations

import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import yaml

from quarterdeck.components.credentials import KeyPair
from quarterdeck.pki.tls import client_context
from support.conditions import CALL, until

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that failed. ``began`` and ``at`` (its end) are Unix seconds."""

    name: str
    why: str
    began: float
    at: float

    def __str__(self) -> str:
        times = " - ".join(datetime.fromtimestamp(each, UTC).isoformat() for each in (self.began, self.at))
        return f"{times} {self.name}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a plane is reached: URLs of its API and, if there is one, of the proxy before it, and the TLS for both."""

    server: str
    proxy: str | None
    context: ssl.SSLContext


@dataclass
class Client:
    """A client of a plane, by its kubeconfig alone."""

    kubeconfig: Path

    def target(self, *, anonymous: bool = False) -> Target:
        """Where the plane is reached as the kubeconfig's user, or as nobody."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        pem = {name: b64decode(text) for name, text in {**cluster, **user}.items() if name.endswith("-data")}
        pair = KeyPair(pem["client-certificate-data"], pem["client-key-data"])
        context = client_context(pem["certificate-authority-data"], None if anonymous else pair)
        return Target(server=cluster["server"], proxy=cluster.get("proxy-url"), context=context)

    @contextmanager
    def http(self, *, timeout: float = 10.0, anonymous: bool = False) -> Iterator[httpx2.Client]:
        """Plain HTTP as the kubeconfig's user, or as nobody."""
        target = self.target(anonymous=anonymous)
        made = httpx2.Client(
            base_url=target.server,
            proxy=target.proxy,
            verify=target.context,
            timeout=timeout,
            trust_env=False,
        )
        with made:
            yield made

    def names(self, resource: str, selector: str = "") -> set[str]:
        """The names of all objects of a kind in the default namespace."""
        with self.http(timeout=60.0) as http:
            answer = http.get(f"/api/v1/namespaces/default/{resource}", params={"labelSelector": selector})
            answer.raise_for_status()
            return {item["metadata"]["name"] for item in answer.json()["items"]}

    def answers(self) -> bool:
        """Whether who connects now is led to an apiserver that is ready, within a moment."""
        try:
            with self.http(timeout=1.0) as http:
                return http.get("/readyz").is_success
        except httpx2.HTTPError:
            return False

    def writes(self, name: str) -> bool:
        """Whether a write was acknowledged, within a moment: of a ConfigMap of that name. Or one of before was done
        whose answer came too late: nobody else uses that name.
        """
        try:
            with self.http(timeout=2.0) as http:
                answer = http.post(CONFIGMAPS, json={"metadata": {"name": name}})
                return answer.is_success or answer.status_code == 409
        except httpx2.HTTPError:
            return False


class Writer:
    """A client that writes ConfigMaps, one after another, each once, and knows which were acknowledged.

    It retries nothing but what RFC 9112 section 9.3.1 has clients do: a request is sent once more when a connection
    that was used before closes without a byte of an answer (safe here: names are unique, so 409 means written).
    Use it in a ``with`` block, which ends with the check that nothing acknowledged is lost.
    """

    def __init__(self, client: Client, label: str, *, pause: float = 0.05) -> None:
        self.acknowledged: list[str] = []
        self.failures: list[Failed] = []
        self._client = client
        self._label = label
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, name=f"writer {label}", daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        until(lambda: len(self.acknowledged) >= 3, "a writer gets to write")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join(CALL)
        if kind is None:
            assert not self._thread.is_alive()
            self.check()

    def check(self) -> None:
        """Everything acknowledged is there."""
        lost = set(self.acknowledged) - self._client.names("configmaps", f"writer={self._label}")
        assert not lost, f"acknowledged and lost: {sorted(lost)}"

    def goes_on(self, what: str, *, writes: int = 5, seconds: float = 60.0) -> None:
        """Wait until it has written more than it has by now."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + writes, f"writing {what}", seconds=seconds)

    def _write(self) -> None:
        number, began = 0, 0.0
        while not self._stop.is_set():
            used = 0
            try:
                with self._client.http() as http:
                    while not self._stop.wait(self._pause):
                        number += 1
                        began = time.time()
                        self._one(http, f"{self._label}-{number}", used, began)
                        used += 1
            except httpx2.HTTPError as error:
                self._failed(f"{self._label}-{number}", f"{type(error).__name__} {error}", began)

    def _one(self, http: httpx2.Client, name: str, used: int, began: float) -> None:
        body = {"metadata": {"name": name, "labels": {"writer": self._label}}, "data": {"name": name}}
        again = False
        try:
            answer = http.post(CONFIGMAPS, json=body)
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            if not used:
                raise
            again = True
            answer = http.post(CONFIGMAPS, json=body)
        if answer.status_code == 201 or (again and answer.status_code == 409):
            self.acknowledged.append(name)
        else:
            self._failed(name, f"status {answer.status_code} {answer.text[:200]}", began)

    def _failed(self, name: str, why: str, began: float) -> None:
        self.failures.append(Failed(name, why, began, time.time()))
