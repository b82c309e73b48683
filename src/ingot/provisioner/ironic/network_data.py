"""Network configuration as users write it: YAML or JSON with links, networks and services.

What is wrong with it is told without repeating any of it: it is secret, and a parser's own message quotes the text.
"""

from __future__ import annotations

import msgspec
import yaml

from ingot.api.inputs.documents import TooMuch, load
from ingot.provisioner.ironic.firewall.documents import LARGEST, is_within_bounds
from ingot.provisioner.ironic.model import Json
from ingot.trust import Secret


class UnreadableNetworkData(ValueError):
    """Continues a sentence that begins with what it is: "is neither YAML nor JSON"."""


def parse(text: Secret) -> dict[str, Json] | None:
    """None where there is nothing to configure."""
    if not text:
        return None
    if len(text.reveal()) > LARGEST:
        raise UnreadableNetworkData(f"is too large: at most {LARGEST} characters are taken")
    try:
        parsed = load(text.reveal())
    except TooMuch as error:
        raise UnreadableNetworkData(f"is {error}; nobody could have meant that") from None
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UnreadableNetworkData(f"is neither YAML nor JSON: it cannot be read{where}") from None
    except (yaml.YAMLError, ValueError):
        # A date that does not exist is no YAMLError.
        raise UnreadableNetworkData("is neither YAML nor JSON") from None
    if parsed is None:
        return None
    if not isinstance(parsed, dict):
        raise UnreadableNetworkData("must be a mapping with links, networks and services")
    if not is_within_bounds(parsed):
        raise UnreadableNetworkData(
            "means more values than anybody could have meant; look for YAML aliases in it"
        )
    # YAML has dates and numbers as keys; JSON has not.
    plain: dict[str, Json] = msgspec.to_builtins(parsed, str_keys=True)
    return plain
