"""A host's pass from its first state to the one where it has to wait.

Owns the order of things in a pass: deletion first, then registration, then the state's handler, on through every state that
needs no waiting. What its outcome means for the status is for `conclusions` to say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ingot.api.baremetalhost import (
    FINALIZER,
    Annotation,
    BareMetalHost,
    ErrorType,
    EventReason,
    OperationalStatus,
    State,
    UnknownState,
)
from ingot.api.meta import Key
from ingot.hosts.beside.data_image import look_after_data_image
from ingot.hosts.beside.firmware import firmware_may_differ, look_after_firmware
from ingot.hosts.beside.hardware import known_hardware
from ingot.hosts.beside.ramdisks import may_boot
from ingot.hosts.capacity import TAKES_A_PLACE, Capacity
from ingot.hosts.conclusions import Conclusions
from ingot.hosts.history import OPERATION, entered
from ingot.hosts.host_pass import Pass, Tools
from ingot.hosts.leaving.deleting import (
    leave_as_detached,
    leave_by_force,
    let_companions_go,
)
from ingot.hosts.leaving.detaching import detach_or_attach
from ingot.hosts.leaving.leftovers import record_goes_first
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import Advance, Block, Delay, Fail, Outcome, Stay
from ingot.hosts.restoring import restore_status
from ingot.hosts.retries import Retries, grounds
from ingot.hosts.retrying import retry_by_hand
from ingot.hosts.rules import broken_rules
from ingot.hosts.secrets.marks import mark_secrets
from ingot.hosts.states.deprovisioning import GIVE_UP_AFTER
from ingot.hosts.states.registering import ensure_registered
from ingot.hosts.states.table import HANDLERS, REGISTERED_FIRST, after_deletion, written_first
from ingot.kube import Again, Conflict, Done
from ingot.provisioner import BackendUnavailable
from ingot.trust import redact

log = logging.getLogger(__name__)

MOST_STATES: Final = 2 * len(HANDLERS)
"""States one pass can go through; more would mean that two handlers send the host back and forth."""

STILL_TO_BE_MADE: Final = frozenset(
    {State.NONE, State.UNMANAGED, State.REGISTERING, State.INSPECTING, State.PREPARING, State.AVAILABLE}
)
"""States from which a host that breaks a rule does not go on. One that runs a system is not held up for it."""

BEFOREHAND: Final[tuple[Callable[[Pass], Awaitable[Outcome | None]], ...]] = (
    leave_by_force,
    restore_status,
    retry_by_hand,
    known_hardware,
    record_goes_first,
    mark_secrets,
    look_after_data_image,
)
"""What is looked after in this order before the state's turn comes; an outcome ends the pass."""

_PARTICIPLE: Final = {
    State.INSPECTING: "inspected",
    State.PROVISIONING: "provisioned",
    State.DEPROVISIONING: "deprovisioned",
}
TAKES_UP_BOOT_MODE: Final = frozenset({State.REGISTERING, State.INSPECTING, State.PROVISIONING})
"""States in which a boot mode that was changed comes into force; in between, the one that was last in use counts."""
STARTED: Final = {
    State.INSPECTING: (EventReason.INSPECTION_STARTED, "Hardware inspection started"),
    State.DEPROVISIONING: (EventReason.DEPROVISIONING_STARTED, "Image deprovisioning started"),
}


