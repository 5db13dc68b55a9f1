"""Add-ons in a plane, on fakes: applied once, in order, pruned, taken back from others, and removed."""

from __future__ import annotations

from typing import Any

import pytest
from support.addons_lab import AddonLab, addon, config_map, namespace
from support.fake_plane import host_of
from support.golden import Golden

from quarterdeck.addons.applyset import PART_OF, ApplySetParent
from quarterdeck.engine.background.addon_task import DRIFT_EVERY, KEPT_PATIENCE, PATIENCE
from quarterdeck.errors import NotApplied, QuarterdeckError, Unavailable
from quarterdeck.kube.port import Address, Refusal, Refused

DNS = "/api/v1/namespaces/kube-system/configmaps/dns"
OTHER = "/api/v1/namespaces/kube-system/configmaps/other"
HOOK = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/guard"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com"

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [{"name": "v1"}],
    },
}
THING: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}
GUARD: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "guard"},
    "webhooks": [{"name": "a.example", "clientConfig": {"service": {"namespace": "default", "name": "guard"}}}],
}


class Dies(Exception):
    """The process is gone."""


@pytest.fixture
async def lab() -> AddonLab:
    return await AddonLab.made()


async def test_objects_are_applied_with_the_label_of_their_set_and_a_parent_that_names_their_kinds(
    lab: AddonLab,
) -> None:
    await lab.applied(addon("dns", config_map("dns", "kube-system", zone="a"), namespace("dns-tests")))
    assert lab.value(DNS, "data", "zone") == "a"
    assert lab.value(DNS, "metadata", "labels", PART_OF) == ApplySetParent("dns").id
    kinds = lab.value(lab.parent("dns"), "metadata", "annotations", "applyset.kubernetes.io/contains-group-kinds")
    assert kinds == "ConfigMap,Namespace"
    assert lab.condition() == ("True UpToDate", "2 objects")


async def test_what_is_as_wanted_is_applied_once_by_however_many_processes(lab: AddonLab) -> None:
    await lab.applied(addon("dns", config_map("dns", "kube-system", zone="a")))
    calls = list(lab.objects.calls)
    await lab.turn(later=DRIFT_EVERY)
    lab.another_process()
    await lab.turn()
    assert lab.objects.calls == calls


async def test_namespaces_come_first_and_webhooks_last_and_removal_goes_the_other_way(lab: AddonLab) -> None:
    ignored = {**GUARD, "webhooks": [{**GUARD["webhooks"][0], "failurePolicy": "Ignore"}]}
    await lab.applied(addon("all", ignored, config_map("c", "apart"), namespace("apart")))
    made = [each.split()[1] for each in lab.objects.calls]
    apart, inside = "/api/v1/namespaces/apart", "/api/v1/namespaces/apart/configmaps/c"
    assert [each for each in made if each in (HOOK, apart, inside)] == [apart, inside, HOOK]
    lab.objects.calls.clear()
    await lab.want()
    assert await lab.turn() == {}
    assert lab.objects.calls == [f"delete {each}" for each in (HOOK, inside, apart, lab.parent("all"))]


async def test_an_object_that_is_no_longer_wanted_goes_and_what_was_never_applied_stays(lab: AddonLab) -> None:
    await lab.applied(addon("dns", config_map("dns", "kube-system"), config_map("other", "kube-system")))
    copied = "/api/v1/namespaces/default/configmaps/copied"
    labels = {PART_OF: ApplySetParent("dns").id}
    lab.objects.put(copied, {"metadata": {"name": "copied", "namespace": "default", "labels": labels}})
    await lab.applied(addon("dns", config_map("dns", "kube-system")))
    assert lab.there(DNS)
    assert not lab.there(OTHER)
    assert lab.there(copied), "controllers copy labels to what they make"


async def test_an_object_that_goes_over_to_another_add_on_is_never_away(lab: AddonLab) -> None:
    """With a definition all objects of its kind would go."""
    await lab.applied(addon("a", DEFINITION, config_map("dns", "kube-system")), addon("b", config_map("x")))
    await lab.applied(addon("b", DEFINITION, config_map("x")), addon("a", config_map("dns", "kube-system")))
    await lab.applied(addon("c", DEFINITION), addon("a", config_map("dns", "kube-system")))
    assert f"delete {CRD}" not in lab.objects.calls
    assert lab.value(CRD, "metadata", "labels", PART_OF) == ApplySetParent("c").id
    await lab.applied()
    assert not lab.there(CRD)


