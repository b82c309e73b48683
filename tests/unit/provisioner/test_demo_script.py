"""The script of the demo machines: what it can say, what it means, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ingot.api.meta import Key
from ingot.provisioner.demo import BENCHMARK, FOREVER, Behaviour, HostScript, Script, ScriptError, read_script
from ingot.provisioner.demo.plan import Plan
from ingot.provisioner.demo.script import Verb

H1 = Key("rack", "h1")


def written(folder: Path, text: str) -> Path:
    path = folder / "script.yaml"
    path.write_text(text)
    return path


def test_a_script_is_read_from_yaml_and_from_json(tmp_path: Path):
    yaml = written(
        tmp_path,
        "default: {inspect: {seconds: 5}}\n"
        "hosts:\n  rack/h1: {provision: {fails: 2, message: the disk is full}}\n"
        "outages: [{after: 60, seconds: 10, forgets: true}]\n",
    )
    script = read_script(yaml)
    assert script.hosts["rack/h1"].provision == Behaviour(fails=2, message="the disk is full")
    json = tmp_path / "script.json"
    json.write_bytes(msgspec.json.encode(script))
    assert read_script(json) == script


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default: {inspect: {second: 5}}", "unknown field `second`"),
        ("default: {dance: {seconds: 5}}", "unknown field `dance`"),
        ("default: {inspect: {seconds: -1}}", ">= 0"),
        ("default: {inspect: {seconds: a while}}", "$.default.inspect.seconds"),
        ("default: {inspect: {fails: often}}", "$.default.inspect.fails"),
        ("default: {health: Poorly}", "$.default.health"),
        ("outages: [{seconds: 1}]", "missing required field `after`"),
        ("- a list", "Expected `object`"),
        ("{", "neither YAML nor JSON"),
    ],
)
def test_what_cannot_be_played_is_said_with_its_place(tmp_path: Path, text: str, said: str):
    path = written(tmp_path, text)
    with pytest.raises(ScriptError) as error:
        read_script(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ScriptError, match=r"none\.yaml cannot be read: No such file"):
        read_script(tmp_path / "none.yaml")


def test_the_nearest_word_counts():
    script = Script(
        default=HostScript(inspect=Behaviour(seconds=5), others=Behaviour(seconds=3)),
        hosts={
            "rack/h1": HostScript(inspect=Behaviour(fails=1)),
            "h?": HostScript(others=Behaviour(seconds=7), health="Critical"),
        },
    )
    plan = Plan(script)
    assert plan.of(H1).course(Verb.INSPECT).lasts(1) == 5
    assert plan.of(H1).course(Verb.INSPECT).failure(1)
    assert not plan.of(H1).course(Verb.INSPECT).failure(2)
    assert plan.of(H1).course(Verb.REGISTER).lasts(1) == 3
    assert plan.of(H1).health == "OK"
    assert plan.of(Key("rack", "h2")).course(Verb.INSPECT).lasts(1) == 7
    assert plan.of(Key("rack", "h2")).health == "Critical"
    assert plan.of(Key("rack", "other")).course(Verb.INSPECT).lasts(1) == 5


def test_without_a_script_all_goes_well_in_a_second_or_two():
    plan = Plan(Script()).of(H1)
    for verb in Verb:
        assert plan.course(verb).failure(1) == ""
        assert plan.course(verb).lasts(1) in (0, 1, 2)
    assert plan.course(Verb.PROVISION).lasts(1) == 2


def test_each_attempt_can_last_as_long_as_it_is_told():
    script = Script(default=HostScript(inspect=Behaviour(seconds=[FOREVER, 2, 1])))
    course = Plan(script).of(H1).course(Verb.INSPECT)
    assert [course.lasts(attempt) for attempt in (1, 2, 3, 4)] == [FOREVER, 2, 1, 1]


def test_a_soft_power_off_goes_like_a_hard_one_unless_it_is_told_otherwise():
    stubborn = Script(default=HostScript(soft_power_off=Behaviour(fails="always")))
    assert Plan(stubborn).of(H1).course(Verb.SOFT_POWER_OFF).failure(99)
    assert not Plan(stubborn).of(H1).course(Verb.POWER_OFF).failure(1)
    broken = Script(default=HostScript(power_off=Behaviour(fails=1, seconds=9)))
    assert Plan(broken).of(H1).course(Verb.SOFT_POWER_OFF).failure(1)
    assert Plan(broken).of(H1).course(Verb.SOFT_POWER_OFF).lasts(1) == 9


def test_the_benchmark_is_five_seconds_to_register_two_to_inspect_and_nothing_else():
    plan = Plan(BENCHMARK).of(H1)
    lasting = {verb.value: plan.course(verb).lasts(1) for verb in Verb if plan.course(verb).lasts(1) != 0}
    assert lasting == {"register": 5, "inspect": 2}


@pytest.mark.parametrize(
    ("name", "verb", "hangs", "message"),
    [
        ("demo-registration-error", Verb.REGISTER, False, "failed to register new host"),
        ("demo-registering", Verb.REGISTER, True, ""),
        ("demo-inspecting", Verb.INSPECT, True, ""),
        ("demo-preparing-error", Verb.PREPARE, False, "failed to prepare host"),
        ("demo-preparing", Verb.PREPARE, True, ""),
        ("demo-validation-error", Verb.PROVISION, False, "validation failed"),
        ("demo-provisioning", Verb.PROVISION, True, ""),
        ("demo-available", Verb.INSPECT, False, ""),
        ("demo-provisioned", Verb.PROVISION, False, ""),
    ],
)
def test_metal3s_demo_hosts_behave_as_their_names_say(name: str, verb: Verb, hangs: bool, message: str):
    course = Plan(Script()).of(Key("any-namespace", name)).course(verb)
    assert (course.lasts(1) == FOREVER) is hangs
    assert course.failure(1_000) == message


def test_a_script_can_say_otherwise_of_a_demo_host():
    script = Script(hosts={"demo-registering": HostScript(register=Behaviour(seconds=0))})
    assert Plan(script).of(Key("x", "demo-registering")).course(Verb.REGISTER).lasts(1) == 0


def test_of_all_that_fit_the_first_in_the_script_counts():
    said = {
        "lab/h1": HostScript(health="OK"),
        "h1*": HostScript(health="Warning"),
        "h1": HostScript(health="Critical"),
        "h2": HostScript(health="Warning"),
        "lab/h2": HostScript(health="Critical"),
    }
    plan = Plan(Script(hosts=said))
    names = (("lab", "h1"), ("rack", "h1"), ("rack", "h12"), ("lab", "h2"))
    assert [plan.of(Key(*name)).health for name in names] == ["OK", "Warning", "Warning", "Warning"]
