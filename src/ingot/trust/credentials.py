"""Random credentials, and the files they are kept in.

Passwords and tokens are made once and read again afterwards; they are ASCII letters and digits, because they travel through
configuration files, URLs and HTTP headers that each have special characters of their own.
"""

from __future__ import annotations

import secrets
import string
from pathlib import Path
from typing import Final

import bcrypt

from ingot.trust.files import write_private
from ingot.trust.redaction import Secret

_ALPHABET: Final = string.ascii_letters + string.digits


def random_token(length: int = 40) -> Secret:
    return Secret("".join(secrets.choice(_ALPHABET) for _ in range(length)))


def kept_token(path: Path) -> Secret:
    """The token in this file; made when the file is not there yet."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, random_token().reveal().encode())
    return Secret(path.read_text().strip())


def htpasswd_line(username: str, password: Secret, *, rounds: int = 10) -> str:
    """A line of an htpasswd file, with the bcrypt prefix that Ironic accepts."""
    hashed = bcrypt.hashpw(password.reveal().encode(), bcrypt.gensalt(rounds=rounds, prefix=b"2b"))
    return f"{username}:{hashed.decode()}"
