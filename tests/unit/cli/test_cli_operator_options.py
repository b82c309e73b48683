"""The options of `ingot operator` for election, webhook and health: what does not fit is said before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ingot.api.meta import Key
from ingot.cli.main import main
from ingot.cli.parts.electing import EXIT_LOST, Election
from ingot.cli.parts.listen import Listen
from ingot.cli.parts.state import StateFolder
from ingot.cli.parts.webhook import Webhook
from ingot.kube import Timing
from ingot.kube.admission import Service
from ingot.trust import Authority


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--leader-elect --lease-duration-seconds 5", "the Lease's times do not fit"),
        ("--leader-elect --renew-deadline-seconds 0", "is not in the range"),
        ("--leader-elect --lease-name Über/alles", "is not a name that a Lease"),
        ("--leader-elect --lease-namespace ../x", "is not a name that a Lease"),
        ("--webhook-listen 127.0.0.1", "is not ADDRESS:PORT"),
        ("--webhook-listen 0.0.0.0:9443", "is no address to call"),
        ("--webhook-listen [::]:9443", "is no address to call"),
        ("--webhook-url https://10.0.0.1:9443", "go with --webhook-listen"),
        ("--webhook-listen 127.0.0.1:0 --webhook-url http://10.0.0.1", "is not an https:// address"),
        ("--webhook-listen 127.0.0.1:0 --webhook-url https://u@h/?q", "is not an https:// address"),
        ("--webhook-listen 127.0.0.1:0 --webhook-url https://[::1", "is not an https:// address"),
        ("--webhook-listen 127.0.0.1:0 --webhook-url https://h:port", "is not an https:// address"),
        ("--webhook-listen 127.0.0.1:0 --webhook-service ingot", "is not NAMESPACE/NAME"),
        ("--webhook-listen 127.0.0.1:0 --webhook-service a/b:x", "is not NAMESPACE/NAME"),
        ("--webhook-listen 127.0.0.1:0 --webhook-service a/b:0", "is not NAMESPACE/NAME"),
        ("--webhook-listen 127.0.0.1:0 --webhook-service a/b:65536", "is not NAMESPACE/NAME"),
        (
            "--webhook-listen 127.0.0.1:0 --webhook-url https://h --webhook-service a/b",
            "--webhook-url or --webhook-service, not both",
        ),
        ("--webhook-listen 127.0.0.1:0 --webhook-certs /nowhere", "does not exist"),
        ("--health-listen nowhere", "is not ADDRESS:PORT"),
    ],
)
def test_what_does_not_fit_is_refused(options: str, said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["operator", *options.split()], env={"INGOT_STATE": str(tmp_path)})
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


WEBHOOK = Webhook(
    listen=Listen("0.0.0.0", 9443),
    endpoint=Service(namespace="metal", name="ingot"),
    certs=None,
    client_ca=None,
    failure_policy="Fail",
    namespace="",
)


def test_the_webhooks_own_certificate_is_for_the_names_it_is_called_by(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    assert WEBHOOK._names() == [
        "127.0.0.1",
        "localhost",
        "ingot.metal.svc",
        "ingot.metal.svc.cluster.local",
    ]
    assert replace(WEBHOOK, endpoint="https://rack.example:9443")._names()[-1] == "rack.example"
    tls = WEBHOOK.tls(state)
    assert tls.authority == (tmp_path / "ca/ca.crt").read_bytes()


def test_a_mounted_certificate_is_used_as_it_is(tmp_path: Path) -> None:
    made = Authority(tmp_path / "their-ca").issue(tmp_path / "certs", "tls", ["ingot.metal.svc"])
    (tmp_path / "certs/ca.crt").write_bytes(made.ca_file.read_bytes())
    tls = replace(WEBHOOK, certs=tmp_path / "certs").tls(StateFolder(tmp_path / "state"))
    assert tls.authority == made.ca_file.read_bytes()
    assert not (tmp_path / "state").exists()


def test_the_file_that_cannot_be_used_is_the_one_that_is_named(tmp_path: Path) -> None:
    made = Authority(tmp_path / "their-ca").issue(tmp_path / "certs", "tls", ["ingot.metal.svc"])
    (tmp_path / "certs/ca.crt").write_bytes(made.ca_file.read_bytes())
    (tmp_path / "callers.pem").write_text("garbage")
    mounted = replace(WEBHOOK, certs=tmp_path / "certs")
    with pytest.raises(click.ClickException, match=r"--webhook-client-ca .*callers\.pem cannot be used"):
        replace(mounted, client_ca=tmp_path / "callers.pem").tls(StateFolder(tmp_path / "state"))
    made.key_file.write_text("garbage")
    with pytest.raises(click.ClickException, match=r"the webhook's certificate in .*certs cannot be used"):
        mounted.tls(StateFolder(tmp_path / "state"))


def test_a_lost_lease_has_an_exit_code_and_a_sentence_of_its_own() -> None:
    lost = Election(Key("metal", "operator"), Timing()).lost("it was not renewed in time")
    assert lost.exit_code == EXIT_LOST == 75
    assert str(lost) == (
        "Lease metal/operator: it was not renewed in time. "
        "All work has stopped; started again, this process contends anew."
    )
