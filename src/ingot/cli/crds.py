"""`ingot crds`: print the custom resource definitions, ready for `kubectl apply -f -`."""

from __future__ import annotations

import json

import click
import yaml

from ingot.api.crd import all_crds


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="yaml: one document for each kind; json: one List.",
)
def crds(output: str) -> None:
    """Print the custom resource definitions.

    \b
    ingot crds | kubectl apply --server-side -f -
    """
    definitions = all_crds()
    if output == "json":
        click.echo(
            json.dumps(
                {"apiVersion": "v1", "kind": "List", "items": definitions}, indent=2, ensure_ascii=False
            )
        )
    else:
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        click.echo(
            yaml.dump_all(
                definitions,
                Dumper=dumper,
                sort_keys=False,
                allow_unicode=True,
                width=110,
                explicit_start=True,
            ),
            nl=False,
        )
