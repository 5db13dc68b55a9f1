"""What users of Kubernetes know and quarterdeck does not have, by the names that they write it under."""

from __future__ import annotations

from collections.abc import Mapping

DUAL_STACK = "dual-stack is not supported: a plane has one range of service addresses, of IPv4 or of IPv6"
KMS = (
    "KMS providers are not supported: Secrets are encrypted with keys of the plane's own, which spec.encryption.secrets"
    " turns on and off"
)
SCHEDULER = (
    "a KubeSchedulerConfiguration is not supported: set flags in spec.extraArgs.kubeScheduler, and run a second"
    " scheduler in the plane for profiles and plugins"
)
LISTED_FLAGS = "the list form of kubeadm (name and value) is not supported: write each flag as 'name: value'"

#: Fields that there are not, in lower case.
FIELDS: Mapping[str, str] = {
    **dict.fromkeys(
        ("dualstack", "ipfamilies", "ipfamily", "ipfamilypolicy", "servicecidrs", "secondaryservicecidr"), DUAL_STACK
    ),
    **dict.fromkeys(("kms", "kmsprovider", "providers", "encryptionconfiguration", "encryptionproviderconfig"), KMS),
    **dict.fromkeys(("schedulerconfig", "schedulerconfiguration", "kubeschedulerconfiguration"), SCHEDULER),
}
