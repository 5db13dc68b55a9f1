"""Errors are stored, and sent between processes, by their kinds."""

from __future__ import annotations

from quarterdeck import errors
from quarterdeck.errors import LeaseLost, QuarterdeckError, TimedOut, error_class, kind_of
from quarterdeck.etcd.faults import EtcdFault


def test_each_class_has_a_kind_of_its_own_by_which_it_is_found() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, QuarterdeckError)]
    assert len({each.kind for each in classes}) == len(classes) > 10
    assert all(error_class(each.kind) is each for each in classes)


def test_a_class_without_a_kind_has_its_parents() -> None:
    assert issubclass(EtcdFault, QuarterdeckError)
    assert error_class(EtcdFault.kind) is QuarterdeckError


def test_what_is_no_error_of_quarterdeck_is_internal_and_found_as_the_root() -> None:
    assert kind_of(ZeroDivisionError()) == "internal"
    assert error_class("internal") is error_class("from-a-newer-version") is QuarterdeckError
    assert (kind_of(TimedOut("", "")), kind_of(LeaseLost("", ""))) == ("timed-out", "lease-lost")
