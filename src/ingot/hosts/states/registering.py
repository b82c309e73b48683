"""Registering: make the host known to the back end and prove that its credentials work.

Owns the way from "we have an address" to "we can manage it". `ensure_registered` runs in every pass, in every state that needs
the back end: when nothing changed it costs next to nothing, and when the back end has lost its memory it is how every host
comes back. A wrong password is an error on the host that waits for a person and for time; it is never a retry storm.
Leaves hardware to `inspecting` and power to `power`.
"""

from __future__ import annotations

from ingot.api.baremetalhost import (
    BareMetalHost,
    CredentialsStatus,
    ErrorType,
    EventReason,
    OperationalStatus,
    RamdiskStatus,
    State,
)
from ingot.api.inspection import inspection_is_disabled, inspection_mode
from ingot.api.installed import RUNS_A_SYSTEM
from ingot.api.meta import Malformed
from ingot.hosts.beside.ramdisks import Ramdisk, ramdisk
from ingot.hosts.host_pass import Pass
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import SOON, Advance, Block, Fail, Outcome, Stay, Wait
from ingot.hosts.secrets.reading import bmc_credentials, unchanged_credentials
from ingot.hosts.states.preparing import record_is_new
from ingot.hosts.states.profiles import UNKNOWN, profile_name
from ingot.provisioner import Access, Busy, Credentials, Failed, NotRegistered, Ready, Registered


async def new(p: Pass) -> Outcome:
    """A host nobody has looked at yet, or one that had no BMC until now."""
    bmc = p.host.spec.bmc
    if bmc.address or bmc.credentials_name:
        p.change(operational_status=OperationalStatus.OK)
        return Advance(State.REGISTERING)
    if p.state is State.NONE:
        p.tell(EventReason.DISCOVERED, "Discovered host with no BMC details")
        p.change(operational_status=OperationalStatus.DISCOVERED)
        return Advance(State.UNMANAGED)
    METRICS.count("host_unmanaged")
    return Stay("spec.bmc is empty: without the address of its BMC the host is only a note")


async def registering(p: Pass) -> Outcome:
    """The first registration; the pass comes here once `ensure_registered` has succeeded."""
    p.completed()
    p.tell(EventReason.REGISTERED, "Registered new host")
    if p.host.spec.externally_provisioned:
        return Advance(State.EXTERNALLY_PROVISIONED)
    return Advance(State.PREPARING if inspection_is_disabled(p.host) else State.INSPECTING)


async def ensure_registered(p: Pass) -> Outcome | None:
    """Make sure that the back end knows the host with its present credentials; None when it does."""
    credentials, version = None, unchanged_credentials(p)
    if version is None:
        found = await bmc_credentials(p)
        if isinstance(found, Block):
            return found
        credentials, version = found
    try:
        profile = profile_name(p.host.spec)
    except Malformed as error:
        return Block(ErrorType.REGISTRATION, str(error))
    boots = await ramdisk(p)
    if isinstance(boots, Block | Wait):
        if isinstance(boots, Wait):
            METRICS.count("waiting_for_preprov_image")
        return boots
    answer = await _register(p, credentials, version, boots)
    if credentials is None and isinstance(answer, NotRegistered):
        found = await bmc_credentials(p)
        if isinstance(found, Block):
            return found
        credentials, version = found
        answer = await _register(p, credentials, version, boots)
    match answer:
        case Busy(why, detail):
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message, refused_credentials=refused):
            if refused:
                METRICS.count("credentials_no_management_access")
                message = message.rstrip(".")
                message += f". Correct Secret {p.host.spec.bmc.credentials_name}; the next try starts as soon as it changes"
            return Fail(ErrorType.REGISTRATION, message)
        case Ready(registered):
            if registered.backend_id != p.status.provisioning.id:
                if p.status.provisioning.id:
                    METRICS.count("host_registration_required")
                await record_is_new(p)
            p.change_provisioning(id=registered.backend_id)
            p.remark = registered.remark
            if boots.own is not None:
                p.boots = RamdiskStatus(format=boots.own.format, version=boots.version)
    if profile != p.status.hardware_profile:
        p.change(hardware_profile=profile)
        if profile != UNKNOWN:
            # That nothing is known of the hardware is worth no Event.
            p.tell(EventReason.PROFILE_SET, f"Hardware profile set: {profile}")
    if version != p.status.good_credentials:
        p.change(good_credentials=version)
        p.tell(EventReason.BMC_ACCESS_VALIDATED, "Verified access to BMC")
    return None


async def _register(
    p: Pass, credentials: Credentials | None, version: CredentialsStatus, boots: Ramdisk
) -> Ready[Registered] | Busy | Failed | NotRegistered:
    """Without credentials: the back end has those of this version from us."""
    if version != p.status.tried_credentials:
        p.change(tried_credentials=version)
        if p.status.good_credentials.credentials is not None:
            METRICS.count("credentials_updated")
            # Written before they are tried: after a crash we still know which version may be in the back end. Of a host that
            # nobody ever got into there is nothing to know.
            await p.save("trying the BMC's credentials")
    answer = await p.tools.backend.register(
        p.ref,
        access(p.current, credentials, boots),
        # Until they are proven good they count as changed: a crash may have come before they were handed on.
        credentials_changed=credentials is not None and version != p.status.good_credentials,
        again=p.failed_with(ErrorType.REGISTRATION),
    )
    if credentials is not None:
        p.tools.known_credentials.given(p.key, version)
    return answer


def access(host: BareMetalHost, credentials: Credentials | None, boots: Ramdisk) -> Access:
    """What the back end needs to know to manage the host."""
    spec = host.spec
    hardware = host.hardware()
    architecture = spec.architecture or (hardware.cpu.arch if hardware is not None else "")
    return Access(
        address=spec.bmc.address,
        credentials=credentials,
        verify_certificate=not spec.bmc.disable_certificate_verification,
        boot_mac=spec.boot_mac_address,
        boot_mode=host.status.provisioning.boot_mode or spec.boot_mode or "UEFI",
        architecture=architecture,
        automated_cleaning=spec.automated_cleaning_mode != "disabled",
        disable_power_off=spec.disable_power_off,
        inspection=inspection_mode(host),
        runs_a_system=spec.externally_provisioned or host.state in RUNS_A_SYSTEM,
        nic_macs=tuple(dict.fromkeys(nic.mac for nic in hardware.nics if nic.mac)) if hardware else (),
        ramdisk=boots.own,
        ramdisk_network=boots.network,
    )
