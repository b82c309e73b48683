"""What a setting of the ramdisk may be. Each rule follows from where the value ends up: a line of a unit or of a configuration
file, a URL, an argument of a kernel. What could be read there as more than one word, or as a word of another kind, is refused.

Pure. Each takes the name of the variable and its text, returns the value, and raises a `SettingsError` that never repeats what
may be secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final
from urllib.parse import urlsplit

import msgspec
from cryptography import x509

from ingot.api import bmc
from ingot.api.inputs import kernel_arguments, urls
from ingot.api.inputs.text import shown
from ingot.images.ramdisk.errors import SettingsError
from ingot.trust import Secret

_LABEL: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN: Final = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
IMAGE_REFERENCE: Final = re.compile(
    rf"(?:(?:{_DOMAIN}|\[[0-9A-Fa-f:]+\])(?::[0-9]{{1,5}})?/)?{_LABEL}(?:/{_LABEL})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_SSH_KEY: Final = re.compile(
    r"(ssh-(rsa|ed25519|dss)|ecdsa-sha2-nistp\d+|sk-[a-z0-9@.\-]+) [A-Za-z0-9+/]+=*( [^\x00-\x1f\x7f]+)?"
)
_NO_PROXY_ITEM: Final = re.compile(r"[A-Za-z0-9.:/_*\[\]-]+")
_YES: Final = frozenset({"true", "yes", "on", "1"})
_NO: Final = frozenset({"false", "no", "off", "0"})


def image_reference(variable: str, text: str) -> str:
    """A container image: a registry, a path, a tag or a digest."""
    if len(text) > 255 or not IMAGE_REFERENCE.fullmatch(text):
        raise SettingsError(
            f"{variable} is {shown(text)!r}; expected the name of a container image, like registry.example/path/name:tag or "
            "…@sha256:DIGEST."
        )
    return text


def api_urls(variable: str, text: str, *, port: int) -> tuple[str, ...]:
    """Where an agent calls, with commas between; https, because it says its token there. A missing port is this one."""
    found = [item.strip() for item in text.split(",") if item.strip()]
    if not found:
        raise SettingsError(
            f"{variable} is empty; expected https://HOST:PORT of the Ironic that agents call."
        )
    return tuple(_api_url(variable, url, port) for url in found)


def _api_url(variable: str, url: str, port: int) -> str:
    problem = urls.problem_with(url, ("https",))
    if problem is not None:
        raise SettingsError(f"{variable} is {shown(urls.without_password(url))!r}: {problem.sentence}")
    parts = urlsplit(url)
    if urls.has_credentials(url) or parts.query or parts.fragment or set("$\"'%;,") & set(url):
        raise SettingsError(
            f"{variable} is {shown(urls.without_password(url))!r}; expected https://HOST:PORT, without a password, a query or "
            "characters that are quoted in URLs."
        )
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return f"https://{host}:{parts.port or port}{parts.path.rstrip('/')}"


def proxy(variable: str, text: str) -> Secret:
    """A proxy's URL may hold a password. Without a scheme it is http, as everywhere."""
    text = text if "://" in text else f"http://{text}"
    problem = urls.problem_with(text, urls.WEB_SCHEMES)
    if problem is not None or set("\"'\\$`") & set(text):
        why = problem.sentence if problem is not None else "it holds a quote, a backslash or a dollar."
        raise SettingsError(f"{variable} is {shown(urls.without_password(text))!r}: {why}")
    return Secret(text)


def no_proxy(variable: str, text: str) -> str:
    items = [item.strip() for item in text.split(",") if item.strip()]
    for item in items:
        if not _NO_PROXY_ITEM.fullmatch(item):
            raise SettingsError(
                f"{variable} holds {shown(item)!r}; expected hosts, domains or networks with commas between."
            )
    return ",".join(items)


def time_servers(variable: str, text: str) -> tuple[str, ...]:
    servers = tuple(item.strip() for item in text.split(",") if item.strip())
    for server in servers:
        if not bmc.is_host(server):
            raise SettingsError(
                f"{variable} holds {shown(server)!r}; expected IP addresses or names of hosts with commas between."
            )
    return servers


def ssh_key(variable: str, text: str) -> str:
    if not _SSH_KEY.fullmatch(text.strip()):
        raise SettingsError(f"{variable} is not one line of an OpenSSH public key.")
    return text.strip()


def kernel_words(variable: str, text: str) -> tuple[str, ...]:
    """Arguments of the kernel; blanks within quotes are not among them."""
    if '"' in text or (problem := kernel_arguments.problem_with(text)) is not None:
        why = "quotes are not needed here." if '"' in text else problem
        raise SettingsError(f"{variable} is {shown(text)!r}, to become arguments of a kernel: {why}")
    return tuple(text.split())


def pull_secret(variable: str, text: str) -> Secret:
    """Credentials for registries, as containers/image reads them: JSON, in base64 where it comes from a manifest."""
    content = text.strip()
    if not content.startswith("{"):
        try:
            content = base64.b64decode("".join(content.split()), validate=True).decode()
        except (binascii.Error, ValueError):
            raise SettingsError(f"{variable} is neither JSON nor JSON in base64.") from None
    try:
        decoded = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise SettingsError(f"{variable} is neither JSON nor JSON in base64.") from None
    if not isinstance(decoded, dict) or not isinstance(decoded.get("auths"), dict):
        raise SettingsError(f'{variable} has no "auths", which says who we are at which registry.')
    return Secret(content)


def certificates(variable: str, content: bytes) -> bytes:
    """One or more certificates, PEM, and nothing that is not for everybody: it gets into every ramdisk."""
    if b"PRIVATE KEY" in content:
        raise SettingsError(f"{variable} names a file with a private key; expected certificates alone.")
    try:
        x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise SettingsError(f"{variable} names a file that holds no certificates in PEM: {error}.") from None
    return content if content.endswith(b"\n") else content + b"\n"


def switch(variable: str, text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise SettingsError(f"{variable} is {shown(text)!r}; expected true or false.")
    return text.lower() in _YES
