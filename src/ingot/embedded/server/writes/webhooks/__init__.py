"""Admission webhooks of others: who wants to hear of a write, and what they say to it.

    attempt       what is being attempted, and by whom
    hooks         webhooks as their configurations describe them; which attempts concern them
    conditions    their conditions in CEL
    reviews       what a webhook is asked, and what its answer means
    services      where a webhook that is named by its Service is
    calling       asking one over HTTPS
    dispatch      asking all that a write concerns

`Webhooks` is the door. Reviews of access and tokens are no objects here and are not put to webhooks.
"""

from ingot.embedded.server.writes.webhooks.attempt import CREATE, DELETE, ITSELF, UPDATE, Attempt, User
from ingot.embedded.server.writes.webhooks.dispatch import Webhooks

__all__ = ["CREATE", "DELETE", "ITSELF", "UPDATE", "Attempt", "User", "Webhooks"]
