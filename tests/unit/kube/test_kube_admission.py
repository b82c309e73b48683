"""An admission webhook, asked over TLS as the API asks it."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ingot.api.meta import Key
from ingot.kube.admission import PATH, AdmissionServer, Problem, Question, Verdict
from ingot.trust import Authority, Certificate, ServingTls, client_context

SIZE = Problem("spec.size", "FieldValueInvalid", "Invalid value: 13: that brings bad luck")
NAME = Problem("spec.name", "FieldValueRequired", "Required value: everybody has one")


class Judge:
    """Does not like 13, warns of 12, breaks at 99, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Verdict:
        self.asked.append(question)
        size = ((question.new or {}).get("spec") or {}).get("size")
        match size:
            case 13:
                return Verdict([SIZE])
            case 14:
                return Verdict([SIZE, NAME, SIZE], ["nearly right"])
            case 12:
                return Verdict((), ["a dozen is an old-fashioned number"])
            case 99:
                raise RuntimeError("the password is token=abc")
        return Verdict()


class Caller:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def post(
        self, body: bytes, *, content_type: str = "application/json", path: str = PATH
    ) -> tuple[int, str]:
        headers = {"Content-Type": content_type}
        async with self._session.post(self._url + path, data=io.BytesIO(body), headers=headers) as response:
            return response.status, await response.text()

    async def ask(self, **request: Any) -> dict[str, Any]:
        code, text = await self.post(review(**request))
        assert code == 200, text
        answer = json.loads(text)
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: dict[str, Any] = answer["response"]
        return response


