"""The messages of the built-in kinds: which fields there are, of what type, and how each behaves.

The tables (`*.table`) are the one place where this is written down; `grammar` says how they are read. From a message
come the schema of a kind (`schemas`), the way a JSON document of it is taken in (`intake`), and, in `face`, the way
its protobuf is read.
"""

from ingot.embedded.server.kinds.builtins.tables.grammar import (
    Field,
    ListOf,
    MapOf,
    Message,
    Scalar,
    find_message,
    message,
)
from ingot.embedded.server.kinds.builtins.tables.intake import take_in
from ingot.embedded.server.kinds.builtins.tables.schemas import schema_of

__all__ = ["Field", "ListOf", "MapOf", "Message", "Scalar", "find_message", "message", "schema_of", "take_in"]
