"""The certificate authority of one installation, and the certificates it issues.

Owns a CA that lives in a folder (`ca.crt`, `ca.key`) and is made on first use. `issue` writes a serving certificate for the
names and addresses given and renews it when less than a third of its life is left, when it no longer covers what is asked
for, or when it was issued by another CA; otherwise it leaves the files alone. Processes that start together may open the same
new folder, or want the same certificate: one makes it, the others use it. Keys are readable by their owner only, files
appear whole or not at all, so a process that is killed while it writes leaves nothing half made.

The CA renews itself too, when less than a third of its life is left: a new certificate over the same key and name. Who
trusts the old one trusts what is issued under the new one, and the other way round, so nobody has to be told in a hurry.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ingot.trust.errors import AuthorityError, TrustError
from ingot.trust.files import alone_in, write_private, write_public

CA_LIFE: Final = timedelta(days=3650)
CERTIFICATE_LIFE: Final = timedelta(days=90)
# Clocks of servers that just booted run late; a certificate that starts now would be refused by them.
BACKDATE: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key on disk, with the CA that signed it."""

    cert_file: Path
    key_file: Path
    ca_file: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.cert_file, self.key_file)
        return context


def client_context(ca_file: Path | str) -> ssl.SSLContext:
    """A context that trusts this CA and nobody else."""
    return ssl.create_default_context(cafile=str(ca_file))


class Authority:
    """The CA in a folder. Opening it makes it when it is not there yet."""

    def __init__(self, folder: Path, *, life: timedelta = CA_LIFE) -> None:
        self.folder = folder
        self.ca_file = folder / "ca.crt"
        self._key_file = folder / "ca.key"
        self._life = life
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._certificate, self._key = self._ready()

    def issue(self, folder: Path, name: str, hosts: Sequence[str]) -> Certificate:
        """A serving certificate `folder/name.crt` with its key for these host names and IP addresses."""
        folder.mkdir(parents=True, exist_ok=True)
        # A process that runs for years asks again and again; the CA may have been renewed meanwhile, or be due.
        self._certificate, self._key = self._ready()
        made = Certificate(folder / f"{name}.crt", folder / f"{name}.key", self.ca_file)
        if not self._still_good(made, hosts):
            with alone_in(folder):
                if not self._still_good(made, hosts):
                    self._write_leaf(made, name, hosts)
        return made

    def certify(self, key: ec.EllipticCurvePublicKey, name: str, hosts: Sequence[str]) -> bytes:
        """A serving certificate, PEM, over a key that the caller keeps; nothing is written."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer_key_id = self._certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        certificate = (
            _builder(subject, self._certificate.subject, key, CERTIFICATE_LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName(_alternative_names(hosts)), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key_id), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)

    def _ready(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """The CA as it is on disk, made or renewed first where it has to be."""
        if not self.ca_file.exists() or self._is_due(self._read()[0]):
            with alone_in(self.folder):
                if not self.ca_file.exists():
                    self._create()
                elif self._is_due((found := self._read())[0]):
                    self._write_ca(found[1])
        return self._read()

    def _is_due(self, certificate: x509.Certificate) -> bool:
        return certificate.not_valid_after_utc - datetime.now(UTC) < self._life / 3

    def _read(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        try:
            certificate = x509.load_pem_x509_certificate(self.ca_file.read_bytes())
            key = _load_key(self._key_file)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise self._broken(f"cannot be read ({error})") from error
        if certificate.public_key() != key.public_key():
            raise self._broken("holds a ca.key that does not belong to its ca.crt")
        return certificate, key

    def _broken(self, found: str) -> AuthorityError:
        return AuthorityError(
            f"the certificate authority in {self.folder} {found}. Put both ca.crt and ca.key back from a backup. Without one, "
            "move the folder away and start again: a new authority is made, every certificate under this state folder is "
            "issued anew, and copies of the kubeconfig elsewhere have to be replaced."
        )

    def _create(self) -> None:
        # The certificate is written last: its presence means that both are there.
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(self._key_file, _key_bytes(key))
        self._write_ca(key)

    def _write_ca(self, key: ec.EllipticCurvePrivateKey) -> None:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Ingot CA")])
        certificate = (
            _builder(subject, subject, key.public_key(), self._life)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(sign_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_public(self.ca_file, certificate.public_bytes(serialization.Encoding.PEM))

    def _write_leaf(self, made: Certificate, name: str, hosts: Sequence[str]) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self.certify(key.public_key(), name, hosts)
        write_private(made.key_file, _key_bytes(key))
        write_public(made.cert_file, certificate)

    def _still_good(self, made: Certificate, hosts: Sequence[str]) -> bool:
        if not (made.cert_file.exists() and made.key_file.exists()):
            return False
        try:
            certificate = x509.load_pem_x509_certificate(made.cert_file.read_bytes())
            key = _load_key(made.key_file)
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, TypeError, UnsupportedAlgorithm, x509.ExtensionNotFound):
            return False  # not what we wrote; a new one is as good
        left = certificate.not_valid_after_utc - datetime.now(UTC)
        # A crash between writing the key and the certificate leaves a pair that does not fit.
        fits = certificate.public_key() == key.public_key()
        return (
            fits
            and left > CERTIFICATE_LIFE / 3
            and set(names) == set(_alternative_names(hosts))
            and _signed_by(certificate, self._certificate)
        )


def _signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception:  # any refusal, whatever its type, means: not ours
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, life: timedelta
) -> x509.CertificateBuilder:
    start = datetime.now(UTC) - BACKDATE
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(int.from_bytes(os.urandom(16)) >> 1)
        .not_valid_before(start)
        .not_valid_after(start + BACKDATE + life)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(_dns_name(host))
    return names


def _dns_name(host: str) -> x509.DNSName:
    try:
        return x509.DNSName(host)
    except ValueError:
        raise TrustError(
            f"{host!r} is neither a host name nor an IP address, so no certificate can be made for it"
        ) from None


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path.name} is not an elliptic curve key")
    return key
