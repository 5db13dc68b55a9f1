"""The current context of a kubeconfig, for programs that need an apiserver and a client certificate or token."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from quarterdeck.components.credentials import KeyPair
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.input_files import UnreadableFileError, read_bytes, text_in
from quarterdeck.kube.locks import KubeLocks
from quarterdeck.pki.tls import client_context
from quarterdeck.yaml_text.streams import first_document

#: Larger files are not kubeconfigs, certificates or tokens.
_LARGEST_BYTES = 16 * 2**20


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, given: object) -> object:
        """As for Kubernetes' clients, a field of null is absent."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None}


class _Cluster(_Part):
    server: str
    authority: str = Field(default="", alias="certificate-authority-data")
    authority_file: str = Field(default="", alias="certificate-authority")


class _User(_Part):
    certificate: str = Field(default="", alias="client-certificate-data")
    key: str = Field(default="", alias="client-key-data")
    certificate_file: str = Field(default="", alias="client-certificate")
    key_file: str = Field(default="", alias="client-key")
    token: str = ""
    token_file: str = Field(default="", alias="tokenFile")


class _Context(_Part):
    cluster: str
    user: str


class _NamedCluster(_Part):
    name: str
    cluster: _Cluster


class _NamedUser(_Part):
    name: str
    user: _User


class _NamedContext(_Part):
    name: str
    context: _Context


class _Config(_Part):
    current: str = Field(alias="current-context")
    clusters: tuple[_NamedCluster, ...]
    users: tuple[_NamedUser, ...]
    contexts: tuple[_NamedContext, ...]


def locks_of(path: Path, namespace: str = "kube-system") -> KubeLocks:
    """The locks of the cluster in a kubeconfig's current context; no request is sent yet.

    Raises NotFound; InvalidInput for one that cannot be read, or whose user authenticates by other means than a
    certificate or a token (a program, a password).
    """
    doing = f"reading the kubeconfig {path}"
    try:
        config = _Config.model_validate(first_document(text_in(_read(path, doing)), f"the kubeconfig {path}"))
        context = next(each.context for each in config.contexts if each.name == config.current)
        cluster = next(each.cluster for each in config.clusters if each.name == context.cluster)
        user = next(each.user for each in config.users if each.name == context.user)
        authority = _content(path, cluster.authority, cluster.authority_file, doing)
        certificate = _content(path, user.certificate, user.certificate_file, doing)
        key = _content(path, user.key, user.key_file, doing)
        token = _token(path, user)
        known = bool(key or user.token or (user.token_file and _read(path.parent / user.token_file, doing).strip()))
    except UnreadableFileError as error:
        raise InvalidInput(doing, str(error)) from error
    except StopIteration:
        raise InvalidInput(doing, "its current context names an entry that does not exist") from None
    except (ValidationError, ValueError) as error:
        raise InvalidInput(doing, str(error).replace("\n", " ")) from error
    if not known:
        raise InvalidInput(doing, "its user has neither a certificate nor a token", "use a kubeconfig that has one")
    tls = client_context(authority, KeyPair(certificate, key) if key else None)
    return KubeLocks(cluster.server, tls, namespace=namespace, token=token)


def _content(path: Path, data: str, file: str, doing: str) -> bytes:
    if data:
        return base64.b64decode("".join(data.split()), validate=True)
    return _read(path.parent / file, doing) if file else b""


def _token(path: Path, user: _User) -> Callable[[], str]:
    if user.token_file:
        file = path.parent / user.token_file
        return lambda: read_bytes(file, _LARGEST_BYTES).decode().strip()
    return lambda: user.token


def _read(path: Path, doing: str) -> bytes:
    if not path.exists():
        raise NotFound(doing, f"{path} does not exist")
    try:
        return read_bytes(path, _LARGEST_BYTES)
    except UnreadableFileError as error:
        raise InvalidInput(doing, f"{path}: {error}") from error
