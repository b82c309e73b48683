"""Whose concern a change is: from an object that changed to the keys that must be looked at again.

An object concerns itself, its controlling owner (`owned_by`), or those who name it, as hosts name their Secrets (`named_in`).
`follow` ties an informer to a controller by such a rule. Where an object changes hands, both sides are woken. Objects of the
first list are woken low: what changes meanwhile goes before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ingot.api.meta import Key, Object, Resource
from ingot.kube.cache import Change
from ingot.kube.controller import Controller
from ingot.kube.informer import Informer

T = TypeVar("T", bound=Object)
Keys = Callable[[T], Iterable[Key]]


def itself(obj: Object) -> list[Key]:
    return [obj.key]


def owned_by(owner: Resource[Any]) -> Callable[[Object], list[Key]]:
    """The rule for what objects of this kind make for themselves: the key of the owner that controls the object.

    The version of the kind does not matter: an owner reference keeps the one that was in use when it was written.
    """

    def owners(obj: Object) -> list[Key]:
        namespace = obj.metadata.namespace if owner.namespaced else ""
        return [
            Key(namespace, reference.name)
            for reference in obj.metadata.owner_references
            if reference.controller
            and reference.kind == owner.kind
            and _group(reference.api_version) == owner.group
        ]

    return owners


def named_in(informer: Informer[Any], index: str) -> Callable[[Object], list[Key]]:
    """The rule for what others refer to: the keys of those whose index has the object's key, as text, among its values."""

    def users(obj: Object) -> list[Key]:
        return [user.key for user in informer.by_index(index, str(obj.key))]

    return users


def follow(
    controller: Controller,
    informer: Informer[T],
    keys: Keys[T] = itself,
    *,
    when: Callable[[T, T], bool] = lambda old, new: True,
) -> None:
    """Wake the keys that a change concerns; of changes to an object that was there and is, only those that matter."""

    def changed(change: Change[T]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and not when(old, new):
            return
        both = (keys(obj) for obj in (old, new) if obj is not None)
        for key in dict.fromkeys(key for concerned in both for key in concerned):
            controller.wake(key, low=change.initial)

    informer.subscribe(changed)


def _group(api_version: str) -> str:
    group, slash, _ = api_version.rpartition("/")
    return group if slash else ""