def widget(size: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w", "namespace": "rack"}, "spec": {"size": size}, **more}


def review(**request: Any) -> bytes:
    """As kube-apiserver 1.34 sends it."""
    kind = {"group": "test.ingot.dev", "version": "v1", "kind": "Widget"}
    resource = {"group": "test.ingot.dev", "version": "v1", "resource": "widgets"}
    whole = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "w",
        "namespace": "rack",
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "object": None,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **request,
    }
    return json.dumps(
        {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": whole}
    ).encode()


@pytest.fixture
def judge() -> Judge:
    return Judge()


@asynccontextmanager
async def calling(server: AdmissionServer, context: ssl.SSLContext) -> AsyncIterator[Caller]:
    connector = aiohttp.TCPConnector(ssl=context, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Caller(session, f"https://127.0.0.1:{server.port}")


@pytest.fixture
async def caller(judge: Judge, certificate: Certificate) -> AsyncIterator[Caller]:
    tls = ServingTls(lambda: certificate)
    async with (
        AdmissionServer(judge, host="127.0.0.1", port=0, tls=tls) as server,
        calling(server, client_context(certificate.ca_file)) as made,
    ):
        yield made


async def test_what_breaks_no_rule_is_allowed_under_the_uid_it_was_asked_under(caller: Caller, judge: Judge):
    answer = await caller.ask(uid="u-1", object=widget(1))
    assert answer == {"uid": "u-1", "allowed": True}
    [question] = judge.asked
    assert (question.operation, question.group, question.version, question.kind) == (
        "CREATE",
        "test.ingot.dev",
        "v1",
        "Widget",
    )
    assert (question.key, question.new, question.old) == (Key("rack", "w"), widget(1), None)


async def test_a_refusal_has_the_words_and_causes_of_the_api(caller: Caller):
    answer = await caller.ask(object=widget(13))
    assert answer["allowed"] is False
    assert answer["status"] == {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": 'Widget.test.ingot.dev "w" is invalid: spec.size: Invalid value: 13: that brings bad luck',
        "details": {
            "name": "w",
            "group": "test.ingot.dev",
            "kind": "Widget",
            "causes": [
                {
                    "reason": "FieldValueInvalid",
                    "message": "Invalid value: 13: that brings bad luck",
                    "field": "spec.size",
                }
            ],
        },
    }


async def test_several_problems_are_listed_once_each_and_all_are_causes(caller: Caller):
    answer = await caller.ask(object=widget(14))
    assert answer["status"]["message"].endswith(
        "is invalid: [spec.size: Invalid value: 13: that brings bad luck, spec.name: Required value: everybody has one]"
    )
    assert len(answer["status"]["details"]["causes"]) == 3
    assert answer["warnings"] == ["nearly right"]


async def test_warnings_come_with_what_is_allowed_too(caller: Caller):
    assert (await caller.ask(uid="u", object=widget(12))) == {
        "uid": "u",
        "allowed": True,
        "warnings": ["a dozen is an old-fashioned number"],
    }


async def test_an_update_shows_both_versions(caller: Caller, judge: Judge):
    await caller.ask(operation="UPDATE", object=widget(2), oldObject=widget(1))
    assert (judge.asked[0].new, judge.asked[0].old) == (widget(2), widget(1))


async def test_a_deletion_shows_what_goes(caller: Caller, judge: Judge):
    assert (await caller.ask(operation="DELETE", oldObject=widget(13)))["allowed"]
    assert (judge.asked[0].operation, judge.asked[0].new, judge.asked[0].old) == ("DELETE", None, widget(13))


async def test_a_dry_run_gets_the_same_answer(caller: Caller, judge: Judge):
    assert not (await caller.ask(dryRun=True, object=widget(13)))["allowed"]
    assert judge.asked[0].dry_run


async def test_an_object_without_a_name_yet_can_be_judged(caller: Caller, judge: Judge):
    nameless = {"metadata": {"generateName": "w-"}, "spec": {"size": 13}}
    answer = await caller.ask(name="", object=nameless)
    assert answer["status"]["details"]["name"] == ""
    assert judge.asked[0].key == Key("rack", "")


async def test_a_large_question_is_answered_too(caller: Caller):
    assert not (await caller.ask(object=widget(13, data="x" * 3_000_000)))["allowed"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not an AdmissionReview"),
        (b"{", "not an AdmissionReview"),
        (b"[]", "not an AdmissionReview"),
        (b"\xff\xfe", "not an AdmissionReview"),
        (b"{}", "found no kind of no version"),
        (review().replace(b"k8s.io/v1", b"k8s.io/v1beta1", 1), "of admission.k8s.io/v1beta1"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "without a request"),
        (review(uid=""), "without a request that has a uid"),
        (review(operation="PATCH"), "not an AdmissionReview"),
        (review(operation="CREATE"), "CREATE without object"),
        (review(operation="UPDATE", object={}), "UPDATE without oldObject"),
        (review(operation="DELETE"), "DELETE without oldObject"),
        (review(object=[]), "not an AdmissionReview"),
        (review(object={"a": 0}).replace(b"0", b"[" * 5000 + b"]" * 5000), "not an AdmissionReview"),
    ],
)
async def test_what_is_no_question_is_told_so(caller: Caller, judge: Judge, body: bytes, why: str):
    code, text = await caller.post(body)
    assert code == 400
    assert why in text
    assert not judge.asked


async def test_other_protocols_paths_and_sizes_are_refused(caller: Caller, judge: Judge):
    assert (await caller.post(review(object=widget(1)), content_type="text/plain"))[0] == 415
    assert (await caller.post(review(object=widget(1)), path="/mutate"))[0] == 404
    assert (await caller.post(b" " * 9_000_000))[0] == 413
    assert not judge.asked


async def test_a_rule_that_breaks_is_an_error_without_its_details(
    caller: Caller, caplog: pytest.LogCaptureFixture
):
    code, text = await caller.post(review(object=widget(99)))
    assert code == 500
    assert text == "Widget rack/w cannot be judged: RuntimeError\n"
    assert "CREATE Widget rack/w cannot be judged" in caplog.text


# Certificates


def issued(folder: Path, authority: Path, name: str = "webhook") -> Certificate:
    return Authority(authority).issue(folder, name, ["127.0.0.1"])


async def test_a_new_certificate_is_served_without_a_restart(judge: Judge, tmp_path: Path):
    made = issued(tmp_path, tmp_path / "ca")
    tls = ServingTls(lambda: made)
    async with AdmissionServer(judge, host="127.0.0.1", port=0, tls=tls) as server:
        keeping = asyncio.create_task(tls.keep(every=0.02))
        other = issued(tmp_path / "other", tmp_path / "other-ca")
        async with calling(server, client_context(other.ca_file)) as stranger:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await stranger.ask(object=widget(1))
        # Somebody else replaces the files, one after the other.
        made.key_file.write_bytes(other.key_file.read_bytes())
        await asyncio.sleep(0.1)
        async with calling(server, client_context(made.ca_file)) as old_friend:
            assert (await old_friend.ask(object=widget(1)))["allowed"], "half a pair changes nothing"
        made.cert_file.write_bytes(other.cert_file.read_bytes())
        async with asyncio.timeout(60), calling(server, client_context(other.ca_file)) as caller:
            while True:
                try:
                    assert (await caller.ask(object=widget(1)))["allowed"]
                    break
                except aiohttp.ClientConnectorCertificateError:
                    await asyncio.sleep(0.02)
        keeping.cancel()
        await asyncio.wait([keeping])


async def test_with_a_client_authority_only_its_clients_are_answered(judge: Judge, tmp_path: Path):
    made = issued(tmp_path, tmp_path / "ca")
    api = issued(tmp_path, tmp_path / "callers", "api-server")
    tls = ServingTls(lambda: made)
    tls.let_in_only(api.ca_file)
    async with AdmissionServer(judge, host="127.0.0.1", port=0, tls=tls) as server:
        context = client_context(made.ca_file)
        async with calling(server, context) as nobody:
            with pytest.raises((aiohttp.ClientError, OSError)):
                await nobody.ask(object=widget(1))
        context.load_cert_chain(api.cert_file, api.key_file)
        async with calling(server, context) as known:
            assert (await known.ask(object=widget(1)))["allowed"]
    assert len(judge.asked) == 1
