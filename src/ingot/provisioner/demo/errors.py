"""What can go wrong with the demo back end itself.

BackendUnavailable
  Away           the script says that nobody answers now
  Overtaken      another process has opened the machines' file since; this one has nothing to say any more
  NotWritten     the file cannot be written; tried again until it can
DemoStateError   the file cannot be used at all; somebody has to look at it
"""

from __future__ import annotations

from ingot.provisioner import BackendError, BackendUnavailable


class Away(BackendUnavailable):
    pass


class Overtaken(BackendUnavailable):
    pass


class NotWritten(BackendUnavailable):
    pass


class DemoStateError(BackendError):
    pass
