"""BareMetalSwitch: have Ironic's networking service know the switches, by way of two Secrets that it mounts.

The switches of a namespace are one file, so they are looked after together: the key of a pass is a namespace. One Secret gets
the file, the other the private keys of switches that are logged in to with a key. Both belong to whoever installed the service
and have to be there; other keys in them stay. A switch that cannot be used is left out of the file, and says why in its
condition `Valid`; the others are not held up by it.

Woken by the switches, by the Secrets they name, and by those two, whoever made or changed them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ingot.api.admission import check
from ingot.api.baremetalswitch import BARE_METAL_SWITCHES, BareMetalSwitch, ConditionReason, ConditionType
from ingot.api.core import SECRETS, SecretObject
from ingot.api.meta import Condition, ConditionStatus, Key, Malformed, PartialObjectMetadata, now
from ingot.api.wire import wire
from ingot.hosts.switches.file import FILE, KEY_FILE, Section, section, whole
from ingot.kube import Change, Client, Controller, Done, Informer, NotFound, follow

BY_NAMESPACE: Final = "namespace"
BY_SECRET: Final = "secret"  # noqa: S105 - the name of an index


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSettings:
    """Which Secrets the networking service mounts, in the namespace of the switches."""

    configs_secret: str
    credentials_secret: str
    credentials_path: str = "/etc/ironic/networking/credentials"
    """Where the second one is mounted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the condition of a switch says."""

    status: ConditionStatus
    reason: ConditionReason
    message: str


GOOD: Final = Verdict("True", ConditionReason.RECONCILED, "Ironic's networking service knows the switch")


def _secrets_of(switch: BareMetalSwitch) -> Iterable[str]:
    reference = switch.spec.credentials
    named = reference is not None and reference.name
    return [str(Key(switch.metadata.namespace, reference.name))] if reference is not None and named else []


class SwitchController:
    """The switches of one API, ready to be run."""

    def __init__(
        self,
        client: Client,
        settings: SwitchSettings,
        *,
        secrets: Informer[PartialObjectMetadata],
        namespace: str = "",
    ) -> None:
        self._client = client
        self._settings = settings
        self._secrets = secrets
        self.switches = Informer(
            client,
            BARE_METAL_SWITCHES,
            namespace=namespace,
            indexes={BY_NAMESPACE: lambda one: [one.metadata.namespace], BY_SECRET: _secrets_of},
        )
        self.controller = Controller("switches", self._reconcile, workers=2)
        follow(
            self.controller, self.switches, lambda one: [_key(one.metadata.namespace)], when=_says_otherwise
        )
        secrets.subscribe(self._secret_changed)

    @property
    def informers(self) -> list[Informer[Any]]:
        """What this adds to the informer of the Secrets."""
        return [self.switches]

    def _secret_changed(self, change: Change[PartialObjectMetadata]) -> None:
        namespace, name = change.key
        ours = name in (self._settings.configs_secret, self._settings.credentials_secret)
        if ours or self.switches.by_index(BY_SECRET, str(change.key)):
            self.controller.wake(_key(namespace), low=change.initial)

    # A pass over the switches of a namespace

    async def _reconcile(self, key: Key) -> Done:
        namespace = key.namespace
        verdicts: dict[Key, Verdict] = {}
        sections: dict[Key, Section] = {}
        macs: dict[str, str] = {}
        for switch in self._switches(namespace):
            found = await self._look_at(switch, macs)
            if isinstance(found, Verdict):
                verdicts[switch.key] = found
            else:
                sections[switch.key] = found
        verdicts |= await self._hand_on(namespace, sections)
        for switch in self._switches(namespace):
            if (verdict := verdicts.get(switch.key)) is not None:
                await self._tell(switch, verdict)
        return Done()

    def _switches(self, namespace: str) -> list[BareMetalSwitch]:
        found = self.switches.by_index(BY_NAMESPACE, namespace)
        alive = (switch for switch in found if switch.metadata.deletion_timestamp is None)
        return sorted(alive, key=lambda switch: switch.metadata.name)

    async def _look_at(self, switch: BareMetalSwitch, macs: dict[str, str]) -> Section | Verdict:
        """Its section of the file, or why it has none."""
        kind = BARE_METAL_SWITCHES
        if errors := check(kind.group, kind.kind, wire(switch), None):
            # The API refuses such a switch; a cluster whose webhook is off does not.
            return _bad(ConditionReason.INVALID_SPEC, "; ".join(str(error) for error in errors))
        mac = switch.spec.mac_address.lower()
        if (other := macs.setdefault(mac, switch.metadata.name)) != switch.metadata.name:
            return _bad(
                ConditionReason.INVALID_SPEC,
                f"BareMetalSwitch {other} has the MAC address {mac} already. One of the two is wrong.",
            )
        reference = switch.spec.credentials
        if reference is None or not reference.name:
            return _bad(
                ConditionReason.CREDENTIAL_ERROR,
                "spec.credentials names no Secret, and there is no way to log in.",
            )
        try:
            secret = await self._client.get(SECRETS, Key(switch.metadata.namespace, reference.name))
            return section(switch, secret, keys_folder=self._settings.credentials_path)
        except NotFound:
            return _bad(
                ConditionReason.CREDENTIAL_ERROR,
                f"Secret {reference.name} does not exist in namespace {switch.metadata.namespace}. Create it; the switch is "
                "taken up as soon as it is there.",
            )
        except Malformed as problem:
            return _bad(ConditionReason.CREDENTIAL_ERROR, str(problem))

    # The two Secrets

    async def _hand_on(self, namespace: str, sections: Mapping[Key, Section]) -> dict[Key, Verdict]:
        """Keys are there before the file names them, and go after it has stopped to."""
        verdicts = dict.fromkeys(sections, GOOD)
        wanted = {found.key_file: found.key for found in sections.values() if found.key}
        credentials = await self._find(Key(namespace, self._settings.credentials_secret))
        if wanted and credentials is None:
            missing = _missing(self._settings.credentials_secret, namespace)
            verdicts |= {key: missing for key, found in sections.items() if found.key}
            sections = {key: found for key, found in sections.items() if not found.key}
        elif wanted and credentials is not None:
            credentials = await self._put(credentials, wanted)
        configs = await self._find(Key(namespace, self._settings.configs_secret))
        if configs is None:
            return dict.fromkeys(verdicts, _missing(self._settings.configs_secret, namespace))
        await self._put(configs, {FILE: _encoded(whole(sections.values()))})
        if credentials is not None:
            stale = [name for name in credentials.data if KEY_FILE.fullmatch(name) and name not in wanted]
            await self._put(credentials, dict.fromkeys(stale))
        return verdicts

    async def _find(self, key: Key) -> SecretObject | None:
        try:
            return await self._client.get(SECRETS, key)
        except NotFound:
            return None

    async def _put(self, secret: SecretObject, data: Mapping[str, str | None]) -> SecretObject:
        """Set these keys, or remove them, where they are not so already."""
        change = {name: value for name, value in data.items() if secret.data.get(name) != value}
        if not change:
            return secret
        return await self._client.patch(
            SECRETS, secret.key, {"data": change}, resource_version=secret.metadata.resource_version
        )

    # The condition

    async def _tell(self, switch: BareMetalSwitch, verdict: Verdict) -> None:
        before = next((one for one in switch.status.conditions if one.type == ConditionType.VALID), None)
        turned = before is None or before.status != verdict.status
        made = Condition(
            type=ConditionType.VALID,
            status=verdict.status,
            reason=verdict.reason,
            message=verdict.message,
            last_transition_time=now() if before is None or turned else before.last_transition_time,
            observed_generation=switch.metadata.generation,
        )
        if made == before:
            return
        others = [one for one in switch.status.conditions if one.type != ConditionType.VALID]
        written = await self._client.patch(
            BARE_METAL_SWITCHES,
            switch.key,
            {"status": {"conditions": wire([*others, made])}},
            subresource="status",
            resource_version=switch.metadata.resource_version,
        )
        self.switches.observe(written)


def _key(namespace: str) -> Key:
    """The key of a pass over all switches of the namespace."""
    return Key(namespace, BARE_METAL_SWITCHES.plural)


def _bad(reason: ConditionReason, message: str) -> Verdict:
    return Verdict("False", reason, message)


def _missing(secret: str, namespace: str) -> Verdict:
    return Verdict(
        "Unknown",
        ConditionReason.SECRET_MISSING,
        f"Secret {secret}, which Ironic's networking service reads, does not exist in namespace {namespace}. The switch is "
        "handed on as soon as it is there.",
    )


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _says_otherwise(old: BareMetalSwitch, new: BareMetalSwitch) -> bool:
    return old.metadata.generation != new.metadata.generation or (
        old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
    )
