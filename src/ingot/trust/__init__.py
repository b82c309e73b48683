"""Who is who: the certificate authority, certificates and their renewal, credentials, and keeping secrets out of sight."""

from ingot.trust.authority import CERTIFICATE_LIFE, Authority, Certificate, client_context
from ingot.trust.credentials import htpasswd_line, kept_token, random_token
from ingot.trust.errors import AuthorityError, TrustError
from ingot.trust.files import write_private, write_public
from ingot.trust.redaction import HIDDEN, Secret, redact
from ingot.trust.serving import ServingTls

__all__ = [
    "CERTIFICATE_LIFE",
    "HIDDEN",
    "Authority",
    "AuthorityError",
    "Certificate",
    "Secret",
    "ServingTls",
    "TrustError",
    "client_context",
    "htpasswd_line",
    "kept_token",
    "random_token",
    "redact",
    "write_private",
    "write_public",
]
