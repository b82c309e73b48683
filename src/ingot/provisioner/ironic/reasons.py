"""Why something failed, in words for the person who has to mend it.

Ironic's `last_error` is often gone when one looks, so the node's history is read as well (the reason of a failed deploy step
is only there). The common reasons become a sentence that says what is wrong and where; Ironic's own text follows, shortened
and redacted: it can hold an agent's token, and what a step was told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ingot.provisioner.ironic.model import FullNode, HistoryEntry, Node
from ingot.provisioner.ironic.step_names import with_steps_named
from ingot.trust import redact

LONGEST: Final = 600
# sushy repeats the whole error of the BMC as a Python list behind these words.
_REPEATED: Final = re.compile(r"\s*Extended information: .*", re.DOTALL)
_SPACES: Final = re.compile(r"\s+")
_FAILED_STEP: Final = re.compile(r"[Nn]ode(?: [0-9a-f-]{36})? failed step (?P<step>[\w.-]+): ")
_NO_STEP: Final = re.compile(
    r"does not support this \w+ step: (?P<step>[\w.-]+)|[Ss]tep (?P<other>[\w.-]+) has not been found"
)
_UUID: Final = re.compile(r"\bnode [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_BMC_REFUSED: Final = re.compile(
    r"(?:returned code|HTTP|status code:?) (?P<code>401|403)\b|AccessError|authentication failed", re.I
)
_BMC_UNREACHABLE: Final = re.compile(
    r"Redfish connection failed|Unable to connect to|Connection refused|Failed to establish a new connection|"
    r"Max retries exceeded|timed out|No route to host|Name or service not known",
    re.I,
)
_BMC_CERTIFICATE: Final = re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|SSLError", re.I)
# What Python says of JSON that ends too early, and what sushy stumbles over when an error has no body.
_BMC_GARBLED: Final = re.compile(
    r"Unterminated string starting at|Expecting (?:value|property name|'.' delimiter)|Extra data: line|"
    r"argument of type 'NoneType' is not iterable"
)
_IMAGE_MISSING: Final = re.compile(
    r"Got HTTP code (?P<code>\d{3}) instead of 200|image href .{0,200}?(?P<other>404)", re.I
)
# In the words of the library that Ironic asks registries with, which is not the one for BMCs.
_REGISTRY_REFUSED: Final = re.compile(r"\b(?P<code>401|403) Client Error: .{0,200}? for url: https?://", re.I)
_REGISTRY_ASKS: Final = re.compile(r"requested image .{0,400}? requires authentication", re.I)
_CHECKSUM: Final = re.compile(r"checksum|hash (?:mismatch|does not match)|failed to verify", re.I)
_NOWHERE_TO_SERVE_FROM: Final = re.compile(r"Could not attach device .*NoneType")
# Ironic does not repeat what ipmitool printed; with our plugin in it, it does.
_IPMI: Final = re.compile(r"IPMI call failed", re.I)
_IPMI_REFUSED: Final = re.compile(
    r"IPMI call failed.*(?:HMAC is invalid|: unauthorized name|: invalid integrity check value)",
    re.I | re.DOTALL,
)
_IPMI_PRIVILEGES: Final = re.compile(
    r"IPMI call failed.*(?:unauthorized role|Set Session Privilege Level to \w+ failed)", re.I | re.DOTALL
)
_IPMI_UNANSWERED: Final = re.compile(
    r"IPMI call failed.*Get (?:Auth|Channel Authentication) Capabilities", re.I | re.DOTALL
)
_NO_AGENT: Final = re.compile(r"Timeout reached while", re.I)
_AGENT: Final = re.compile(r"Connection to agent failed", re.I)
_AGENT_GARBLED: Final = re.compile(r"Unable to decode response as JSON", re.I)


def refuses_credentials(text: str) -> bool:
    """Whether it is the BMC that did not take the user name or password."""
    if _AGENT.search(text) or _IMAGE_MISSING.search(text):
        return False
    return bool(_BMC_REFUSED.search(text) or _IPMI_REFUSED.search(text))


def explain(text: str, node: Node) -> str:
    """What Ironic said, as a sentence with Ironic's own words at its end."""
    said = shorten(text)
    sentence = known_cause(text, node)
    return f"{sentence}. Ironic says: {said}" if sentence else said


