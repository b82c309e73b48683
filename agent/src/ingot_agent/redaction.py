"""What must not reach a log: user data and tokens inside the things that the agent writes down.

The agent logs each command with its parameters, and sends its log to Ironic when a deployment fails. A filter on the handlers
takes the values of a few keys out, wherever they stand; the rest of the record is as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

SECRET_KEYS: Final = frozenset(
    (
        *("ignition", "user_data", "userdata", "configdrive", "network_keyfiles", "coreos_network_keyfiles"),
        *("agent_token", "agent_secret_token"),
    )
)
HIDDEN: Final = "***"


def redacted(value: Any) -> Any:
    """The same, without the values of secret keys."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if key in SECRET_KEYS and inner not in (None, "") else redacted(inner)
            for key, inner in value.items()
        }
    if type(value) in (list, tuple):
        return type(value)(redacted(inner) for inner in value)
    return value


class WithoutSecrets(logging.Filter):
    """Lets every record through, without secrets in its arguments."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.args:
            record.args = redacted(record.args)
        return True


def guard(logger: logging.Logger) -> None:
    """Let none of the handlers of this logger see a secret; once."""
    for handler in logger.handlers:
        if not any(isinstance(known, WithoutSecrets) for known in handler.filters):
            handler.addFilter(WithoutSecrets())
