"""The DNS port by dynamic update (RFC 2136), signed with TSIG (RFC 8945), as BIND, Knot and others take it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import dns.asyncquery
import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rrset
import dns.tsig
import dns.tsigkeyring
import dns.update

from quarterdeck.endpoint.records import ADDRESS_TYPES, DnsServer, absolute, ask, record_of, text_of
from quarterdeck.endpoint.waiting import until_answer
from quarterdeck.errors import Conflict, InvalidInput, PreconditionFailed, Unavailable
from quarterdeck.model.endpoints import PersonMust, Record

_TIMEOUT = 5.0
#: What the answers mean that say no (RFC 2136, section 2.2).
_REFUSALS = {
    dns.rcode.REFUSED: "the server does not let this key update it; allow the key to update this name",
    dns.rcode.NOTAUTH: "the server does not know the key, or is not the primary of the zone; name the primary",
    dns.rcode.NOTZONE: "the server says that the name is outside the zone; check the zone's name",
    dns.rcode.NOTIMP: "the server takes no updates; name the primary, and allow updates there",
    dns.rcode.FORMERR: "the server does not understand updates; name the zone's primary",
}
_CONFLICTS = frozenset({dns.rcode.NXDOMAIN, dns.rcode.YXDOMAIN, dns.rcode.NXRRSET, dns.rcode.YXRRSET})


class TsigAlgorithm(StrEnum):
    """How updates are signed; weaker ones are not offered (RFC 8945, section 6)."""

    HMAC_SHA256 = "hmac-sha256"
    HMAC_SHA384 = "hmac-sha384"
    HMAC_SHA512 = "hmac-sha512"


@dataclass(frozen=True, slots=True, kw_only=True)
class TsigKey:
    """A key that the server knows; ``secret`` is in base64."""

    name: str
    secret: str = field(repr=False)
    algorithm: TsigAlgorithm = TsigAlgorithm.HMAC_SHA256


@dataclass(frozen=True, slots=True, kw_only=True)
class Rfc2136Dns:
    """Updates of ``zone`` at its primary ``server``. ``patience``: seconds that ``set`` waits for the answer."""

    server: DnsServer
    zone: str
    key: TsigKey
    patience: float = 20.0

    async def check(self, name: str) -> None:
        """See ``Dns.check``: sends an update that has prerequisites only, so the server checks the key."""
        full = self._in_zone(name)
        update = self._update()
        update.present(dns.name.from_text(self.zone), "SOA")
        await self.send(update, full)
        await ask(self.server, full)

    async def set(self, name: str, addresses: tuple[str, ...], ttl: int) -> PersonMust | None:
        """See ``Dns.set``. The update says what is there now, and fails if somebody changed it meanwhile."""
        full, wanted = self._in_zone(name), record_of(addresses, ttl)
        await self._exchange(full, wanted)
        return None

    async def observe(self, name: str) -> Record | None:
        """See ``Dns.observe``."""
        return await ask(self.server, self._in_zone(name))

    async def remove(self, name: str) -> PersonMust | None:
        """See ``Dns.remove``."""
        await self._exchange(self._in_zone(name), None)
        return None

    async def _exchange(self, name: str, wanted: Record | None) -> None:
        former = await ask(self.server, name)
        if former != wanted:
            await self.send(self.change(name, former, wanted), name)
        await until_answer(self.server, name, wanted, patience=self.patience)

    def change(self, name: str, former: Record | None, wanted: Record | None) -> dns.update.UpdateMessage:
        """The signed update that makes ``wanted`` of ``former``, and fails if the record is not that any more."""
        update, owner = self._update(), dns.name.from_text(name)
        for kind in ADDRESS_TYPES:
            before = text_of(former, kind) if former else ()
            if before:
                update.present(owner, kind, *before)
            else:
                update.absent(owner, kind)
            if before:
                update.delete(owner, kind)
            after = text_of(wanted, kind) if wanted else ()
            if wanted and after:
                update.add(owner, dns.rrset.from_text_list(owner, wanted.ttl, "IN", kind, after).to_rdataset())
        return update

    def _update(self) -> dns.update.UpdateMessage:
        try:
            keyring = dns.tsigkeyring.from_text({self.key.name: (self.key.algorithm, self.key.secret)})
            update = dns.update.UpdateMessage(dns.name.from_text(self.zone))
            update.use_tsig(keyring, dns.name.from_text(self.key.name), algorithm=self.key.algorithm)
        except (dns.exception.DNSException, ValueError) as error:
            raise InvalidInput(f"using TSIG key {self.key.name}", str(error), "give its secret in base64") from error
        return update

    async def send(self, update: dns.update.UpdateMessage, name: str) -> None:
        """Send an update over TCP: it is never sent twice, and never cut short. Raises as ``set`` does."""
        doing = f"updating {name} at DNS server {self.server}"
        try:
            response = await dns.asyncquery.tcp(update, self.server.ip, port=self.server.port, timeout=_TIMEOUT)
        except (dns.tsig.PeerBadKey, dns.message.UnknownTSIGKey) as error:
            step = "check the key's name, and that the server lets it update this name"
            raise PreconditionFailed(doing, f"TSIG: {error}", step) from error
        except (dns.tsig.PeerError, dns.tsig.BadSignature, dns.tsig.BadTime) as error:
            raise PreconditionFailed(doing, f"TSIG: {error}", "check the key's secret and both clocks") from error
        except dns.exception.FormError as error:  # what servers say of other servers' zones bears no signature
            step = "name the zone's primary, and let the key update it there"
            raise PreconditionFailed(doing, str(error), step) from error
        except (dns.exception.DNSException, OSError, EOFError) as error:
            raise Unavailable(doing, str(error) or type(error).__name__, "look whether it was done") from error
        code = response.rcode()
        if code in _CONFLICTS:
            raise Conflict(doing, f"the record changed meanwhile ({dns.rcode.to_text(code)})", "look at it again")
        if code in _REFUSALS:
            raise PreconditionFailed(doing, dns.rcode.to_text(code), _REFUSALS[code])
        if code != dns.rcode.NOERROR:
            raise Unavailable(doing, dns.rcode.to_text(code), "look at the server's log")

    def _in_zone(self, name: str) -> str:
        full = absolute(name)
        if not dns.name.from_text(full).is_subdomain(dns.name.from_text(self.zone)):
            raise InvalidInput(f"looking at the name {full}", f"it is not in zone {self.zone}", "check the zone")
        return full
