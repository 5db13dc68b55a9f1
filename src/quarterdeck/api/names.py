"""Names: their lengths and forms, so that every name built from them is valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address

#: Of a plane. With an ordinal and a component it still fits into a DNS label (63, RFC 1035) and a certificate's common
#: name (64, RFC 5280).
PLANE_NAME_MAX = 40
#: Of a site and of a zone: a machine's name consists of both and a number, and its sockets' paths must stay below the
#: 108 bytes that unix(7) allows.
SITE_NAME_MAX = 20
DNS_LABEL_MAX = 63
DNS_NAME_MAX = 253

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_RULE = "lower-case letters, digits and '-', with a letter or digit at both ends"


def dns_label(name: str) -> str:
    """``name`` if it is a DNS label (RFC 1123); raises ValueError."""
    if not _LABEL.fullmatch(name):
        raise ValueError(f"{shortened(name)} is not a DNS label ({_RULE})")
    if len(name) > DNS_LABEL_MAX:
        raise ValueError(f"has {len(name)} characters; at most {DNS_LABEL_MAX} are allowed")
    return name


def label_within(longest: int) -> Callable[[str], str]:
    """A check for DNS labels of at most ``longest`` characters."""

    def check(name: str) -> str:
        dns_label(name)
        if len(name) > longest:
            raise ValueError(f"has {len(name)} characters; at most {longest} are allowed")
        return name

    return check


def dns_name(name: str) -> str:
    """``name`` without its last dot if it is a DNS name; raises ValueError."""
    plain = name.removesuffix(".")
    if _is_address(plain):
        raise ValueError(f"{plain!r} is an address, not a DNS name")
    if len(plain) > DNS_NAME_MAX:
        raise ValueError(f"has {len(plain)} characters; at most {DNS_NAME_MAX} are allowed")
    if not all(_LABEL.fullmatch(label) and len(label) <= DNS_LABEL_MAX for label in plain.split(".")):
        raise ValueError(f"{shortened(name)} is not a DNS name ({_RULE} of each part)")
    return plain


def address(text: str) -> str:
    """``text`` if it is an IP address that clients can reach, in its shortest form; raises ValueError."""
    if not _is_address(text):
        raise ValueError(f"{shortened(text)} is not an IP address")
    parsed = ip_address(text)
    if parsed.is_unspecified or parsed.is_multicast:
        raise ValueError(f"{text!r} is not an address that clients can connect to")
    return str(parsed)


def host(text: str) -> str:
    """``text`` if it is an IP address or a DNS name; raises ValueError."""
    return address(text) if _is_address(text) else dns_name(text)


def shortened(value: object, longest: int = 60) -> str:
    """A value as errors show it: its repr, shortened."""
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def few(words: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first of some words, and how many more there are."""
    more = f", and {len(words) - most} more" if len(words) > most else ""
    return separator.join(words[:most]) + more


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
