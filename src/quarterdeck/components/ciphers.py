"""The cipher suites of TLS 1.2 that servers offer; those of TLS 1.3 are all good, and Go lets nobody choose."""

from __future__ import annotations

#: By Go's names, which etcd and Kubernetes share: forward secrecy and authenticated encryption (CIS 1.2.29). The first
#: two of each kind are also what HTTP/2 asks for (RFC 9113, 9.2.2).
SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)

#: What users may choose from: the same, by all their names, and those of TLS 1.3.
STRONG = frozenset(
    {
        *SUITES,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
    }
)


def suites() -> str:
    """The value of the flag."""
    return ",".join(SUITES)
