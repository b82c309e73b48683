"""The notification driver that Ironic loads under the name `ingot`.

Being loaded is also how the rest of this package gets into Ironic: after the configuration is read, before the worker is
forked. Ironic makes two instances; they share one set of patches and one sender. Without a `push_url` nothing is sent, and
the patches still hold.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, Final

from oslo_config import cfg
from oslo_messaging.notify import notifier

from ingot_ironic import (
    bmc_retries,
    bounded_settings,
    certificates,
    early_reports,
    fast_key,
    fresh_steps,
    honest_updates,
    ipmi_words,
    kept_sqlite,
    no_stragglers,
    one_life,
    one_look,
    paced_looks,
    patient_heartbeats,
    quick_schemas,
    quick_sqlite,
    quiet_orders,
    quiet_steps,
    roomy_api,
    save_hook,
    sqlite_turns,
    token_again,
    unbroken_clean,
    unbroken_deploy,
    unbroken_power,
    unbroken_updates,
)
from ingot_ironic.message import Event
from ingot_ironic.notification import event_from
from ingot_ironic.receiver import Address
from ingot_ironic.selfcheck import Patches
from ingot_ironic.sender import Sender

LOG: Final = logging.getLogger(__name__)

OPTIONS: Final = [
    cfg.StrOpt("push_url", help="The HTTPS URL of the operator's receiver; nothing is sent without it."),
    cfg.StrOpt("push_ca_file", help="The CA certificate that the receiver is verified against."),
    cfg.StrOpt(
        "push_token_file",
        help="A file with the bearer token that the receiver wants; read again when refused.",
    ),
]
cfg.CONF.register_opts(OPTIONS, group="ingot")

_patches: Final = Patches()


def list_options() -> list[tuple[str, list[Any]]]:
    """Our options, for Ironic's tools that check or document a configuration."""
    return [("ingot", OPTIONS)]


@functools.cache
def _sender() -> Sender | None:
    """The one sender of this process; None when there is nobody to tell."""
    options = cfg.CONF.ingot
    if not (options.push_url and options.push_ca_file and options.push_token_file):
        LOG.warning(
            "[ingot] push_url, push_ca_file and push_token_file are not all set: the operator has to list nodes."
        )
        return None
    return Sender(Address(options.push_url, options.push_ca_file, options.push_token_file), _patches.held)


def _tell(event: Event) -> None:
    sender = _sender()
    if sender is not None:
        sender.tell(event)


class IngotDriver(notifier.Driver):
    """Turns Ironic's notifications into events for the operator. Never blocks, never raises."""

    def __init__(self, conf: Any, topics: Any, transport: Any) -> None:
        super().__init__(conf, topics, transport)
        _patches.apply(
            {
                "save_hook": lambda: save_hook.install(_tell),
                "fast_key": fast_key.install,
                "bmc_retries": bmc_retries.install,
                "ipmi_words": ipmi_words.install,
                "one_life": one_life.install,
                "one_look": one_look.install,
                "paced_looks": paced_looks.install,
                "quick_schemas": quick_schemas.install,
                "quick_sqlite": quick_sqlite.install,
                "kept_sqlite": kept_sqlite.install,
                "sqlite_turns": sqlite_turns.install,
                "certificates": certificates.install,
                "patient_heartbeats": patient_heartbeats.install,
                "early_reports": early_reports.install,
                "token_again": token_again.install,
                "bounded_settings": bounded_settings.install,
                "honest_updates": honest_updates.install,
                "roomy_api": roomy_api.install,
                "quiet_steps": quiet_steps.install,
                "quiet_orders": quiet_orders.install,
                "fresh_steps": fresh_steps.install,
                # The first of those that look after what was cut off: what another has set aside is not for it.
                "no_stragglers": no_stragglers.install,
                "unbroken_deploy": unbroken_deploy.install,
                "unbroken_clean": unbroken_clean.install,
                "unbroken_power": unbroken_power.install,
                "unbroken_updates": unbroken_updates.install,
            }
        )
        _sender()  # made before the fork, so that the worker is heard even when it has nothing to say

    def notify(self, ctxt: Any, message: Any, priority: Any, retry: Any) -> None:
        try:
            event = event_from(message, saves_are_seen=_patches.holds("save_hook"))
            if event is not None:
                _tell(event)
        except Exception as error:
            # Raising would make oslo.messaging log the payload, which holds user data; so would logging the text.
            LOG.warning("A notification was not passed on to the operator (%s).", type(error).__name__)
