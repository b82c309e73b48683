"""A pass is woken by what others do, and not by the echo of its own writes."""

from rack import Rack

from ingot.api.meta import Key
from ingot.hosts.echoes import REMEMBERED, Echoes

HOST, OTHER = Key("rack", "h1"), Key("rack", "h2")


def test_what_is_heard_outside_a_pass_is_news() -> None:
    assert Echoes().is_news(HOST, "7")


def test_the_answer_to_an_own_write_is_no_news() -> None:
    echoes = Echoes()
    echoes.begin(HOST)
    echoes.wrote("7")
    assert not echoes.is_news(HOST, "7")
    assert not echoes.end(HOST)


def test_a_watch_that_is_faster_than_the_answer_brings_no_news() -> None:
    echoes = Echoes()
    echoes.begin(HOST)
    assert not echoes.is_news(HOST, "7")
    echoes.wrote("7")
    assert not echoes.end(HOST)


def test_an_echo_that_comes_after_the_pass_is_no_news() -> None:
    echoes = Echoes()
    echoes.begin(HOST)
    echoes.wrote("7")
    assert not echoes.end(HOST)
    assert not echoes.is_news(HOST, "7")
    assert echoes.is_news(HOST, "7")


def test_what_others_did_during_a_pass_is_looked_at_when_it_ends() -> None:
    echoes = Echoes()
    echoes.begin(HOST)
    assert not echoes.is_news(HOST, "6")
    echoes.wrote("7")
    assert echoes.end(HOST)


def test_the_pass_of_one_host_puts_aside_nothing_of_another() -> None:
    echoes = Echoes()
    echoes.begin(HOST)
    assert echoes.is_news(OTHER, "7")


def test_echoes_that_never_come_are_forgotten_in_the_end() -> None:
    echoes = Echoes()
    for version in range(REMEMBERED + 1):
        echoes.wrote(str(version))
    assert echoes.is_news(HOST, "0")
    assert not echoes.is_news(HOST, "1")


async def test_a_host_comes_to_available_in_one_pass_where_nothing_has_to_be_waited_for(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    await rack.settle()
    # Once for the host and its Secret, once for the machine that was switched on.
    assert rack.backend.asked["firmware_settings"] <= 2
    assert rack.backend.asked["set_power"] == 1
