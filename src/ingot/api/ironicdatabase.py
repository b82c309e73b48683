"""IronicDatabase: a MariaDB for Ironic, run by Ingot.

The kind is from the original proposals. Each field has two names, as in Ironic itself: a plain name, or a reference.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ingot.api.definition import AGE, Column, Definition
from ingot.api.ironic.spec import LocalReference
from ingot.api.meta import Condition, Model, Object, Resource
from ingot.api.schema import doc, map_list


class IronicDatabaseSpec(Model):
    """What is wanted of the database."""

    credentials_name: Annotated[
        str, doc("Secret with the keys `username` and `password`. Made when empty.")
    ] = ""
    credentials_ref: Annotated[LocalReference | None, doc("Another way to write credentialsName.")] = None
    image: Annotated[str, doc("Container image that runs MariaDB, instead of the usual one.")] = ""
    tls_certificate_name: Annotated[
        str,
        doc("Secret with the certificate of the database, keys `tls.crt` and `tls.key`. Made when empty."),
    ] = ""
    tls_ref: Annotated[LocalReference | None, doc("Another way to write tlsCertificateName.")] = None


class IronicDatabaseStatus(Model):
    """What is true of the database."""

    conditions: Annotated[list[Condition], doc("`Ready`: the database answers.", **map_list("type"))] = (
        msgspec.field(default_factory=list)
    )


class IronicDatabase(Object):
    """One MariaDB for one Ironic."""

    spec: Annotated[IronicDatabaseSpec, doc("What is wanted of the database.")] = msgspec.field(
        default_factory=IronicDatabaseSpec
    )
    status: Annotated[IronicDatabaseStatus, doc("What is true of the database.")] = msgspec.field(
        default_factory=IronicDatabaseStatus
    )


IRONIC_DATABASES: Final = Resource(
    group="ironic.metal3.io",
    version="v1alpha1",
    kind="IronicDatabase",
    plural="ironicdatabases",
    type=IronicDatabase,
)

DEFINITION: Final = Definition(
    resource=IRONIC_DATABASES,
    description="A MariaDB database for an Ironic that refers to it with `databaseRef`.",
    columns=(
        Column(
            "Ready",
            '.status.conditions[?(@.type=="Ready")].status',
            description="Whether the database answers",
        ),
        AGE,
    ),
)
