"""The options of `ingot operator` for election, webhook and health: what does not fit is said before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ingot.api.meta import Key
from ingot.cli.main import main
from ingot.cli.operator import LEASES
from ingot.cli.parts.electing import EXIT_LOST, IMAGES_LEASE_NAME, Election, election_from
from ingot.cli.parts.listen import Listen
from ingot.cli.parts.looking_after import (
    WORKERS,
    LookingAfter,
    looking_after_from,
    looking_after_options,
)
from ingot.cli.parts.state import StateFolder
from ingot.cli.parts.webhook import Webhook
from ingot.hosts import HostSettings
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
        ("--controllers dishes", "'dishes' is not a list of controllers; there are: hosts, machines, images"),
        ("--controllers ,", "is not a list of controllers"),
        ("--controllers images --webhook-listen 127.0.0.1:0", "goes with --controllers hosts"),
        ("--controllers images --images-listen 8084", "is not ADDRESS:PORT"),
        ("--controllers machines --webhook-listen 127.0.0.1:0", "goes with --controllers hosts"),
        ("--controllers machines --machinesets maybe", "'maybe' is not one of 'auto', 'on', 'off'"),
        (
            "--controllers machines --defaults-namespace No_1",
            "'No_1' is not a name that a namespace can have",
        ),
        ("--controllers machines --release-target image", "is not a mapping with image or customDeploy"),
        ("--namespace rack-1,rack-2", "'rack-1,rack-2' names several namespaces"),
        ("--namespace Rack_1", "'Rack_1' is not a name that a namespace can have"),
        ("--max-provisioning-retries -1", "-1 is not in the range x>=0"),
        ("--max-provisioning-retries often", "'often' is not a valid integer"),
        ("--provisioning-limit 0", "0 is not in the range x>=1"),
        ("--controller-concurrency 1001", "1001 is not in the range"),
    ],
)
def test_what_does_not_fit_is_refused(options: str, said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["operator", *options.split()], env={"INGOT_STATE": str(tmp_path)})
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("WATCH_NAMESPACE", "a,b", "names several namespaces"),
        ("PROVISIONING_LIMIT", "none", "'none' is not a valid integer"),
        ("BMO_CONCURRENCY", "-4", "-4 is not in the range"),
    ],
)
def test_so_is_what_does_not_fit_in_the_environment(name: str, value: str, said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["operator"], env={"INGOT_STATE": str(tmp_path), name: value})
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "Not set: IRONIC_BASE_URL"),
        ({"IRONIC_BASE_URL": "https://10.0.0.1:6385"}, "Set one of INGOT_RELEASE_PAYLOAD"),
        (
            {
                "IRONIC_BASE_URL": "https://10.0.0.1:6385",
                "DEPLOY_ISO": "/live.iso",
                "INGOT_IMAGES_URL": "ftp://x",
            },
            "INGOT_IMAGES_URL is 'ftp://x'",
        ),
    ],
)
def test_what_is_missing_for_images_is_said(environment: dict[str, str], said: str, tmp_path: Path) -> None:
    clean = dict.fromkeys(("IRONIC_BASE_URL", "INGOT_RELEASE_PAYLOAD", "DEPLOY_ISO", "INGOT_IMAGES_URL"), "")
    result = CliRunner().invoke(
        main,
        ["operator", "--controllers", "images"],
        env=clean | {"INGOT_STATE": str(tmp_path)} | environment,
    )
    assert result.exit_code == 1
    assert said in " ".join(result.output.split())


def test_each_set_of_controllers_has_a_lease_of_its_own() -> None:
    given = {
        "leader_elect": True,
        "lease_namespace": None,
        "namespace": "",
        "lease_name": None,
        "lease_duration_seconds": 15.0,
        "renew_deadline_seconds": 10.0,
        "retry_period_seconds": 2.0,
    }
    names = {
        "hosts": "baremetal-operator",
        "machines": "controller-leader-election-capbm",
        "images": "ingot-images",
    }
    for controllers, name in names.items():
        found = election_from(given, usual_name=LEASES[controllers])
        assert found is not None
        assert found.lease == Key("default", name)
    chosen = election_from(given | {"lease_name": "mine"}, usual_name=IMAGES_LEASE_NAME)
    assert chosen is not None
    assert chosen.lease.name == "mine"


def looking_after(*arguments: str, **environment: str) -> LookingAfter:
    @click.command()
    @looking_after_options
    def found(**options: Any) -> None:
        heard.append(looking_after_from(options))

    heard: list[LookingAfter] = []
    clean = dict.fromkeys(
        ("WATCH_NAMESPACE", "PROVISIONING_LIMIT", "BMO_CONCURRENCY", "IRONIC_USE_COREOS_IPA"), ""
    )
    result = CliRunner().invoke(found, arguments, env=clean | environment)
    assert result.exit_code == 0, result.output
    return heard[0]


def test_by_default_all_hosts_are_looked_after_as_metal3_does() -> None:
    assert looking_after() == LookingAfter(
        namespace="",
        workers=WORKERS,
        settings=HostSettings(most_attempts=5, provisioning_limit=20, own_ramdisks=False),
    )


def test_hosts_are_looked_after_as_the_options_say() -> None:
    words = "--namespace rack --max-provisioning-retries 0 --build-preprov-image --controller-concurrency 7"
    assert looking_after(*words.split(), "--provisioning-limit", "3") == LookingAfter(
        namespace="rack",
        workers=7,
        settings=HostSettings(most_attempts=0, provisioning_limit=3, own_ramdisks=True),
    )


def test_the_environment_says_the_same_and_options_win() -> None:
    said = {"WATCH_NAMESPACE": "rack", "PROVISIONING_LIMIT": "3", "BMO_CONCURRENCY": "7"}
    found = looking_after("--provisioning-limit", "4", **said)
    assert (found.namespace, found.workers, found.settings.provisioning_limit) == ("rack", 7, 4)
    assert looking_after(IRONIC_USE_COREOS_IPA="true").settings.own_ramdisks
    assert not looking_after(IRONIC_USE_COREOS_IPA="false").settings.own_ramdisks


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