async def test_a_field_that_somebody_changed_is_taken_back_when_it_is_time_to_look(lab: AddonLab) -> None:
    await lab.applied(addon("dns", config_map("dns", "kube-system", zone="a")))
    lab.objects.edit(DNS, ("data", "zone"), "b")
    await lab.turn(later=DRIFT_EVERY - 1)
    assert lab.value(DNS, "data", "zone") == "b", "not looked at yet"
    await lab.turn(later=1)
    assert lab.value(DNS, "data", "zone") == "a"
    assert "AddonRepaired" in {each.reason for each in await lab.plane.store.events("demo")}


async def test_a_field_that_somebody_took_away_and_an_object_that_is_gone_come_back(lab: AddonLab) -> None:
    await lab.applied(addon("dns", config_map("dns", "kube-system", zone="a"), config_map("other", "kube-system")))
    lab.objects.edit(DNS, ("data", "zone"), None)
    del lab.objects.objects[OTHER]
    await lab.turn(later=DRIFT_EVERY)
    assert lab.value(DNS, "data", "zone") == "a"
    assert lab.there(OTHER)


async def test_fields_that_quarterdeck_never_had_are_not_taken_from_their_owner(lab: AddonLab, golden: Golden) -> None:
    await lab.applied(addon("dns", config_map("dns", "kube-system", zone="a")))
    lab.objects.edit(DNS, ("data", "more"), "mine", manager="an-operator")
    await lab.want(addon("dns", config_map("dns", "kube-system", zone="a", more="ours")))
    why = (await lab.turn())["dns"].why
    golden(why)
    assert "\n" not in why
    assert lab.value(DNS, "data", "more") == "mine"
    assert lab.condition()[0] == "False Refused"


async def test_an_object_that_is_somebody_elses_is_not_taken_over(lab: AddonLab, golden: Golden) -> None:
    lab.objects.put(DNS, config_map("dns", "kube-system", zone="theirs"))
    await lab.want(addon("dns", config_map("dns", "kube-system", zone="a")))
    golden((await lab.turn())["dns"].why)
    assert lab.value(DNS, "data", "zone") == "theirs"


async def test_a_kind_that_is_not_served_is_waited_for_and_named_while_all_else_comes(
    lab: AddonLab, golden: Golden
) -> None:
    await lab.want(addon("things", THING, config_map("dns", "kube-system")))
    why = (await lab.turn())["things"].why
    golden(why)
    assert lab.there(DNS)
    assert lab.condition()[0] == "False Waiting"
    lab.objects.put(CRD, DEFINITION)
    lab.objects.establish()
    assert (await lab.turn())["things"].why == ""


async def test_a_definition_must_be_established_before_its_objects_come(lab: AddonLab, golden: Golden) -> None:
    lab.objects.established = False
    await lab.want(addon("things", THING, DEFINITION))
    golden((await lab.turn())["things"].why)
    assert not lab.there("/apis/example.com/v1/namespaces/default/things/one")
    lab.objects.establish()
    assert (await lab.turn())["things"].why == ""
    assert lab.there("/apis/example.com/v1/namespaces/default/things/one")


async def test_an_object_in_no_namespace_is_kept_though_others_defined_its_kind(lab: AddonLab) -> None:
    lab.objects.put(CRD, {**DEFINITION, "spec": {**DEFINITION["spec"], "scope": "Cluster"}})
    lab.objects.establish()
    await lab.applied(addon("things", THING))
    one = "/apis/example.com/v1/things/one"
    assert lab.there(one)
    assert lab.value(one, "metadata", "namespace") is None
    calls = list(lab.objects.calls)
    await lab.turn(later=DRIFT_EVERY)
    assert lab.objects.calls == calls
    await lab.applied()
    assert not lab.there(one)


async def test_a_webhook_waits_for_an_endpoint_of_its_service_and_refuses_nobody_meanwhile(
    lab: AddonLab, golden: Golden
) -> None:
    await lab.want(addon("guard", GUARD, config_map("dns", "kube-system")))
    golden((await lab.turn())["guard"].why)
    assert not lab.there(HOOK)
    labels = {"kubernetes.io/service-name": "guard"}
    lab.objects.put(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/guard-1",
        {
            "metadata": {"name": "guard-1", "namespace": "default", "labels": labels},
            "endpoints": [{"addresses": ["x"]}],
        },
    )
    assert (await lab.turn())["guard"].why == ""
    assert lab.there(HOOK)


async def test_a_silent_apiserver_of_one_group_disturbs_no_other(lab: AddonLab) -> None:
    lab.objects.silent = frozenset({("metrics.k8s.io", "v1beta1")})
    await lab.applied(addon("dns", config_map("dns", "kube-system")))
    await lab.applied()
    assert not lab.there(DNS)


