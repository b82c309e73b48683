"""What a demo machine is made of: a rack server of middling size. Serial numbers and MAC addresses come from the host's name."""

from __future__ import annotations

import hashlib
from typing import Final

from msgspec.structs import replace

from ingot.api.hardwaredata import (
    BIOS,
    CPU,
    LLDP,
    NIC,
    VLAN,
    Firmware,
    HardwareDetails,
    Storage,
    SystemVendor,
)
from ingot.api.meta import Key
from ingot.provisioner.demo.firmware import MODEL, VENDOR

_FLAGS: Final = (
    "3dnowprefetch abm acpi adx aes aperfmperf apic arat arch_capabilities arch_perfmon art avx avx2 avx512_bitalg "
    "avx512_vbmi2 avx512_vnni avx512_vpopcntdq avx512bw avx512cd avx512dq avx512f avx512ifma avx512vbmi avx512vl bmi1 bmi2 "
    "bts cat_l3 cdp_l3 clflush clflushopt clwb cmov constant_tsc cpuid cqm cqm_llc cqm_mbm_local cqm_mbm_total "
    "cqm_occup_llc cx16 cx8 dca de ds_cpl dtes64 dtherm dts epb ept ept_ad erms est f16c flexpriority flush_l1d fma fpu "
    "fsgsbase fsrm fxsr gfni hle ht ibpb ibrs ibrs_enhanced ida intel_ppin intel_pt invpcid invpcid_single la57 lahf_lm lm "
    "mba mca mce md_clear mmx monitor movbe msr mtrr nonstop_tsc nopl nx ospke pae pat pbe pcid pclmulqdq pconfig pdcm "
    "pdpe1gb pebs pge pku pln pni popcnt pse pse36 pts rdpid rdrand rdseed rdt_a rdtscp rep_good rtm sdbg sep sha_ni smap "
    "smep smx split_lock_detect ss ssbd sse sse2 sse4_1 sse4_2 ssse3 stibp syscall tm tm2 tme tpr_shadow tsc tsc_adjust "
    "tsc_deadline_timer tsc_known_freq vaes vme vmx vnmi vpclmulqdq vpid wbnoinvd x2apic xgetbv1 xsave xsavec xsaveopt "
    "xsaves xtopology xtpr"
)
_PROCESSOR: Final = CPU(
    arch="x86_64",
    model="Demo Silver 24-core at 2.40 GHz",
    clock_megahertz=3400.0,
    count=96,
    flags=_FLAGS.split(),
)
_FIRMWARE: Final = Firmware(bios=BIOS(date="03/14/2026", vendor=VENDOR, version="2.18.1"))
_TB: Final = 1_000_000_000_000
_VLANS: Final = [VLAN(id=number, name=f"rack-{number}") for number in (101, 102, 103)]


def hardware_of(key: Key, boot_mac: str = "") -> HardwareDetails:
    """What the machine of this host is made of."""
    digest = hashlib.blake2b(str(key).encode(), digest_size=8).hexdigest()
    serial = digest[:10].upper()
    return HardwareDetails(
        cpu=_PROCESSOR,
        firmware=_FIRMWARE,
        hostname=key.name,
        nics=[_nic(0, boot_mac or _mac(digest, 0)), _nic(1, _mac(digest, 1))],
        ram_mebibytes=262_144,
        storage=[_system_disk(at, serial) for at in (0, 1)] + [_data_disk(at, digest) for at in range(6)],
        system_vendor=SystemVendor(manufacturer=VENDOR, product_name=MODEL, serial_number=serial),
    )


def scaled_down(whole: HardwareDetails) -> HardwareDetails:
    """As little of it as a virtual machine has: a processor without its flags, two interfaces, two disks."""
    return replace(
        whole,
        cpu=replace(whole.cpu, flags=[]),
        nics=[NIC(name=nic.name, mac=nic.mac, ip=nic.ip, pxe=nic.pxe) for nic in whole.nics],
        storage=[Storage(name=disk.name, size_bytes=disk.size_bytes) for disk in whole.storage[:2]],
    )


def _mac(digest: str, at: int) -> str:
    """Locally administered, so that no real card has it."""
    *first, last = bytes.fromhex(digest)[:5]
    return ":".join(f"{byte:02x}" for byte in (0x02, *first, last & 0xFE | at))


def _nic(at: int, mac: str) -> NIC:
    return NIC(
        name=f"eno{at + 1}np{at}",
        mac=mac,
        model="0x8086 0x1592",
        pci_address=f"0000:31:00.{at}",
        pxe=at == 0,
        speed_gbps=25,
        ip=f"192.0.2.{10 + at}",
        vlan_id=101,
        vlans=_VLANS,
        lldp=LLDP(
            switch_id="02:00:5e:10:00:01", port_id=f"Ethernet1/{at + 1}", switch_system_name="demo-leaf"
        ),
    )


def _system_disk(at: int, serial: str) -> Storage:
    model, number = "Demo Flash M.2 960", f"{serial}M{at}"
    return Storage(
        name=f"/dev/disk/by-path/pci-0000:65:00.{at}-nvme-1",
        alternate_names=[
            f"/dev/nvme{at}n1",
            f"/dev/disk/by-id/nvme-{model.replace(' ', '_')}_{number}",
            f"/dev/disk/by-path/pci-0000:65:00.{at}-nvme-1",
        ],
        type="NVME",
        size_bytes=960_197_124_096,
        vendor=VENDOR,
        model=model,
        serial_number=number,
        wwn=f"eui.{serial.lower()}00{at:04x}",
    )


def _data_disk(at: int, digest: str) -> Storage:
    model, wwn = "Demo Platter 8TB", f"0x5000c5{digest[:9]}{at}"
    letter = "abcdef"[at]
    return Storage(
        name=f"/dev/disk/by-path/pci-0000:17:00.0-sas-phy{at}-lun-0",
        alternate_names=[
            f"/dev/sd{letter}",
            f"/dev/disk/by-id/wwn-{wwn}",
            f"/dev/disk/by-id/scsi-3{wwn.removeprefix('0x')}",
            f"/dev/disk/by-path/pci-0000:17:00.0-sas-phy{at}-lun-0",
        ],
        rotational=True,
        type="HDD",
        size_bytes=8 * _TB,
        vendor=VENDOR,
        model=model,
        serial_number=f"{digest[:8].upper()}P{at}",
        wwn=wwn,
        wwn_with_extension=wwn,
        hctl=f"0:0:{at}:0",
    )
