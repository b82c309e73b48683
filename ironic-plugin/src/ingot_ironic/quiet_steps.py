"""What a deploy step is told stays out of the log.

Ironic logs steps whole, with their arguments, whenever one begins, waits, ends or fails, and the answer of the agent repeats
them. The config of a CoreOS host is such an argument, and it holds passwords and keys. It is replaced where records of the log
are made, so that it is in no log, wherever that goes; also where it is in an error that is logged. What cannot be looked through
is not shown. Logging never fails of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

SECRETS: Final = frozenset(("ignition",))
"""Names of arguments that are never shown."""
HIDDEN: Final = "***"
_DEEPEST: Final = 8
# As Python or JSON writes a text in a mapping that was put into a message.
_TEXT: Final = re.compile(r"""(['"]ignition['"]:\s*)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
# A mapping in a mapping: where it ends cannot be told from the text, so the rest goes too.
_MAPPING: Final = re.compile(r"""(['"]ignition['"]:\s*)\{.*""", re.DOTALL)
_PROBE: Final = {"step": {"step": "selfcheck", "args": {"ignition": "a secret"}}}

Factory = Callable[..., logging.LogRecord]


def install() -> None:
    """Have records made without secrets. Raises, and changes nothing, when that does not work."""
    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(hiding(before))
    record = logging.getLogger(__name__).makeRecord(
        __name__, logging.INFO, "", 0, "Executing %(step)s", (_PROBE,), None
    )
    if "a secret" in record.getMessage():
        logging.setLogRecordFactory(before)
        raise AttributeError("records of the log are made in another way")


def hiding(make: Factory) -> Factory:
    def made(
        name: str,
        level: int,
        path: str,
        line: int,
        msg: Any,
        args: Any,
        exc_info: Any,
        *rest: Any,
        **more: Any,
    ) -> logging.LogRecord:
        try:
            msg, args = _hidden(msg, 0), _hidden(args, 0)
            if exc_info and _tells(exc_info[1]):
                msg, exc_info = f"{msg} (without its trace, which shows what a step was told)", None
        except Exception as error:  # who logs something must not fail because of us
            msg, args, exc_info = (
                "(a message that could not be looked through: %s)",
                (type(error).__name__,),
                None,
            )
        return make(name, level, path, line, msg, args, exc_info, *rest, **more)

    return made


def _tells(error: BaseException | None) -> bool:
    """Whether the trace of this error would show what is not to be shown: its text, or that of one behind it."""
    behind = 0
    while error is not None and behind <= _DEEPEST:
        text = str(error)
        if _without_written(text) != text:
            return True
        error, behind = error.__cause__ or error.__context__, behind + 1
    return False


def _hidden(value: Any, depth: int) -> Any:
    """The value; a copy of it where something in it is not to be shown."""
    if isinstance(value, str):
        return _without_written(value)
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        shown = {
            key: HIDDEN if _is_secret(key, found) else _hidden(found, depth + 1)
            for key, found in value.items()
        }
        return shown if any(shown[key] is not found for key, found in value.items()) else value
    if isinstance(value, (list, tuple)):
        items = [_hidden(item, depth + 1) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, BaseException):
        text = str(value)
        shown_text = _without_written(text)
        return value if shown_text == text else shown_text
    return value


def _is_secret(key: object, found: object) -> bool:
    return key in SECRETS and found is not None and found != HIDDEN


def _without_written(text: str) -> str:
    if "ignition" not in text:
        return text
    return _MAPPING.sub(rf"\1{HIDDEN}", _TEXT.sub(rf"\1'{HIDDEN}'", text))
