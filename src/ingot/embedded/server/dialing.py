"""Why others cannot be reached, in the words that users of Kubernetes have seen before."""

from __future__ import annotations

import os

import aiohttp


def why(error: BaseException) -> str:
    """The reason in an error of the HTTP client."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            found = getattr(error.certificate_error, "verify_message", "") or "it cannot be trusted"
            return f"tls: failed to verify certificate: x509: {found}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorError() if error.os_error.errno and error.os_error.errno > 0:
            reason = os.strerror(error.os_error.errno).lower()
            return f"dial tcp {error.host}:{error.port}: connect: {reason}"
        case _:
            return str(error) or type(error).__name__
