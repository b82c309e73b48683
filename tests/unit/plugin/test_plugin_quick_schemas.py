"""A schema is checked once, what is said in requests every time."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import quick_schemas


class Refused(Exception):
    pass


class BadSchema(Exception):
    pass


class Validator:
    """Of schemas that are lists of what is allowed."""

    checked: list[Any]

    def __init__(self, schema: list[str]) -> None:
        self._schema = schema

    @classmethod
    def check_schema(cls, schema: Any) -> None:
        cls.checked.append(schema)
        if not isinstance(schema, list):
            raise BadSchema

    def iter_errors(self, instance: str) -> Iterator[Refused]:
        if instance not in self._schema:
            yield Refused(instance)


@pytest.fixture
def package() -> Any:
    Validator.checked = []
    package = SimpleNamespace(
        validate=lambda instance, schema: None,
        validators=SimpleNamespace(validator_for=lambda _: Validator),
        exceptions=SimpleNamespace(best_match=lambda errors: next(errors, None)),
    )
    quick_schemas.hook(package)
    return package


def test_a_schema_is_checked_once_and_bodies_always(package: Any) -> None:
    schema = ["a", "b"]
    for _ in range(3):
        package.validate("a", schema)
        with pytest.raises(Refused, match="c"):
            package.validate("c", schema)
    assert Validator.checked == [schema]


def test_an_equal_schema_is_another_one(package: Any) -> None:
    schemas = ["a"], ["a"]
    for schema in schemas:
        package.validate("a", schema)
    assert Validator.checked == [*schemas]


def test_a_bad_schema_is_refused_each_time(package: Any) -> None:
    for _ in range(2):
        with pytest.raises(BadSchema):
            package.validate("a", "no list")


def test_schemas_that_are_made_for_each_request_do_not_pile_up(package: Any) -> None:
    schema = ["a"]
    package.validate("a", schema)
    others = [["b"] for _ in range(quick_schemas.MOST)]
    for other in others:
        package.validate("b", other)
    package.validate("a", schema)
    assert len(Validator.checked) == quick_schemas.MOST + 2
