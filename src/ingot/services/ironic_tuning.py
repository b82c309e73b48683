"""How much Ironic takes on at once, and how patient it is: for a thousand hosts, some of which are dead.

Pure. Ironic is threads of one process, on one core at a time. What a thread waits for costs nothing, so there are many of
them; what bounds a thousand hosts is that none may wait for another one's BMC. Each figure has its reason; docs/ironic.md has
what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot.services.option import Option
from ingot.services.settings import IronicSettings


def tuning_options(settings: IronicSettings) -> Iterator[Option]:
    yield from _work_at_once()
    yield from _looking_after_power(settings)
    yield from _waiting_for_agents(settings)
    yield from _patience_with_bmcs(settings)


def _work_at_once() -> Iterator[Option]:
    group = "conductor"
    yield Option(
        group,
        "workers_pool_size",
        "300",
        "Waiting for power or for an agent holds a worker each; what finds none is refused, and asked again by the operator.",
    )
    yield Option(
        group, "max_concurrent_deploy", "250", "Most of a deployment is waiting; more is refused, not queued."
    )
    yield Option(
        group,
        "max_concurrent_clean",
        "250",
        "A rack that is registered is cleaned all at once; more is refused, not queued.",
    )
    yield Option(
        group,
        "node_history",
        "true",
        "The only place where the reason of a failed step survives: the power-off after it clears last_error.",
    )
    yield Option(
        group,
        "record_step_flows_in_history",
        "false",
        "That cleaning began and ended is known already; as history it would push out reasons, at two writes for each host.",
    )


def _looking_after_power(settings: IronicSettings) -> Iterator[Option]:
    group = "conductor"
    yield Option(
        group,
        "force_power_state_during_sync",
        "false",
        "Power is the operator's decision. Forcing it back could switch off a running host after one wrong reading.",
    )
    yield Option(
        group,
        "sync_power_state_interval",
        str(settings.power_sync_interval),
        "Five requests to each BMC in each cycle; this is how a change behind our back is noticed.",
    )
    yield Option(
        group,
        "sync_power_state_workers",
        "32",
        "A silent BMC holds one for twenty seconds. With Ironic's eight, a dead rack stops the looking after all others.",
    )
    yield Option(
        group,
        "periodic_max_workers",
        "32",
        "Caps the number above; a thread that waits costs next to nothing.",
    )
    yield Option(
        group,
        "power_failure_recovery_interval",
        str(settings.power_recovery_interval),
        "How soon a BMC that came back is noticed.",
    )
    yield Option(
        group,
        "power_state_change_timeout",
        "120",
        "Large servers take more than Ironic's minute to switch on.",
    )


def _waiting_for_agents(settings: IronicSettings) -> Iterator[Option]:
    group = "conductor"
    yield Option(
        group,
        "check_provision_state_interval",
        str(settings.provision_check_interval),
        "How often waiting hosts are checked against the time-outs below.",
    )
    for name in ("deploy_callback", "clean_callback", "service_callback", "inspect_wait"):
        reason = "How long a host may go without a word from its agent."
        yield Option(group, f"{name}_timeout", str(settings.agent_callback_timeout), reason)


def _patience_with_bmcs(settings: IronicSettings) -> Iterator[Option]:
    group = "redfish"
    yield Option(
        group,
        "connection_attempts",
        "1",
        "The Redfish library tries again by itself; Ironic's five rounds around it hold a worker for minutes on a dead BMC.",
    )
    yield Option(
        group,
        "connect_timeout",
        str(settings.bmc_connect_timeout),
        "A BMC that is there answers within this many seconds.",
    )
    yield Option(
        group,
        "connection_cache_size",
        "5000",
        "A session for each BMC. With fewer than hosts the oldest is dropped at each call, and every call logs in anew.",
    )
    interval = str(settings.bmc_task_interval)
    yield Option(
        group,
        "firmware_update_status_interval",
        interval,
        "Also the pace of settings applied without a ramdisk.",
    )
    yield Option(group, "raid_config_status_interval", interval, "The pace of looking after a RAID job.")
    yield Option(
        "ipmi",
        "cipher_suite_versions",
        "3,17",
        "For BMCs that refuse what ipmitool chose; the last is tried first: new ones have switched off what old ones know.",
    )
    yield Option(
        "ipmi",
        "command_retry_timeout",
        "30",
        "A dead BMC holds a worker this long; Ironic's default is a minute.",
    )
    yield Option(
        "ipmi",
        "debug",
        "true",
        "Has ipmitool say why it failed (-v), which the plugin hands on. It prints the same of everything otherwise.",
    )
