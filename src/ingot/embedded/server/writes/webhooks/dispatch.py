"""Asking all webhooks that a write concerns: mutating ones one after the other, validating ones at once.

`Webhooks` knows the configurations as they are stored. Where none concerns a write, it costs next to nothing. Configurations of
webhooks are never put to webhooks: a wrong one could not be mended any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Refused, bad_request, internal
from ingot.embedded.server.kinds.builtins import NAMESPACES
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.collection import Change
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes import metadata as meta
from ingot.embedded.server.writes.patches import json_patched
from ingot.embedded.server.writes.webhooks import conditions, reviews
from ingot.embedded.server.writes.webhooks.attempt import CREATE, DELETE, ITSELF, Attempt
from ingot.embedded.server.writes.webhooks.calling import Caller
from ingot.embedded.server.writes.webhooks.hooks import (
    MUTATING,
    REGISTRATION_GROUP,
    VALIDATING,
    Hook,
    hooks_of,
)
from ingot.embedded.server.writes.webhooks.reviews import Misbehaved, Verdict
from ingot.embedded.server.writes.webhooks.services import Services

log = logging.getLogger(__name__)

_EXEMPT: Final = frozenset(f"{plural}.{REGISTRATION_GROUP}" for plural in (VALIDATING, MUTATING))


@dataclass(frozen=True, slots=True)
class _Hooks:
    mutating: Sequence[Hook] = ()
    validating: Sequence[Hook] = ()


class Webhooks:
    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._caller = Caller(Services(store, registry))
        self._known: _Hooks | None = None
        store.subscribe(self._noticed)

    async def close(self) -> None:
        await self._caller.close()

    def concern(self, attempt: Attempt) -> bool:
        """Whether somebody may want to hear of this attempt. Where not, it need not wait for anybody."""
        if attempt.kind.resource in _EXEMPT or _is_for_the_start(attempt):
            return False
        hooks = self._hooks()
        if not (hooks.mutating or hooks.validating):
            return False
        equivalents = self._equivalents(attempt.kind)
        return any(hook.kind_for(attempt, equivalents) for hook in (*hooks.mutating, *hooks.validating))

    async def mutated(
        self, attempt: Attempt, new: Document | None, old: Document | None, warnings: list[str]
    ) -> Document | None:
        """What the webhooks make of the object. Raises what they deny. A patched object is brought into shape again."""
        hooks = () if attempt.kind.resource in _EXEMPT else self._hooks().mutating
        last_change = -1
        for position, hook in enumerate(hooks):
            patched = await self._patched(hook, attempt, new, old, warnings)
            if patched != new:
                new, last_change = patched, position
        for position, hook in enumerate(hooks):
            # Whoever asked for it, and has not seen what others made of the object after it, is asked once more.
            if hook.asked_again and position < last_change:
                new = await self._patched(hook, attempt, new, old, warnings)
        return new

    async def validated(
        self, attempt: Attempt, new: Document | None, old: Document | None, warnings: list[str]
    ) -> None:
        """Raises what a webhook denies."""
        hooks = () if attempt.kind.resource in _EXEMPT else self._hooks().validating
        asked = [(hook, kind) for hook in hooks if (kind := self._concerned(hook, attempt, new, old))]
        answers = await asyncio.gather(
            *(self._verdict(hook, attempt, kind, new, old, may_patch=False) for hook, kind in asked),
            return_exceptions=True,
        )
        refusal: BaseException | None = None
        for (hook, _), answer in zip(asked, answers, strict=True):
            if isinstance(answer, BaseException):
                refusal = refusal or answer
            elif answer is not None:
                warnings += answer.warnings
                if not answer.allowed:
                    refusal = refusal or reviews.denied(hook, answer)
        if refusal is not None:
            raise _with(refusal, warnings)

    # One webhook

    async def _patched(
        self, hook: Hook, attempt: Attempt, new: Document | None, old: Document | None, warnings: list[str]
    ) -> Document | None:
        kind = self._concerned(hook, attempt, new, old)
        answer = None
        if kind is not None:
            answer = await self._verdict(hook, attempt, kind, new, old, may_patch=True)
        if kind is None or answer is None:
            return new
        warnings += answer.warnings
        if not answer.allowed:
            raise _with(reviews.denied(hook, answer), warnings)
        if not answer.patch:
            return new
        if new is None:
            raise internal(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this operation'
            )
        return self._applied(attempt.kind, kind, new, answer.patch)

    def _applied(self, kind: Kind, told_as: Kind, document: Document, patch: list[object]) -> Document:
        try:
            made = json_patched({**document, "apiVersion": told_as.api_version}, patch)
            metadata = meta.read(kind, made, [])
        except Refused as refusal:
            # The client did nothing wrong.
            raise internal(refusal.message) from None
        if (managed := document["metadata"].get("managedFields")) is not None:
            metadata["managedFields"] = managed
        made |= {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        # What a webhook adds that the schema does not know goes silently: the client could do nothing about it.
        kind.shape.conform(made)
        return made

    def _concerned(
        self, hook: Hook, attempt: Attempt, new: Document | None, old: Document | None
    ) -> Kind | None:
        kind = hook.kind_for(attempt, self._equivalents(attempt.kind))
        return kind if kind is not None and hook.selects(self._labels(attempt, new, old), new, old) else None

    async def _verdict(
        self,
        hook: Hook,
        attempt: Attempt,
        kind: Kind,
        new: Document | None,
        old: Document | None,
        *,
        may_patch: bool,
    ) -> Verdict | None:
        """None where the webhook has nothing to say, or failed and may be left out."""
        review = reviews.review(attempt, kind, new, old)
        if hook.conditions and not await conditions.hold(hook, attempt, review["request"]):
            return None
        if attempt.dry_run and not hook.safe_when_dry:
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            return reviews.verdict(review, await self._caller.ask(hook, review), may_patch=may_patch)
        except Misbehaved as error:
            words = f'failed calling webhook "{hook.name}": {error}'
            if hook.must_answer:
                raise internal(words) from None
            log.warning("%s; its failure policy is Ignore", words)
            return None

    # What is known

    def _noticed(self, change: Change) -> None:
        if change.kind.resource in _EXEMPT:
            self._known = None

    def _hooks(self) -> _Hooks:
        if self._known is None:
            self._known = _Hooks(tuple(self._registered(MUTATING)), tuple(self._registered(VALIDATING)))
            self._caller.forget()
        return self._known

    def _registered(self, plural: str) -> Iterable[Hook]:
        kind = self._registry.at(REGISTRATION_GROUP, "v1", plural)
        if kind is None:
            return
        collection = self._store.collection(kind)
        for key in collection.keys(""):
            try:
                yield from list(hooks_of(collection.items[key].document()))
            except (KeyError, TypeError, AttributeError) as error:
                # Nobody can store such a configuration; if it is there all the same, it must not stop every write.
                log.error("the webhooks of %s %s cannot be read, and are left out: %r", plural, key, error)

    def _equivalents(self, kind: Kind) -> list[Kind]:
        """The same kind in its other versions."""
        return [
            other for other in self._registry.kinds if other.resource == kind.resource and other is not kind
        ]

    def _labels(
        self, attempt: Attempt, new: Document | None, old: Document | None
    ) -> Mapping[str, str] | None:
        """The labels of the namespace; of a namespace itself, its own. None for what is in none."""
        if attempt.kind.resource == NAMESPACES.resource:
            itself = old if attempt.operation == DELETE else new
            return dig(itself or {}, "metadata", "labels") or {}
        if not attempt.key.namespace:
            return None
        found = self._store.get(NAMESPACES, Key("", attempt.key.namespace))
        return found.selectable.labels if found is not None else {}


def _is_for_the_start(attempt: Attempt) -> bool:
    """What the server creates itself it needs in order to start. Whoever could be asked waits for that."""
    return attempt.user is ITSELF and attempt.operation == CREATE


def _with(refusal: BaseException, warnings: Sequence[str]) -> BaseException:
    if isinstance(refusal, Refused):
        refusal.warnings = tuple(warnings)
    return refusal
