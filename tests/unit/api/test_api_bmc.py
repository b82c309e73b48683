"""BMC addresses: every form that is accepted, and a sentence for each that is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.bmc import GONE, SCHEMES, Address, InvalidAddress, parse


@pytest.mark.parametrize(
    ("address", "scheme", "transport", "host", "port", "path"),
    [
        ("ipmi://10.0.0.7", "ipmi", "", "10.0.0.7", None, ""),
        ("ipmi://10.0.0.7:6230", "ipmi", "", "10.0.0.7", 6230, ""),
        ("10.0.0.7", "ipmi", "", "10.0.0.7", None, ""),
        ("10.0.0.7:6230", "ipmi", "", "10.0.0.7", 6230, ""),
        ("bmc-7.example.org", "ipmi", "", "bmc-7.example.org", None, ""),
        ("bmc-7:623", "ipmi", "", "bmc-7", 623, ""),
        ("[fd00::7]:623", "ipmi", "", "fd00::7", 623, ""),
        ("libvirt:192.168.122.1:6233/", "libvirt", "", "192.168.122.1", 6233, "/"),
        ("libvirt://192.168.122.1:6233", "libvirt", "", "192.168.122.1", 6233, ""),
        ("redfish://h/redfish/v1/Systems/1", "redfish", "https", "h", None, "/redfish/v1/Systems/1"),
        ("redfish+http://h:8000/x", "redfish", "http", "h", 8000, "/x"),
        ("redfish+https://h/x", "redfish", "https", "h", None, "/x"),
        ("redfish-virtualmedia://[fd00::7]:8000/x", "redfish-virtualmedia", "https", "fd00::7", 8000, "/x"),
        ("redfish-virtualmedia+http://[fd00::7]/x", "redfish-virtualmedia", "http", "fd00::7", None, "/x"),
        ("REDFISH-VirtualMedia://h/X", "redfish-virtualmedia", "https", "h", None, "/X"),
        ("redfish-virtualmedia:h:8000/x", "redfish-virtualmedia", "https", "h", 8000, "/x"),
        ("redfish-uefihttp://h/x", "redfish-uefihttp", "https", "h", None, "/x"),
        ("ilo5-redfish://h/x", "ilo5-redfish", "https", "h", None, "/x"),
        ("ilo5-virtualmedia+https://h/x", "ilo5-virtualmedia", "https", "h", None, "/x"),
        ("idrac-redfish://h/x", "idrac-redfish", "https", "h", None, "/x"),
        ("idrac-virtualmedia+http://h/x", "idrac-virtualmedia", "http", "h", None, "/x"),
        ("redfish://h:/x", "redfish", "https", "h", None, "/x"),
    ],
)
def test_an_address_is_taken_apart(
    address: str, scheme: str, transport: str, host: str, port: int | None, path: str
) -> None:
    found = parse(address)
    assert (found.scheme.name, found.transport, found.host, found.port, found.path) == (
        scheme,
        transport,
        host,
        port,
        path,
    )


@pytest.mark.parametrize(
    ("query", "level"),
    [("", "ADMINISTRATOR"), ("?other=1", "ADMINISTRATOR"), ("?privilegelevel=OPERATOR", "OPERATOR")],
)
def test_an_ipmi_address_says_with_which_privileges_to_come(query: str, level: str) -> None:
    assert parse(f"ipmi://10.0.0.7:623{query}").privilege_level == level


@pytest.mark.parametrize("scheme", GONE)
@pytest.mark.parametrize("form", ["{}://10.0.0.7", "{}:10.0.0.7", "{}+https://10.0.0.7/x"])
def test_a_scheme_of_earlier_days_is_answered_with_what_serves_such_machines_now(
    scheme: str, form: str
) -> None:
    with pytest.raises(InvalidAddress, match=f"no driver for the scheme '{scheme}' any more. Use ") as caught:
        parse(form.format(scheme))
    advice = caught.value.problem.partition("Use ")[2]
    assert any(name in advice.replace(",", "").replace(".", "").split() for name in SCHEMES)


@pytest.mark.parametrize(
    ("address", "root"),
    [
        ("redfish://h/redfish/v1/Systems/1", "https://h"),
        ("redfish+http://10.0.0.7:8000/x", "http://10.0.0.7:8000"),
        ("redfish://[fd00::7]:8443/x", "https://[fd00::7]:8443"),
        ("ipmi://10.0.0.7", ""),
    ],
)
def test_the_web_service_of_a_bmc_has_a_url(address: str, root: str) -> None:
    assert parse(address).root == root


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("", "it names no host"),
        ("redfish://", "it names no host"),
        ("redfish:///redfish/v1/Systems/1", "it names no host"),
        ("drac://10.0.0.7", "there is no scheme 'drac'. Use one of: ipmi, libvirt, redfish"),
        ("redfish://h//other/x", "its path begins with two slashes"),
        ("redfish://h/%2fother/x", "its path begins with two slashes"),
        ("redfish://h/redfish/v1/../../AccountService", "must hold neither '..' nor a backslash"),
        ("redfish://h/redfish/%2e%2e/AccountService", "must hold neither '..' nor a backslash"),
        ("redfish://h/redfish\\v1", "must hold neither '..' nor a backslash"),
        ("redfish://h/%0a", "its path holds an encoded control character (%00 to %1F, %7F)."),
        ("redfish://h/redfish/v1/Systems/1%0D%0AX-Y:%20z", "its path holds an encoded control character"),
        ("redfish://h/%7f", "its path holds an encoded control character"),
        ("ipmi://10.0.0.7?privilegelevel=ROOT", "'ROOT' is not a privilege level: ADMINISTRATOR, OPERATOR"),
        ("ipmi://10.0.0.7?privilegelevel=", "'' is not a privilege level"),
        ("ipmi+http://10.0.0.7", "there is no scheme 'ipmi+http'. Use ipmi."),
        ("redfish+ftp://h", r"there is no scheme 'redfish+ftp'. Use redfish+http or redfish+https."),
        ("redfish://fd00::7", "write the IPv6 address in brackets: [fd00::7]."),
        ("redfish://[10.0.0.7]/x", "'[10.0.0.7]' is not an IPv6 address in brackets."),
        ("redfish://[fd00::7/x", "'[fd00::7' is not an IPv6 address in brackets."),
        ("redfish://[fe80::1%eth0]/x", "is not an IPv6 address in brackets."),
        ("redfish://[fd00::7]8000/x", "'8000' after the IPv6 address is not a port."),
        ("redfish://h:0/x", "'0' is not a port"),
        ("redfish://h:65536/x", "'65536' is not a port"),
        ("redfish://h:http/x", "'http' is not a port"),
        (f"redfish://h:{'9' * 5000}/x", "is not a port"),
        ("redfish://h_1/x", "'h_1' is neither an IP address nor a DNS name."),
        ("redfish://-h/x", "'-h' is neither an IP address nor a DNS name."),
        ("redfish://a..b/x", "'a..b' is neither an IP address nor a DNS name."),
        ("redfish://h/a b", "it contains a space or a character that is not printable ASCII."),
        ("redfish://h/a\n", "it contains a space or a character that is not printable ASCII."),
        ("redfish://bücher/x", "it contains a space or a character that is not printable ASCII."),
    ],
)
def test_an_address_that_means_nothing_is_answered_with_what_is_wrong(address: str, problem: str) -> None:
    with pytest.raises(InvalidAddress) as caught:
        parse(address)
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    "address",
    [
        "redfish://root:hunter2@10.0.0.7/x",
        "root:hunter2@10.0.0.7",
        "redfish://root:hun/ter2@10.0.0.7/x",
        "redfish://root:hunter2 @10.0.0.7/x",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InvalidAddress, match="Put them into the Secret") as caught:
        parse(address)
    for shown in (str(caught.value), caught.value.shown, caught.value.problem):
        assert "hun" not in shown
        assert "root" not in shown


ABILITIES = {
    # scheme: (ISO, virtual media, secure boot, hardware RAID, fast inspection, firmware, needs MAC)
    "ipmi": (False, False, False, False, False, False, False),
    "libvirt": (False, False, False, False, False, False, True),
    "redfish": (False, False, True, True, True, True, False),
    "ilo5-redfish": (False, False, True, True, True, True, False),
    "idrac-redfish": (False, False, True, True, True, True, False),
    "redfish-virtualmedia": (True, True, True, True, True, True, False),
    "ilo5-virtualmedia": (True, True, True, True, True, True, False),
    "idrac-virtualmedia": (True, True, True, True, True, True, False),
    "redfish-uefihttp": (True, False, True, True, True, True, False),
}


@pytest.mark.parametrize("name", sorted({*SCHEMES, *ABILITIES}))
def test_a_scheme_says_what_can_be_done_through_it(name: str) -> None:
    scheme = SCHEMES[name]
    assert (
        scheme.boots_from_iso,
        scheme.virtual_media,
        scheme.secure_boot,
        scheme.hardware_raid,
        scheme.fast_inspection,
        scheme.firmware_settings and scheme.firmware_updates,
        scheme.needs_mac,
    ) == ABILITIES[name]
    assert scheme.needs_provisioning_network is not scheme.boots_from_iso


@given(st.text() | st.text(alphabet="redfish+http://[]:@?#0123456789.%"))
def test_whatever_is_written_is_an_address_or_a_sentence(text: str) -> None:
    try:
        found: Address | InvalidAddress = parse(text)
    except InvalidAddress as error:
        found = error
    if isinstance(found, Address):
        assert found.host
        assert not set(found.host) & set("/@?#[] ")
    else:
        assert found.problem.endswith(".")