async def test_an_object_that_does_not_go_is_named_and_what_it_needs_stays(lab: AddonLab, golden: Golden) -> None:
    await lab.applied(addon("things", DEFINITION, THING, config_map("dns", "kube-system")))
    lab.objects.objects["/apis/example.com/v1/namespaces/default/things/one"].held = True
    await lab.want()
    golden((await lab.turn())["things"].why)
    assert lab.there(CRD)
    assert lab.there(lab.parent("things"))
    del lab.objects.objects["/apis/example.com/v1/namespaces/default/things/one"]
    assert await lab.turn() == {}
    assert not lab.there(CRD)
    assert not lab.there(lab.parent("things"))


async def test_a_namespace_that_nobody_can_delete_is_let_go_of(lab: AddonLab) -> None:
    await lab.applied(
        addon("labels", {**namespace("kube-system"), "metadata": {"name": "kube-system", "labels": {"a": "b"}}})
    )
    await lab.applied()
    system = "/api/v1/namespaces/kube-system"
    assert lab.there(system)
    assert lab.value(system, "metadata", "labels", "a") is None


async def test_one_add_on_that_is_refused_keeps_no_other_from_coming(lab: AddonLab, golden: Golden) -> None:
    lab.objects.refuses["bad"] = Refused("applying", "Invalid (422): spec.x: Required value", Refusal.INVALID)
    await lab.want(addon("a-bad", config_map("bad", "kube-system")), addon("dns", config_map("dns", "kube-system")))
    states = await lab.turn()
    golden(states["a-bad"].why)
    assert states["dns"].why == ""


async def test_add_ons_that_were_begun_by_a_process_that_died_are_found_and_removed(lab: AddonLab) -> None:
    """It had written nothing down but what it was about to do."""
    lab.objects.refuses["late"] = Dies("killed")
    await lab.want(addon("dns", config_map("dns", "kube-system"), config_map("late", "kube-system")))
    with pytest.raises(Dies):
        await lab.turn()
    assert lab.there(DNS)
    lab.another_process()
    await lab.want()
    assert await lab.turn() == {}
    assert not lab.there(DNS)


async def test_a_webhook_does_not_come_while_anything_before_it_is_missing(lab: AddonLab) -> None:
    ignored = {**GUARD, "webhooks": [{**GUARD["webhooks"][0], "failurePolicy": "Ignore"}]}
    await lab.want(addon("guard", ignored, THING))
    await lab.turn()
    assert not lab.there(HOOK)


async def test_an_apiserver_that_is_not_ready_is_passed_over_and_none_is_told(lab: AddonLab, golden: Golden) -> None:
    names = lab.fake.names
    lab.fake.kube.apiservers[Address(host_of(names[0]), 6443)].up = False
    await lab.applied(addon("dns", config_map("dns", "kube-system")))
    for name in names:
        lab.fake.kube.apiservers[Address(host_of(name), 6443)].up = False
    with golden.raises(Unavailable):
        await lab.turn(later=DRIFT_EVERY)


async def test_a_change_of_add_ons_waits_for_what_it_needs_but_not_for_ever(
    lab: AddonLab, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    async def sleep(_: float) -> None:
        lab.now += PATIENCE / 3

    monkeypatch.setattr("quarterdeck.engine.background.addon_task.asyncio.sleep", sleep)
    reported: list[str] = []

    async def tell(error: QuarterdeckError) -> None:
        reported.append(str(error))

    await lab.want(addon("things", THING))
    with golden.raises(NotApplied):
        await lab.task.finish(lab.plane, asked=True, patience=PATIENCE, changed=lambda _: False, tell=tell)
    assert len(reported) == 1
    await lab.task.finish(
        lab.plane, asked=False, patience=PATIENCE, changed=lambda _: False, tell=tell
    )  # a move is not failed by it


async def test_what_a_manager_waits_for_no_longer_comes_with_a_later_turn(
    lab: AddonLab, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    async def sleep(seconds: float) -> None:
        lab.now += seconds

    async def tell(_: QuarterdeckError) -> None:
        pass

    monkeypatch.setattr("quarterdeck.engine.background.addon_task.asyncio.sleep", sleep)
    await lab.want(addon("things", THING))
    began = lab.now
    with golden.raises(NotApplied):
        await lab.task.finish(lab.plane, asked=True, patience=KEPT_PATIENCE, changed=lambda _: False, tell=tell)
    assert lab.now - began < KEPT_PATIENCE + 1
    assert lab.condition()[0] == "False Waiting"
    lab.objects.put(CRD, DEFINITION)
    lab.objects.establish()
    await lab.turn()
    assert lab.condition()[0] == "True UpToDate"


async def test_a_plane_without_add_ons_asks_nobody(lab: AddonLab) -> None:
    await lab.turn()  # makes the binding of its administrators
    for server in lab.fake.kube.apiservers.values():
        server.up = False
    assert await lab.turn() == {}