class HostReconciler:
    """Reconciles one host at a time per key; see `controller` for what wakes it."""

    def __init__(self, tools: Tools, retries: Retries | None = None) -> None:
        self._tools = tools
        self._retries = retries or Retries(lambda: asyncio.get_running_loop().time())
        self._conclusions = Conclusions(tools, self._retries)
        self._sound: dict[Key, tuple[str, int]] = {}
        """Which host, in which generation, was found to break no rule."""
        self.capacity = Capacity(tools.settings.provisioning_limit, tools.backend.boots_over_network)

    async def __call__(self, key: Key) -> Done | Again:
        try:
            return await self._look_at(key)
        finally:
            self.capacity.pass_over(key)

    def overtaken(self, key: Key) -> None:
        """Something that concerns the host changed while its pass was under way."""
        self._retries.overtaken(key)

    async def _look_at(self, key: Key) -> Done | Again:
        await self._tools.companions.schemas.sweep()
        host = self._tools.hosts.get(key)
        if host is None:
            self._retries.forget(key)
            self._sound.pop(key, None)
            self._tools.known_credentials.forget(key)
            METRICS.forget(key)
            self._tools.companions.unread_firmware.discard(key)
            self._tools.boots_noted.pop(key, None)
            await let_companions_go(self._tools, key)
            return Done()
        if Annotation.PAUSED in host.metadata.annotations or self._not_ours(host):
            return Done()
        try:
            _ = host.state
        except UnknownState as problem:
            # Nothing is known of such a host, so nothing is done to it; whoever wrote that has to say what is true.
            self._tools.recorder.record(
                host, type="Warning", reason=EventReason.UNKNOWN_STATE, message=str(problem)
            )
            return Done()
        p = Pass(host, self._tools)
        if p.status.error_type:
            causes = grounds(host, self._tools.secrets, self._tools.companions)
            if left := self._retries.remaining(key, grounds=causes):
                return Again(left, p.status.error_message)
            if self._retries.starts_over(key, grounds=causes):
                p.completed()
        METRICS.count_host("reconcile", key)
        try:
            return await self._pass(p)
        except Conflict:
            # Somebody else was faster; it is decided again.
            raise
        except Exception:
            METRICS.count_host("reconcile_error", key)
            raise

    @staticmethod
    def _not_ours(host: BareMetalHost) -> bool:
        """A host that is being deleted and no longer has our finalizer is somebody else's business."""
        return host.metadata.deletion_timestamp is not None and FINALIZER not in host.metadata.finalizers

    async def _pass(self, p: Pass) -> Done | Again:
        try:
            await self._claim(p)
            outcome = await self._beforehand(p) or await self._run(p)
        except BackendUnavailable as error:
            return await self._conclusions.without_backend(p, redact(str(error)))
        return await self._conclusions.of(p, outcome)

    async def _claim(self, p: Pass) -> None:
        finalizers = p.host.metadata.finalizers
        if FINALIZER not in finalizers and not p.deleting:
            await p.patch_host({"metadata": {"finalizers": [*finalizers, FINALIZER]}})

    @staticmethod
    async def _beforehand(p: Pass) -> Outcome | None:
        for step in BEFOREHAND:
            if (outcome := await step(p)) is not None:
                return outcome
        return None

    async def _run(self, p: Pass) -> Outcome:
        """Through the states until one of them has to wait."""
        for _ in range(MOST_STATES):
            outcome = await self._one_state(p)
            if not isinstance(outcome, Advance):
                return outcome
            if outcome.state in TAKES_A_PLACE and not self._has_a_place(p):
                p.back_to_mark()
                return self._delay(outcome.state)
            self._enter(p, outcome.state)
            if p.overtaken():
                # Somebody changed the host meanwhile; the write below is refused, and it is decided again.
                return Stay(p.told_last())
            if written_first(p.current):
                await p.save(f"{outcome.state} starts")
        raise RuntimeError(
            f"{p.key} went through {MOST_STATES} states in one pass, last {p.state}: two of them disagree"
        )

    async def _one_state(self, p: Pass) -> Outcome:
        state = p.state
        p.mark()
        if p.deleting and (outcome := leave_as_detached(p)) is not None:
            return outcome
        if (outcome := await detach_or_attach(p)) is not None:
            return outcome
        if p.deleting and (goal := after_deletion(state)) is not None:
            return Advance(goal)
        if not p.deleting and state in STILL_TO_BE_MADE and (errors := self._broken_rules(p.host)):
            return Block(ErrorType.REGISTRATION, errors)
        if state in REGISTERED_FIRST:
            not_yet = await ensure_registered(p)
            match not_yet:
                case None:
                    pass
                case Block() if p.deleting:
                    # Without credentials the back end is left with those it has: the host can still be let go.
                    p.unmanageable = True
                case Fail() if p.deleting and p.status.error_count > GIVE_UP_AFTER:
                    return Advance(State.DELETING)
                case _:
                    return not_yet
            if not p.deleting:
                await look_after_firmware(p)
        if state in TAKES_A_PLACE and not self._has_a_place(p):
            return self._delay(state)
        # What registration brought is true whether the state can be left or not.
        p.mark()
        return await HANDLERS[state](p)

    def _broken_rules(self, host: BareMetalHost) -> str:
        generation = (host.metadata.uid, host.metadata.generation)
        if self._sound.get(host.key) == generation:
            return ""
        errors = broken_rules(host)
        if not errors:
            self._sound[host.key] = generation
        return errors

    def _has_a_place(self, p: Pass) -> bool:
        if not self.capacity.admits(p.current):
            return False
        if p.status.operational_status is OperationalStatus.DELAYED:
            p.change(operational_status=OperationalStatus.OK)
        return True

    def _delay(self, state: State) -> Delay:
        return Delay(
            f"waiting to be {_PARTICIPLE[state]}: all {self.capacity.limit} places for hosts that boot over the network are "
            "taken. It goes on as soon as one is free",
            "delayed__deprovisioning" if state is State.DEPROVISIONING else "delayed__provisioning",
        )

    def _enter(self, p: Pass, state: State) -> None:
        left, booted = p.state, may_boot(p.current)
        log.info("%s: %s → %s", p.key, left or "new", state)
        p.status = entered(p.status, left=left, state=state, at=self._tools.now())
        METRICS.moved(left, state)
        if (done := OPERATION.get(left)) is not None:
            times = getattr(p.status.operation_history, done)
            METRICS.took(done, p.key, (times.end - times.start).total_seconds() if times.start else 0.0)
        if state in TAKES_UP_BOOT_MODE:
            p.change_provisioning(boot_mode=p.host.spec.boot_mode or "UEFI")
        if left is State.INSPECTING:
            firmware_may_differ(p)
        if p.status.error_type or p.status.operational_status is OperationalStatus.SERVICING:
            p.clear_error()
        if state in STARTED:
            p.tell(*STARTED[state])
        if p.remark and may_boot(p.current) and not booted:
            # Once for each time that the host comes to boot ramdisks.
            p.tell(EventReason.NO_EFFECT, f"{p.remark}.", "Warning")
