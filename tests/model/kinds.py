"""The classes of things that go wrong in a world."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from model.faulty_truth import FaultyTruth


class Kind(StrEnum):
    """The classes of things that go wrong. Each has a mutant that it catches alone, but for those classes that leave
    the same behind (test_fault_kinds.py).
    """

    MACHINE_DIES = "a machine dies"
    MACHINE_FREEZES = "a machine freezes"
    CRASH = "a program crashes"
    STOPPED = "somebody stops a member"
    CUT = "two sites are cut"
    CUT_ONE_WAY = "two sites are cut one way"
    EDGE_DIES = "a load balancer dies"
    ADDRESS_GOES = "a load balancer takes another one's address"
    ROUTER_STOPS = "somebody stops what has addresses at an edge"
    SITE_DIES = "a site dies"
    UNSEEN_SUPERVISOR = "a supervisor does not answer us"
    UNSEEN_MEMBER = "a member does not answer us"
    UNSEEN_APISERVER = "an apiserver does not answer us"
    UNSEEN_MACHINE = "nothing of a machine answers us"
    UNSEEN_EDGE = "a load balancer does not answer us"
    UNSEEN_SITE = "nothing of a site answers us"
    UNSEEN_DNS = "the DNS server does not answer us"
    UNREAD = "the membership does not answer us"
    SNAPSHOT = "a snapshot has the publication"
    LEADER_MOVES = "leadership moves"
    VOTER_LAGS = "a voter lags"
    CHECK_ERRS = "a load balancer's check errs"
    DATA_LOST = "data is deleted"
    BLANK = "a machine comes back blank"
    TAKEOVER = "another driver takes over"
    SOME_STEPS = "some steps fail"
    REFUSED = "a step is refused every time"
    SWAP_BROKEN_OFF = "the driver dies amid the swap"
    REPLY_LOST = "a reply is lost"
    LATE = "the call of an old driver is late"
    OLD_LOOK = "a look is old"
    MIXED_LOOK = "a look has answers of different age"
    SLOW = "the driver is slow"
    FULL = "etcd has no room left"
    DIFFERS = "the data of a member differs"
    HANGS = "a program hangs"
    SICK = "a program hangs, and does so again whenever it is started there"
    LAGS = "a member does not catch up"
    LAME = "a member does not catch up, nor does any that is started there"
    ALTERED = "somebody changes the files of a program"
    VOTER_ADDED = "a person adds a voter that does not start"
    LEARNER_ADDED = "a person adds a learner that does not start"
    MEMBER_REMOVED = "a person removes a member"
    MEMBER_UPDATED = "a person changes the peer URLs of a member"
    LEARNER_PROMOTED = "a person promotes a learner"
    VOTER_RUNS = "a person adds a voter that runs"
    URLS_SWAPPED = "a person gives members each other's peer URLs"
    URL_TAKEN = "a person adds a voter at the peer URL of a member"
    AUTHENTICATES = "a person turns etcd's authentication on"
    ALARMS = "a person turns an alarm of etcd on or off"
    EDGE_LOOPS = "a load balancer exits repeatedly"


#: What a person can do to the membership with etcdctl.
MEMBERSHIP_BY_HAND = frozenset(
    {Kind.VOTER_ADDED, Kind.LEARNER_ADDED, Kind.MEMBER_REMOVED, Kind.MEMBER_UPDATED, Kind.LEARNER_PROMOTED}
)
#: The same where voters run somewhere else, and members have each other's peer URLs.
STRANGERS = frozenset({Kind.VOTER_RUNS, Kind.URLS_SWAPPED, Kind.URL_TAKEN})
#: What else a person can do with etcdctl that stops a plane, or its exchanges.
STATES_BY_HAND = frozenset({Kind.AUTHENTICATES, Kind.ALARMS})
#: Classes that only happen in searches which ask for them: others lead to the same, or to little else.
ASKED_FOR = frozenset(
    {Kind.FULL, Kind.DIFFERS, Kind.HANGS, Kind.SICK, Kind.ALTERED, Kind.LAGS, Kind.LAME}
    | {Kind.ADDRESS_GOES, Kind.ROUTER_STOPS, Kind.EDGE_LOOPS}
    | MEMBERSHIP_BY_HAND
    | STRANGERS
    | STATES_BY_HAND
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A thing that goes wrong (or right again): its class, its name, and the truth after it."""

    kind: Kind
    name: str
    truth: FaultyTruth
