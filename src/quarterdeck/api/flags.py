"""Flags of programs, as users write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

from quarterdeck.api.schema import FLAGS, refuse


def _flags(value: object) -> object:
    """YAML reads ``v: 2`` and ``profiling: false`` as a number and a boolean; a flag's value is text."""
    if isinstance(value, list):
        raise ValueError(LISTED_FLAGS)
    if not isinstance(value, dict):
        return value
    for name in value:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", str(name)):
            refuse((str(name), "is not the name of a flag (it is given without dashes in front)"))
    texts = {True: "true", False: "false"}
    return {
        name: texts[item] if isinstance(item, bool) else str(item) if isinstance(item, int | float) else item
        for name, item in value.items()
    }


Flags = Annotated[dict[str, str], BeforeValidator(_flags), FLAGS]


# Features of Kubernetes that quarterdeck does not have, or has elsewhere, by the field names that users try.

SERVICE_RANGES = "spec.serviceCidrs has the ranges of service addresses: one, or one of IPv4 and one of IPv6"
KMS = (
    "KMS providers are not supported: Secrets are encrypted with keys of the plane's own, which spec.encryption.secrets"
    " turns on and off"
)
SCHEDULER = "spec.scheduler.configuration has the KubeSchedulerConfiguration, with profiles, plugins and extenders"
LISTED_FLAGS = "the list form of kubeadm (name and value) is not supported: write each flag as 'name: value'"

#: These fields, in lower case.
FIELDS: Mapping[str, str] = {
    **dict.fromkeys(
        ("dualstack", "ipfamilies", "ipfamily", "ipfamilypolicy", "servicecidr", "secondaryservicecidr"),
        SERVICE_RANGES,
    ),
    **dict.fromkeys(("kms", "kmsprovider", "providers", "encryptionconfiguration", "encryptionproviderconfig"), KMS),
    **dict.fromkeys(("schedulerconfig", "schedulerconfiguration", "kubeschedulerconfiguration"), SCHEDULER),
}
