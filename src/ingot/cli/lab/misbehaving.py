"""`ingot lab fault`, `plan`, `hold`, `release`: servers that do what one would rather not see in real ones."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

import click
import msgspec
import yaml

from ingot.cli.lab.talking import PlainYaml, ask, how_many
from ingot.cli.parts.state import StateFolder, state_option
from ingot.lab.faults import Faults, Planned
from ingot.lab.views import Change

_FIELDS: Final = {field.name: field for field in msgspec.structs.fields(Faults)}


class Given(click.ParamType[tuple[str, Any]]):
    """NAME=VALUE, or NAME alone for a fault that is there or not."""

    name = "fault"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        name, given, text = str(value).partition("=")
        if name not in _FIELDS:
            self.fail(f"{name!r} is no fault; there are {', '.join(_FIELDS)}", param, ctx)
        try:
            return name, msgspec.convert(_value(text) if given else True, _FIELDS[name].type, strict=False)
        except (msgspec.ValidationError, yaml.YAMLError) as error:
            self.fail(f"{text!r} is no value for {name}: {error}", param, ctx)


def _value(text: str | BinaryIO) -> Any:
    return yaml.load(text, PlainYaml)  # noqa: S506 - it is a SafeLoader


@click.command()
@click.argument("pattern")
@click.argument("faults", nargs=-1, type=Given())
@state_option
def fault(pattern: str, faults: tuple[tuple[str, Any], ...], state: StateFolder) -> None:
    """Give all servers whose name matches PATTERN these faults and no others; without faults they behave well again.

    \b
    ingot lab fault server-1 bmc_down
    ingot lab fault 'server-1*' slow_seconds=3 power_lie=Off
    ingot lab fault server-2 'fail_steps={write_image: no space left}'
    ingot lab fault '*'
    """
    wanted = Faults(**dict(faults))
    names = ask(state, lambda lab: lab.change(pattern, Change(faults=wanted)))
    told = ", ".join(name for name, _ in faults) or "good behaviour"
    click.echo(f"{how_many(names)}: {told}")


@click.command()
@click.argument("pattern")
@click.argument("file", type=click.File("rb"), required=False)
@state_option
def plan(pattern: str, file: BinaryIO | None, state: StateFolder) -> None:
    """Give all servers whose name matches PATTERN a plan of faults, as YAML or JSON in FILE (- is standard input).

    The plan counts from now on; without FILE there is none any more.

    \b
    - {after: 10, lasts: 30, faults: {bmc_down: true}}
    - {after: 60, faults: {slow_seconds: 2}}
    """
    try:
        steps = msgspec.convert(_value(file) if file else [], list[Planned])
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise click.ClickException(f"the plan cannot be used: {error}") from error
    names = ask(state, lambda lab: lab.change(pattern, Change(plan=steps)))
    click.echo(f"{how_many(names)}: {f'{len(steps)} planned from now on' if steps else 'nothing planned'}")


@click.command()
@click.argument("pattern")
@click.argument("place")
@state_option
def hold(pattern: str, place: str, state: StateFolder) -> None:
    """Let all servers whose name matches PATTERN wait when they come to PLACE.

    A place is boot, inspection, lookup, or the name of a step of the agent, like write_image.
    """
    names = ask(state, lambda lab: lab.change(pattern, Change(hold=place)))
    click.echo(f"{how_many(names)}: held when at {place}")


@click.command()
@click.argument("pattern")
@state_option
def release(pattern: str, state: StateFolder) -> None:
    """Let all servers whose name matches PATTERN go on from where they are held."""
    names = ask(state, lambda lab: lab.change(pattern, Change(hold="")))
    click.echo(f"{how_many(names)}: released")
