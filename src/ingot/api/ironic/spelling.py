"""The two ways to write credentials, database and certificate, read as one.

The original proposals write references (`credentialsRef`, `databaseRef`, `tlsRef`), today's Ironic writes names. Either is
accepted, and so are fields that were renamed since. Whoever acts on an Ironic or an IronicDatabase acts on what `normalised`
makes of it. To say one thing in two ways is allowed; to say two things is an error.

A `databaseRef` stays one: what it means is known to the IronicDatabase it points at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from ingot.api.ironic.names import DATABASE_NAME, DATABASE_SUFFIX
from ingot.api.ironic.networking import Keepalived
from ingot.api.ironic.spec import TLS, Database, IronicSpec, KeyReference, LocalReference, ResourceReference
from ingot.api.ironicdatabase import IronicDatabaseSpec
from ingot.api.meta import Malformed

Spec = TypeVar("Spec", IronicSpec, IronicDatabaseSpec)


class TwoMeanings(Malformed):
    """One thing is written in two ways that do not agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two fields for one thing, with different values."""

    field: str
    value: str
    other: str
    other_value: str

    def __str__(self) -> str:
        return (
            f"{self.field} is {self.value!r} and {self.other} is {self.other_value!r}: remove one of the two"
        )


def normalised(spec: Spec) -> Spec:
    """The same in today's words; raises `TwoMeanings` if it says two things at once."""
    if found := [*contradictions(spec)]:
        raise TwoMeanings(f"spec contradicts itself: {'; '.join(map(str, found))}.")
    if isinstance(spec, IronicDatabaseSpec):
        return replace(
            spec,
            credentials_name=spec.credentials_name or _name(spec.credentials_ref),
            credentials_ref=None,
            tls_certificate_name=spec.tls_certificate_name or _name(spec.tls_ref),
            tls_ref=None,
        )
    return replace(
        spec,
        api_credentials_name=spec.api_credentials_name or _name(spec.credentials_ref),
        credentials_ref=None,
        database=None if spec.database_ref else spec.database,
        networking=replace(spec.networking, keepalived=_keepalived(spec), ip_address_manager=None),
        tls=_normalised_tls(spec.tls, _name(spec.tls_ref)),
        tls_ref=None,
    )


def contradictions(spec: IronicSpec | IronicDatabaseSpec) -> Iterator[Contradiction]:
    """What is said twice and differently."""
    if isinstance(spec, IronicDatabaseSpec):
        yield from _differing(
            "credentialsName", spec.credentials_name, "credentialsRef", spec.credentials_ref
        )
        yield from _differing("tlsCertificateName", spec.tls_certificate_name, "tlsRef", spec.tls_ref)
        return
    yield from _differing(
        "apiCredentialsName", spec.api_credentials_name, "credentialsRef", spec.credentials_ref
    )
    yield from _differing("tls.certificateName", spec.tls.certificate_name, "tlsRef", spec.tls_ref)
    yield from _databases(spec)
    yield from _authorities("bmcCA", spec.tls.bmc_ca, spec.tls.bmc_ca_name, kind="Secret")
    yield from _authorities("trustedCA", spec.tls.trusted_ca, spec.tls.trusted_ca_name, kind="ConfigMap")


def _differing(
    field: str, name: str, other: str, reference: LocalReference | None
) -> Iterator[Contradiction]:
    if name and reference is not None and reference.name != name:
        yield Contradiction(
            field=f"spec.{field}", value=name, other=f"spec.{other}.name", other_value=reference.name
        )


def _databases(spec: IronicSpec) -> Iterator[Contradiction]:
    if spec.database is None or spec.database_ref is None:
        return
    if not is_database_of(spec.database, spec.database_ref.name):
        yield Contradiction(
            field="spec.database.host",
            value=spec.database.host,
            other="spec.databaseRef.name",
            other_value=spec.database_ref.name,
        )


def is_database_of(database: Database, reference: str) -> bool:
    """Whether the database is the one that an IronicDatabase of this name runs."""
    service = database.host.partition(":")[0].partition(".")[0]
    return service == f"{reference}{DATABASE_SUFFIX}" and database.name == DATABASE_NAME


def _authorities(
    field: str, reference: ResourceReference | None, name: str, *, kind: str
) -> Iterator[Contradiction]:
    if reference is not None and name and (reference.kind, reference.name) != (kind, name):
        yield Contradiction(
            field=f"spec.tls.{field}Name",
            value=f"{kind} {name}",
            other=f"spec.tls.{field}",
            other_value=f"{reference.kind} {reference.name}",
        )


def _normalised_tls(tls: TLS, certificate: str) -> TLS:
    bmc, trusted = tls.bmc_ca, tls.trusted_ca
    if bmc is None and tls.bmc_ca_name:
        bmc = ResourceReference(kind="Secret", name=tls.bmc_ca_name)
    if trusted is None and tls.trusted_ca_name:
        trusted = KeyReference(kind="ConfigMap", name=tls.trusted_ca_name)
    return replace(
        tls,
        certificate_name=tls.certificate_name or certificate,
        bmc_ca=bmc,
        bmc_ca_name="",
        trusted_ca=trusted,
        trusted_ca_name="",
    )


def _keepalived(spec: IronicSpec) -> Keepalived | None:
    return Keepalived(enabled=True) if spec.networking.ip_address_manager else spec.networking.keepalived


def _name(reference: LocalReference | None) -> str:
    return reference.name if reference else ""
