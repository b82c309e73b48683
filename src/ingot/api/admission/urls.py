"""Rules for URLs in fields. What is refused is repeated to the user, without the password that may be in it."""

from __future__ import annotations

from collections.abc import Iterator

from ingot.api.admission.errors import FieldError, invalid, not_supported
from ingot.api.inputs.urls import problem_with, without_password


def url(path: str, found: str, schemes: tuple[str, ...]) -> Iterator[FieldError]:
    problem = problem_with(found, schemes)
    if problem is not None:
        refused = not_supported if problem.of_scheme else invalid
        yield refused(path, without_password(found), problem.sentence)
