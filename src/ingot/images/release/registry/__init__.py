"""Talking to a registry: OCI's distribution API, as far as images need it.

`pull_secrets` knows the user's credentials, `challenges` what a registry asks of us, `session` makes requests that survive bad
weather, `repository` is the verbs.
"""

from ingot.images.release.registry.pull_secrets import Credentials, PullSecrets, find_pull_secrets
from ingot.images.release.registry.repository import Repository
from ingot.images.release.registry.session import RegistrySession, RegistrySettings

__all__ = [
    "Credentials",
    "PullSecrets",
    "RegistrySession",
    "RegistrySettings",
    "Repository",
    "find_pull_secrets",
]
