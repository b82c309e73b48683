"""Where the target image of a Machine comes from: its provider spec, else the default of the cluster, else that of the release.

The default of the cluster is one ConfigMap, of which alone a copy is held; that of the release is a setting of the operator. Both
are written as in a provider spec and read as strictly. A default that cannot be read is said so, to everybody who needs it, until
somebody mends or removes it: the next best one is not what the cluster was told to install.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec
import yaml

from ingot.api.admission import images
from ingot.api.baremetalhost import BareMetalHost, BareMetalHostSpec, CustomDeploy, Image
from ingot.api.core import CONFIG_MAPS, ConfigMap
from ingot.api.inputs import documents, steps
from ingot.api.machine import BareMetalMachineProviderSpec, MachineImage
from ingot.api.meta import Malformed, Model
from ingot.api.schema import doc
from ingot.api.strict import problem_with_value
from ingot.kube import Change, Client, EventRecorder, Informer

NAME: Final = "ingot-target-image"
"""Of the ConfigMap with the default of the cluster."""
BROKEN: Final = "TargetImageUnusable"
"""Reason of the event about a default of the cluster that cannot be used."""

Source = Literal["provider spec", "cluster", "release"]


class NoTarget(Malformed):
    """Nothing says what to install, or what says it cannot be used. The sentence says where, and what to do."""


class BrokenDefault(NoTarget):
    """A default is there and does not say what to install."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What to install, and who said so. At least one of the two is set."""

    image: Image | None
    custom_deploy: CustomDeploy | None
    source: Source


class _Default(Model):
    """What a default may say."""

    custom_deploy: Annotated[CustomDeploy | None, doc("Install by a named deploy step.")] = None
    image: Annotated[MachineImage | None, doc("What to write to the disk of the host.")] = None


class TargetDefaults:
    """What a Machine installs. Without an informer there is no default of the cluster; "" is no default of the release."""

    def __init__(self, cluster: Informer[ConfigMap] | None = None, *, release: str = "") -> None:
        """Raises `BrokenDefault` for a release that cannot be used: an operator that starts with it would mislead."""
        self._cluster = cluster
        self._release = of_release(release)

    def resolve(self, spec: BareMetalMachineProviderSpec) -> Resolved:
        """What to install for this provider spec; raises `NoTarget` where nothing can be."""
        if spec.custom_deploy.method or spec.image.url or spec.image.checksum:
            return _resolved(spec.image, spec.custom_deploy, "provider spec", "spec.providerSpec.value")
        if (found := self._config_map()) is not None:
            return of_cluster(found)
        if self._release is not None:
            return self._release
        raise NoTarget(
            "Nothing says what to install: spec.providerSpec.value has neither image nor customDeploy, and there is no "
            f"default. Set one of the two, or have a ConfigMap {NAME} made for the cluster."
        )

    def when_changed(self, call: Callable[[], None]) -> None:
        """Call back whenever the default of the cluster is another one: who had none may have one now."""
        if self._cluster is not None:
            self._cluster.subscribe(lambda change: None if change.initial else call())

    def tell(self, recorder: EventRecorder) -> None:
        """Say in an event on the ConfigMap that it cannot be used, each time that it comes to say something unusable."""

        def look(change: Change[ConfigMap]) -> None:
            if change.new is None or (change.old is not None and change.old.data == change.new.data):
                return
            try:
                of_cluster(change.new)
            except BrokenDefault as broken:
                recorder.record(change.new, type="Warning", reason=BROKEN, message=str(broken))

        if self._cluster is not None:
            self._cluster.subscribe(look)

    def _config_map(self) -> ConfigMap | None:
        return next(iter(self._cluster.items()), None) if self._cluster is not None else None


def defaults_informer(client: Client, namespace: str) -> Informer[ConfigMap]:
    """One that holds the default of the cluster and nothing else: whoever may read that object only may run it."""
    return Informer(client, CONFIG_MAPS, namespace=namespace, fields=f"metadata.name={NAME}")


def of_cluster(found: ConfigMap) -> Resolved:
    """What the ConfigMap says; raises `BrokenDefault`."""
    where = f"ConfigMap {found.key}"
    said = {key: _document(text, f"{where}, key {key}") for key, text in found.data.items()}
    return _read(said, "cluster", where, "Correct it, or delete it to have the default of the release.")


def of_release(text: str) -> Resolved | None:
    """What the setting says; None where it says nothing. Raises `BrokenDefault`."""
    if not text.strip():
        return None
    where = "the default of the release (--release-target, INGOT_RELEASE_TARGET)"
    said = _document(text, where)
    if not isinstance(said, dict):
        raise BrokenDefault(f"{where} is not a mapping with image or customDeploy: {text!r}.")
    return _read(said, "release", where, "Correct the setting, or leave it empty.")


def _read(said: Mapping[str, object], source: Source, where: str, mend: str) -> Resolved:
    if problem := problem_with_value(dict(said), _Default):
        raise BrokenDefault(f"{where} {problem}. {mend}")
    default = msgspec.convert(said, _Default)
    try:
        return _resolved(default.image, default.custom_deploy, source, where)
    except NoTarget as error:
        raise BrokenDefault(f"{error} {mend}") from None


def _document(text: str, where: str) -> object:
    try:
        return documents.load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise BrokenDefault(f"{where} is neither YAML nor JSON: {' '.join(str(error).split())}") from None


def _resolved(
    image: MachineImage | None, custom_deploy: CustomDeploy | None, source: Source, where: str
) -> Resolved:
    image, custom_deploy = image or MachineImage(), custom_deploy or CustomDeploy()
    missing = [] if custom_deploy.method else _missing(image)
    if missing:
        raise NoTarget(
            f"{where} does not say what to install: {' and '.join(missing)} missing. "
            "Set image.url and image.checksum, or customDeploy.method."
        )
    found = Resolved(
        Image(url=image.url, checksum=image.checksum) if not _missing(image) else None,
        custom_deploy if custom_deploy.method else None,
        source,
    )
    if problem := _refused(found):
        raise NoTarget(f"{where} cannot be installed: {problem}")
    return found


def _missing(image: MachineImage) -> list[str]:
    # What comes from a registry is verified by its digest, and has no checksum beside it.
    from_registry = image.url.lower().startswith("oci:")
    wanted = {"image.url": image.url, "image.checksum": from_registry or image.checksum}
    return [field for field, value in wanted.items() if not value]


def _refused(found: Resolved) -> str | None:
    """What would be refused on the host, said before any host is asked for."""
    if found.custom_deploy is not None and (problem := steps.problem_with(found.custom_deploy.method)):
        return f"customDeploy.method: {problem}"
    host = BareMetalHost(spec=BareMetalHostSpec(image=found.image, custom_deploy=found.custom_deploy))
    return next((str(error).removeprefix("spec.") for error in images.image(host)), None)
