"""Rules for the database, the version, and what an Ironic refers to by name."""

from __future__ import annotations

from collections.abc import Iterator

from ingot.api import bmc
from ingot.api.admission.errors import FieldError, forbidden, invalid, not_supported, required
from ingot.api.admission.references import possible_names
from ingot.api.ironic import SUPPORTED_VERSIONS, Ironic, IronicSpec, LocalReference
from ingot.api.ironic.spelling import contradictions, is_database_of
from ingot.api.ironicdatabase import IronicDatabase, IronicDatabaseSpec


def shared_database(ironic: Ironic) -> Iterator[FieldError]:
    spec = ironic.spec
    if spec.high_availability and spec.database is None and spec.database_ref is None:
        yield required(
            "spec.database",
            "with highAvailability the replicas need one database that they share. Set database, or databaseRef to an "
            "IronicDatabase.",
        )


def whole_database(ironic: Ironic) -> Iterator[FieldError]:
    database = ironic.spec.database
    if database is None:
        return
    for field, value in (
        ("credentialsName", database.credentials_name),
        ("host", database.host),
        ("name", database.name),
    ):
        if not value:
            yield required(
                f"spec.database.{field}", "a database is told by its host, its name and its credentialsName."
            )


def database_host(ironic: Ironic) -> Iterator[FieldError]:
    found = ironic.spec.database.host if ironic.spec.database else ""
    if found and not bmc.is_host(found) and not bmc.is_host_and_port(found):
        yield invalid(
            "spec.database.host", found, "write HOST or HOST:PORT; an IPv6 address with a port in brackets."
        )


def same_database(new: Ironic, old: Ironic) -> Iterator[FieldError]:
    """A database may be added or taken away, or told in the other spelling; to change to another one is to lose what is in it."""
    before, after = old.spec, new.spec
    if before.database is not None and after.database is not None:
        is_same = before.database == after.database
    elif before.database_ref is not None and after.database_ref is not None:
        is_same = before.database_ref == after.database_ref
    elif before.database is not None and after.database_ref is not None:
        is_same = is_database_of(before.database, after.database_ref.name)
    elif before.database_ref is not None and after.database is not None:
        is_same = is_database_of(after.database, before.database_ref.name)
    else:
        return
    if not is_same:
        yield forbidden(
            "spec.database" if after.database is not None else "spec.databaseRef",
            None,
            f"Ironic uses the {_shown(before)}, and cannot be moved to another database. Delete it and create it anew.",
        )


def _shown(spec: IronicSpec) -> str:
    if spec.database_ref is not None:
        return f"IronicDatabase {spec.database_ref.name!r}"
    return f"database {spec.database.name!r} at {spec.database.host!r}" if spec.database else "SQLite"


def spellings(ironic: Ironic) -> Iterator[FieldError]:
    yield from _spellings(ironic.spec)


def database_spellings(database: IronicDatabase) -> Iterator[FieldError]:
    yield from _spellings(database.spec)


def _spellings(spec: IronicSpec | IronicDatabaseSpec) -> Iterator[FieldError]:
    for found in contradictions(spec):
        yield invalid(
            found.field,
            found.value,
            f"{found.other} says {found.other_value!r}. Both mean the same thing: remove one of the two.",
        )


def authorities(ironic: Ironic) -> Iterator[FieldError]:
    tls = ironic.spec.tls
    for field, reference in (("bmcCA", tls.bmc_ca), ("trustedCA", tls.trusted_ca)):
        if reference is not None and not reference.name:
            yield required(f"spec.tls.{field}.name", "say which ConfigMap or Secret has the certificates.")


def referred_names(ironic: Ironic) -> Iterator[FieldError]:
    spec, tls = ironic.spec, ironic.spec.tls
    service = spec.networking_service
    named = {
        "spec.apiCredentialsName": spec.api_credentials_name,
        "spec.database.credentialsName": spec.database.credentials_name if spec.database else "",
        "spec.database.tlsCertificateName": spec.database.tls_certificate_name if spec.database else "",
        "spec.tls.certificateName": tls.certificate_name,
        "spec.tls.bmcCAName": tls.bmc_ca_name,
        "spec.networkingService.switchConfigSecretName": service.switch_config_secret_name if service else "",
        "spec.networkingService.switchCredentialsSecretName": (
            service.switch_credentials_secret_name if service else ""
        ),
    }
    yield from possible_names(named)
    yield from possible_names({"spec.tls.trustedCAName": tls.trusted_ca_name}, kind="ConfigMap")
    for field, reference in (("bmcCA", tls.bmc_ca), ("trustedCA", tls.trusted_ca)):
        if reference is not None:
            yield from possible_names(
                {f"spec.tls.{field}.name": reference.name}, kind=reference.kind or "Secret"
            )
    yield from _reference("spec.credentialsRef", spec.credentials_ref, "Secret")
    yield from _reference("spec.databaseRef", spec.database_ref, "IronicDatabase")
    yield from _reference("spec.tlsRef", spec.tls_ref, "Secret")


def database_names(database: IronicDatabase) -> Iterator[FieldError]:
    spec = database.spec
    yield from possible_names(
        {
            "spec.credentialsName": spec.credentials_name,
            "spec.tlsCertificateName": spec.tls_certificate_name,
        }
    )
    yield from _reference("spec.credentialsRef", spec.credentials_ref, "Secret")
    yield from _reference("spec.tlsRef", spec.tls_ref, "Secret")


def _reference(path: str, reference: LocalReference | None, kind: str) -> Iterator[FieldError]:
    if reference is None:
        return
    if not reference.name:
        yield required(f"{path}.name", f"say which {kind} is meant, or remove {path}.")
    yield from possible_names({f"{path}.name": reference.name}, kind=kind)


def version(ironic: Ironic) -> Iterator[FieldError]:
    found = ironic.spec.version
    if found and found not in SUPPORTED_VERSIONS:
        yield not_supported(
            "spec.version", found, f"this version of Ingot runs Ironic {', '.join(SUPPORTED_VERSIONS)}."
        )
