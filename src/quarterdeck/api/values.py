"""Values with units, versions and paths, each checked for its form."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from quarterdeck.api.names import SITE_NAME_MAX, label_within, shortened
from quarterdeck.api.schema import ABSOLUTE, BYTES, SECONDS, VERSION, label

DEFAULT_KUBERNETES_VERSION = "v1.37.2"
DEFAULT_ETCD_VERSION = "3.7.3"

_VERSION = re.compile(r"v?(\d{1,4}\.\d{1,4}\.\d{1,4})")
_QUANTITY = re.compile(r"(\d{1,18})(|[kMGT]|[KMGT]i)")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h|d)")
_POWERS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_POWERS |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _version(text: str) -> str:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{shortened(text)} is not a version of the form 1.36.3")
    return match.group(1)


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise ValueError(f"{shortened(value)} is not a number of bytes, such as 8Gi or 500M")
    return int(match.group(1)) * _POWERS[match.group(2)]


def seconds_in(text: str) -> float:
    """Seconds from 500ms, 5s, 2m, 1.5h, 7d. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{shortened(text)} is not a time, such as 5s, 500ms or 2m")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def _seconds(value: object) -> object:
    return seconds_in(value) if isinstance(value, str) else value


def _whole_seconds(value: object) -> object:
    seconds = _seconds(value)
    if isinstance(seconds, float):
        if not seconds.is_integer():
            raise ValueError(f"{shortened(value)} is not a whole number of seconds")
        return int(seconds)
    return seconds


def _absolute(path: PurePosixPath) -> PurePosixPath:
    if not path.is_absolute():
        raise ValueError(f"{shortened(str(path))} is not an absolute path")
    return path


def _kubernetes_version(value: str) -> str:
    return f"v{_version(value)}"


#: ``v1.36.3``; the v may be omitted.
KubernetesVersion = Annotated[str, AfterValidator(_kubernetes_version), VERSION]
#: ``3.6.16``; a leading v is removed.
EtcdVersion = Annotated[str, AfterValidator(_version), VERSION]
#: Bytes, as a number or as Kubernetes writes quantities.
Bytes = Annotated[int, BeforeValidator(_bytes), BYTES]
#: Seconds, as a number or as 500ms, 5s, 2m, 7d.
Seconds = Annotated[float, BeforeValidator(_seconds), SECONDS]
#: Seconds without a fraction, for what DNS counts.
WholeSeconds = Annotated[int, BeforeValidator(_whole_seconds), SECONDS]
#: A path on the host that quarterdeck runs on: absolute, since commands are run in many folders.
AbsolutePath = Annotated[PurePosixPath, AfterValidator(_absolute), ABSOLUTE]
Port = Annotated[int, Field(ge=1, le=65535)]
SiteName = Annotated[str, AfterValidator(label_within(SITE_NAME_MAX)), label(SITE_NAME_MAX)]
ZoneName = Annotated[str, AfterValidator(label_within(SITE_NAME_MAX)), label(SITE_NAME_MAX)]
StorageClassName = Annotated[str, AfterValidator(label_within(SITE_NAME_MAX)), label(SITE_NAME_MAX)]
