"""Root device hints: which device an image goes to. Pure; the rules are those of ironic-python-agent.

A hint is a value, or an operator with values: `s== x`, `>= 40`, `<in> x`, `<or> x <or> y`, `<all-in> x y`. Text is compared
without regard to case, sizes are in GiB. A device must meet every hint.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ingot.lab.agent.failures import device_not_found
from ingot.lab.devices import Device
from ingot.lab.inventory import SMALLEST_ROOT_DISK, default_root_device

_TEXT: Final = frozenset(
    {
        "model",
        "wwn",
        "serial",
        "vendor",
        "wwn_with_extension",
        "wwn_vendor_extension",
        "name",
        "hctl",
        "by_path",
    }
    | {"tran"}
)
_NUMBERS: Final[dict[str, Callable[[float, float], bool]]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_STRINGS: Final[dict[str, Callable[[str, str], bool]]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
}
_OPERATOR: Final = re.compile(
    r"(<in>|<or>|<all-in>|s==|s!=|s<=|s>=|s<|s>|==|!=|<=|>=|=|<|>)\s+(.*)", re.DOTALL
)


def root_device(found: Iterable[Device], hints: Mapping[str, Any] | None) -> Device:
    """The device that the hints mean; without hints the one that the agent would choose by itself."""
    there = list(found)
    if not hints:
        chosen = default_root_device(there)
        if chosen is None:
            raise device_not_found(
                "No suitable device was found for deployment - root device hints were not provided "
                f"and all found block devices are smaller than {SMALLEST_ROOT_DISK}B."
            )
        return chosen
    try:
        chosen = next((device for device in there if meets(device, hints)), None)
    except ValueError as error:
        raise device_not_found(
            f"No devices could be found using the root device hints {dict(hints)} "
            f"because they failed to validate. Error: {error}"
        ) from error
    if chosen is None:
        raise device_not_found(f"No suitable device was found for deployment using these hints {dict(hints)}")
    return chosen


def meets(device: Device, hints: Mapping[str, Any]) -> bool:
    shown = device.shown()
    return all(_meets(name, wanted, shown) for name, wanted in hints.items())


def _meets(name: str, wanted: Any, shown: Mapping[str, Any]) -> bool:
    if name == "rotational":
        return bool(shown["rotational"]) is _truth(wanted)
    if name == "size":
        sign, value = _split(str(wanted), "==")
        if sign not in _NUMBERS:
            raise ValueError(f"the operator {sign} does not go with sizes")
        return _NUMBERS[sign](shown["size"] / (1 << 30), float(value))
    if name not in _TEXT:
        raise ValueError(f'The hints "{name}" are invalid.')
    have = str(shown[name] or "").strip().lower()
    return bool(have) and _text_meets(have, str(wanted).strip().lower())


def _text_meets(have: str, wanted: str) -> bool:
    sign, value = _split(wanted, "s==")
    match sign:
        case "<in>":
            return value in have
        case "<all-in>":
            return all(word in have for word in value.split())
        case "<or>":
            return have in [word.strip() for word in value.split("<or>")]
        case _ if sign in _STRINGS:
            return _STRINGS[sign](have, value)
    raise ValueError(f"the operator {sign} does not go with text")


def _split(expression: str, plain: str) -> tuple[str, str]:
    found = _OPERATOR.fullmatch(expression.strip())
    return (found[1], found[2].strip()) if found else (plain, expression.strip())


def _truth(value: Any) -> bool:
    text = str(value).strip().lower()
    if text in ("true", "t", "1", "yes", "y", "on"):
        return True
    if text in ("false", "f", "0", "no", "n", "off"):
        return False
    raise ValueError(f'Root device hint "rotational" is not a Boolean value. Current value: {value}')
