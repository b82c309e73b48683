"""Errors of the rooms, as the sentence a person reads: no traceback for what that person can mend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    # Imported on use: a command that only prints its help needs none of these rooms.
    from ingot.api.meta import Malformed
    from ingot.embedded.supervisor import SupervisorError
    from ingot.kube import KubeError
    from ingot.lab.errors import LabError
    from ingot.services.errors import ServiceError

    try:
        yield
    except (SupervisorError, ServiceError, LabError, KubeError, Malformed) as error:
        raise click.ClickException(str(error)) from error
    except PermissionError as error:
        what = f"{error.filename}: permission denied" if error.filename else "this is not yours to do"
        raise click.ClickException(
            f"{what}. Choose a folder of your own with --state, or run as the user who started it."
        ) from error
    except OSError as error:
        # A full disk, a file in place of a folder: the machine's state, which the person can see to.
        where = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(f"{where}{error.strerror or error}") from error
