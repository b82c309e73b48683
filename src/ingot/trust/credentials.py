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

from ingot.trust.files import alone_in, write_private
from ingot.trust.redaction import Secret

_ALPHABET: Final = string.ascii_letters + string.digits


def random_token(length: int = 40) -> Secret:
    return Secret("".join(secrets.choice(_ALPHABET) for _ in range(length)))


def kept_token(path: Path) -> Secret:
    """The token in this file; made when the file is not there yet, or empty: an empty token would let everybody in."""
    if not (token := _read(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        with alone_in(path.parent):
            if not (token := _read(path)):
                token = random_token()
                write_private(path, token.reveal().encode())
    return token


def _read(path: Path) -> Secret:
    try:
        return Secret(path.read_text().strip())
    except FileNotFoundError:
        return Secret("")


def htpasswd_line(username: str, password: Secret, *, rounds: int = 10) -> str:
    """A line of an htpasswd file, with the bcrypt prefix that Ironic accepts."""
    hashed = bcrypt.hashpw(password.reveal().encode(), bcrypt.gensalt(rounds=rounds, prefix=b"2b"))
    return f"{username}:{hashed.decode()}"
