"""The DNS port with dynamic update (RFC 2136), signed with TSIG (RFC 8945), as BIND, Knot and others accept it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.tsig
import dns.tsigkeyring
import dns.update

from quarterdeck.endpoint.dns.claims import claim_name, claim_text, require_own
from quarterdeck.endpoint.dns.records import (
    ADDRESS_TYPES,
    DnsServer,
    absolute,
    ask,
    look,
    name_servers,
    record_of,
    text_of,
    until_answer,
)
from quarterdeck.errors import Conflict, InvalidInput, PreconditionFailed, Unavailable
from quarterdeck.model.endpoints import DnsRecord, Ownership, PersonMust, RecordClaim, Sighting

_TIMEOUT = 5.0
_NAMED_FOR = 30.0  # seconds for which the zone's own list of servers is cached
#: The meaning of refusals (RFC 2136, section 2.2).
_REFUSALS = {
    dns.rcode.REFUSED: (
        "the server does not let this key update it; allow the key to update this name, and the TXT record at "
        "_quarterdeck below it"
    ),
    dns.rcode.NOTAUTH: "the server does not know the key, or is not the primary of the zone; name the primary",
    dns.rcode.NOTZONE: "the server says that the name is outside the zone; check the zone's name",
    dns.rcode.NOTIMP: "the server takes no updates; name the primary, and allow updates there",
    dns.rcode.FORMERR: "the server does not understand updates; name the zone's primary",
}
_CONFLICTS = frozenset({dns.rcode.NXDOMAIN, dns.rcode.YXDOMAIN, dns.rcode.NXRRSET, dns.rcode.YXRRSET})


class SigningAlgorithm(StrEnum):
    """The algorithms that sign updates; weaker ones are not offered (RFC 8945, section 6)."""

    HMAC_SHA256 = "hmac-sha256"
    HMAC_SHA384 = "hmac-sha384"
    HMAC_SHA512 = "hmac-sha512"


@dataclass(frozen=True, slots=True, kw_only=True)
class TsigKey:
    """A key that the server knows; ``secret`` is in base64."""

    name: str
    secret: str = field(repr=False)
    algorithm: SigningAlgorithm = SigningAlgorithm.HMAC_SHA256


@dataclass(frozen=True, slots=True, kw_only=True)
class Rfc2136Dns:
    """Updates of ``zone`` at its primary ``server``. ``patience``: seconds that ``set`` waits for the answer.

    ``others`` are the zone's other authoritative servers, all of which must give the same answer before a change
    counts: they serve clients too. None: those in the zone (NS).
    """

    server: DnsServer
    zone: str
    key: TsigKey
    others: tuple[DnsServer, ...] | None = ()
    patience: float = 20.0
    _named: list[tuple[float, tuple[DnsServer, ...]]] = field(default_factory=list, repr=False, compare=False)

    async def check(self, name: str) -> None:
        """See ``Dns.check``: sends an update that has prerequisites only, so the server checks the key."""
        full = self._in_zone(name)
        update = self._update()
        update.present(dns.name.from_text(self.zone), "SOA")
        await self.send(update, full)
        seen = await self.look(full)
        if seen.torn:
            step = "correct that, or name the servers in spec.endpoint.rfc2136.secondaries"
            raise PreconditionFailed(f"querying the DNS servers of zone {self.zone} for {full}", seen.torn, step)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """See ``Dns.set``. The update requires the current records, and fails if they were changed in between."""
        full, wanted = self._in_zone(name), record_of(addresses, ttl)
        await self._exchange(full, wanted, claim)
        return None

    async def observe(self, name: str) -> DnsRecord | None:
        """See ``Dns.observe``."""
        return await ask(self.server, self._in_zone(name))

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``."""
        return await look(self.server, self._in_zone(name), await self._others())

    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """See ``Dns.remove``."""
        await self._exchange(self._in_zone(name), None, claim)
        return None

    async def _others(self) -> tuple[DnsServer, ...]:
        if self.others is not None:
            return self.others
        now = asyncio.get_running_loop().time()
        if not self._named or now - self._named[-1][0] > _NAMED_FOR:
            self._named[:] = [(now, await name_servers(self.server, self.zone))]
        return self._named[-1][1]

    async def _exchange(self, name: str, wanted: DnsRecord | None, claim: RecordClaim | None) -> None:
        seen = await look(self.server, name)
        require_own(f"changing the record {name}", seen, claim)
        owner = claim.ownership if claim is not None and wanted is not None else None
        if (seen.record, seen.ownership) != (wanted, owner):
            await self.send(self.change(name, seen.record, wanted, seen.ownership, owner), name)
        what = f"DNS server {self.server}, and all others of its zone, to answer for {name}"
        await until_answer(lambda: self.look(name), what, wanted, owner, patience=self.patience)

    def change(
        self,
        name: str,
        former: DnsRecord | None,
        wanted: DnsRecord | None,
        held: Ownership | None = None,
        owner: Ownership | None = None,
    ) -> dns.update.UpdateMessage:
        """The signed update that changes ``former`` to ``wanted`` and replaces the claim ``held`` by one of ``owner``;
        it fails if either has changed (RFC 2136 section 2.4.2: by value), so a late update changes nothing.
        """
        update, place, claimed = self._update(), dns.name.from_text(name), dns.name.from_text(claim_name(name))
        for kind in ADDRESS_TYPES:
            _exchange_set(update, place, kind, text_of(former, kind) if former else ())
            after = text_of(wanted, kind) if wanted else ()
            if wanted and after:
                update.add(place, dns.rrset.from_text_list(place, wanted.ttl, "IN", kind, after).to_rdataset())
        _exchange_set(update, claimed, dns.rdatatype.TXT, (_quoted(held),) if held else ())
        if wanted and owner:
            text = dns.rrset.from_text_list(claimed, wanted.ttl, "IN", dns.rdatatype.TXT, (_quoted(owner),))
            update.add(claimed, text.to_rdataset())
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
        """Send an update over TCP: it is never sent twice, and never truncated. Raises as ``set`` does."""
        from dns import asyncquery  # see questions._by_tcp

        doing = f"updating {name} at DNS server {self.server}"
        try:
            response = await asyncquery.tcp(update, self.server.ip, port=self.server.port, timeout=_TIMEOUT)
        except (dns.tsig.PeerBadKey, dns.message.UnknownTSIGKey) as error:
            step = "check the key's name, and that the server lets it update this name"
            raise PreconditionFailed(doing, f"TSIG: {error}", step) from error
        except (dns.tsig.PeerError, dns.tsig.BadSignature, dns.tsig.BadTime) as error:
            raise PreconditionFailed(doing, f"TSIG: {error}", "check the key's secret and both clocks") from error
        except dns.exception.FormError as error:  # answers about other servers' zones are not signed
            step = "name the zone's primary, and let the key update it there"
            raise PreconditionFailed(doing, str(error), step) from error
        except (dns.exception.DNSException, OSError, EOFError) as error:
            raise Unavailable(doing, str(error) or type(error).__name__, "check whether it was done") from error
        code = response.rcode()
        if code in _CONFLICTS:
            raise Conflict(doing, f"the record was changed in between ({dns.rcode.to_text(code)})", "check it again")
        if code in _REFUSALS:
            raise PreconditionFailed(doing, dns.rcode.to_text(code), _REFUSALS[code])
        if code != dns.rcode.NOERROR:
            raise Unavailable(doing, dns.rcode.to_text(code), "check the server's log")

    def _in_zone(self, name: str) -> str:
        full = absolute(name)
        if not dns.name.from_text(full).is_subdomain(dns.name.from_text(self.zone)):
            raise InvalidInput(f"checking the name {full}", f"it is not in zone {self.zone}", "check the zone")
        return full


def _exchange_set(
    update: dns.update.UpdateMessage, place: dns.name.Name, kind: dns.rdatatype.RdataType, before: tuple[str, ...]
) -> None:
    """Delete the set of one type, which must be exactly ``before``."""
    if before:
        update.present(place, kind, *before)
        update.delete(place, kind)
    else:
        update.absent(place, kind)


def _quoted(ownership: Ownership) -> str:
    return f'"{claim_text(ownership)}"'
