"""What a request says is checked against its schema; the schema itself is checked once.

Ironic has each request's body checked with `jsonschema.validate`, which first checks the schema against the schema of schemas.
That takes longer than all the rest of it, a quarter of what a request costs; and Ironic's schemas do not change.
"""

from __future__ import annotations

import functools
from typing import Any, Final

MOST: Final = 256
"""Schemas that are kept in mind. Ironic has about fifty."""
_PROBE: Final = {"type": "object", "properties": {"name": {"type": "string"}}}


def install() -> None:
    """Have schemas checked once. Raises, and changes nothing, when bodies are not checked as they should be then."""
    import jsonschema

    original = jsonschema.validate
    hook(jsonschema)
    if not _checks(jsonschema):
        jsonschema.validate = original
        raise AttributeError("jsonschema checks in another way")


def _checks(package: Any) -> bool:
    for _ in range(2):
        package.validate({"name": "a"}, _PROBE)
        try:
            package.validate({"name": 1}, _PROBE)
        except package.ValidationError:
            continue
        return False
    return True


def hook(package: Any) -> None:
    original = package.validate
    checked: dict[int, Any] = {}

    @functools.wraps(original)
    def validate(instance: Any, schema: Any, cls: Any = None, *args: Any, **kwargs: Any) -> None:
        validator = cls or package.validators.validator_for(schema)
        # By identity: the schema is kept, so that no other one can have its number.
        if checked.get(id(schema)) is not schema:
            validator.check_schema(schema)
            if len(checked) >= MOST:
                checked.clear()
            checked[id(schema)] = schema
        errors = validator(schema, *args, **kwargs).iter_errors(instance)
        if (error := package.exceptions.best_match(errors)) is not None:
            raise error

    package.validate = validate
