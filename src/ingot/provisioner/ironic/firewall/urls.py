"""URLs that Ironic, the ramdisk or a BMC is told to fetch something from, or to post something to.

Ironic takes `file://` as a file of its own machine, and a word without a scheme as the name of an image in a service that we do
not run: neither gets through. Ironic's library drops a password that is part of a URL when it is redirected to another host; the
password of a registry goes to `oci://` alone (see `credentials`). So no redirect carries a password elsewhere.
"""

from __future__ import annotations

from typing import Final

from ingot.api.inputs import urls
from ingot.provisioner.ironic.firewall.policy import IMAGE_HOSTS, Policy, meant_by_nobody
from ingot.provisioner.ironic.firewall.rejection import reject

IMAGE_SCHEMES: Final = ("http", "https", "oci")
"""What Ironic 39 can fetch an image from, short of the files of its own machine."""


def image_url(field: str, url: str, policy: Policy) -> None:
    _from_an_allowed_host(field, url, IMAGE_SCHEMES, policy)


def named_image(field: str, url: str) -> None:
    """An image that is not fetched any more: any host will do."""
    _well_formed(field, url, IMAGE_SCHEMES)


def download_url(field: str, url: str, policy: Policy) -> None:
    """What is fetched by HTTP: checksums, firmware, ISO images."""
    _from_an_allowed_host(field, url, urls.WEB_SCHEMES, policy)


def ramdisk_url(field: str, url: str) -> None:
    """What whoever builds images for this site has built; where that is, is up to them."""
    _well_formed(field, url, urls.WEB_SCHEMES)


def destination(field: str, url: str) -> None:
    """Where a BMC posts its events. Any host: nothing of ours calls it, and between a BMC and its server addresses are often
    link-local."""
    _well_formed(field, url, urls.WEB_SCHEMES)


def _well_formed(field: str, url: str, schemes: tuple[str, ...]) -> None:
    if (problem := urls.problem_with(url, schemes)) is not None:
        raise reject(field, urls.without_password(url), problem.sentence)


def _from_an_allowed_host(field: str, url: str, schemes: tuple[str, ...], policy: Policy) -> None:
    _well_formed(field, url, schemes)
    host = urls.host_of(url)
    if not policy.allows(host):
        why = (
            f"nothing is fetched from {host}; allowed is what {IMAGE_HOSTS} names"
            if policy.image_hosts
            else f"nothing is fetched from {host}, which is {meant_by_nobody(host)}, unless {IMAGE_HOSTS} names it"
        )
        raise reject(field, urls.without_password(url), why)
