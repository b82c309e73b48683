"""What can go wrong when a service is set up.

    ServiceError                a sentence for the person who started the service
    ├── SettingsError           a setting is missing or wrong: correct the environment
    ├── EnvironmentUnavailable  the virtual environment cannot be made: network, disk, or a missing program
    ├── ProgramMissing          a program of the operating system is not installed: install the package it names
    ├── AlreadyRunning          the state folder belongs to a service that is alive
    └── SchemaError             the database cannot be brought to the schema this Ironic needs

None of them is worth retrying by itself; each says what a person can do.
"""

from __future__ import annotations


class ServiceError(Exception):
    """A service cannot start. The text is a sentence for the person who started it."""


class SettingsError(ServiceError):
    """A setting is missing, malformed, or contradicts another one."""


class EnvironmentUnavailable(ServiceError):
    """Ironic's virtual environment is not there and cannot be made."""


class ProgramMissing(ServiceError):
    """A program that the service needs is not on PATH."""


class AlreadyRunning(ServiceError):
    """Another process serves this state folder."""


class SchemaError(ServiceError):
    """The database is not, and cannot be made, what this version of Ironic needs."""
