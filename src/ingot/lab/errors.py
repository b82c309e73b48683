"""What can go wrong in the lab; the tree is drawn in the package's docstring."""

from __future__ import annotations


class LabError(Exception):
    """A person must act; the message says what to do."""


class BootFailure(Exception):
    """The server found nothing it could boot."""


class StepFailed(Exception):
    """A command of the agent failed.

    `kind` and `summary` are the agent's names for the error, `details` is the sentence that Ironic shows.
    """

    def __init__(self, details: str, *, kind: str, summary: str, code: int = 500) -> None:
        super().__init__(f"{summary}: {details}")
        self.kind = kind
        self.code = code
        self.summary = summary
        self.details = details