def known_cause(text: str, node: Node) -> str:
    """The sentence for a reason that is common enough to have one; "" for others."""
    text = with_steps_named(text)
    bmc = f"the BMC at {node.bmc_address}" if isinstance(node, FullNode) else "the BMC"
    if (missing := _NO_STEP.search(text)) is not None:
        return f"the ramdisk on the host has no step {missing['step'] or missing['other']}: another agent has to be in it"
    about_the_agent = _AGENT.search(text)
    if (found := _IMAGE_MISSING.search(text)) is not None:
        return f"the image cannot be fetched: its URL answers HTTP {found['code'] or found['other']}"
    if (refused := _REGISTRY_REFUSED.search(text)) is not None:
        return (
            f"the registry of the image refused the user name or password (HTTP {refused['code']}); correct the Secret that "
            "spec.image.ociAuthSecretName names"
        )
    if _REGISTRY_ASKS.search(text):
        return (
            "the registry of the image asks for a user name and password; name a Secret with both in "
            "spec.image.ociAuthSecretName"
        )
    if not about_the_agent and (refused := _BMC_REFUSED.search(text)) is not None:
        return f"{bmc} refused the user name or password (HTTP {refused['code'] or 401})"
    if _NOWHERE_TO_SERVE_FROM.search(text):
        return "Ironic has no web server that it could serve the image from; IRONIC_HTTP_URL has to be set where it is started"
    if about_the_agent:
        return "Ironic lost the connection to the ramdisk on the host"
    if _AGENT_GARBLED.search(text):
        return "the ramdisk on the host answers with something that is no answer of an agent; a proxy may stand between"
    if _NO_AGENT.search(text):
        return "the ramdisk on the host did not report in time; look at the host's console"
    if _BMC_CERTIFICATE.search(text):
        return f"the certificate of {bmc} is not trusted; disableCertificateVerification, or a CA that Ironic trusts, helps"
    if _BMC_GARBLED.search(text):
        return (
            f"{bmc} gives answers that cannot be read; a reset of the BMC, or newer firmware for it, may help"
        )
    if _IPMI_REFUSED.search(text):
        return f"{bmc} refused the user name or password"
    if _IPMI_PRIVILEGES.search(text):
        return f"{bmc} does not give this user the privileges that are asked for; name fewer in the address (?privilegelevel=)"
    if _IPMI_UNANSWERED.search(text):
        return f"{bmc} does not answer over IPMI"
    if _IPMI.search(text):
        return f"{bmc} does not answer over IPMI, or refused the user name or password (Ironic does not tell which)"
    if _CHECKSUM.search(text):
        return "the image does not match its checksum"
    if _BMC_UNREACHABLE.search(text):
        return f"{bmc} does not answer"
    return ""


def shorten(text: str) -> str:
    """Redacted, on one line, at most so long, without a full stop."""
    told = _FAILED_STEP.sub(r"the step \g<step> failed: ", redact(with_steps_named(text)))
    clean = _UUID.sub("the node", _SPACES.sub(" ", _REPEATED.sub("", told)).strip()).rstrip(". ")
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1].rstrip()}…"


def newest_error(history: Sequence[HistoryEntry]) -> str:
    """The text of the newest error in a history that starts with the newest entry."""
    return next(iter(errors(history)), "")


def errors(history: Sequence[HistoryEntry]) -> list[str]:
    """The texts of the errors in a history, in its order."""
    return [entry.event for entry in history if (entry.severity or "").upper() == "ERROR" and entry.event]
