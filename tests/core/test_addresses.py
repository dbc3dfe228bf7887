"""Which addresses and ports a server that a stranger named may be reached at: every network of S6, as a table."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.core.addresses import UnusableNetwork, internal, parse_networks, port_refusal, refusal

EVERYTHING = "0.0.0.0/1,128.0.0.0/1,::/1,8000::/1"
"""As wide as a list can be: it opens what a list can open."""

ALWAYS_REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "192.0.0.8",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:0:8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "64:ff9b::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::198.18.0.1",
    "64:ff9b:1::1",
    "64:ff9b:1:7f00::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]
PRIVATE = [
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "fc00::1",
    "fdff:ffff::1",
    "::ffff:10.0.0.1",
    "64:ff9b::8.8.8.8",
    "64:ff9b::10.0.0.1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.254"]
PUBLIC += ["2001:200::1", "2606:4700::1111", "2a00::1", "::ffff:8.8.8.8"]
OUTSIDE = ["4000::1", "8000::1", "5f00::1", "200::1", "nonsense", "", "127.1", "0x7f000001"]


@pytest.mark.case("S6")
@pytest.mark.parametrize("address", ALWAYS_REFUSED)
def test_special_addresses_are_refused_whatever_is_allowed(address: str) -> None:
    """In every disguise; a list that contains them by accident does not open them."""
    assert refusal(address, 443, ())
    assert refusal(address, 443, parse_networks(EVERYTHING))


@pytest.mark.case("S6")
@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_need_the_list(address: str) -> None:
    """They are what it is for; an address inside NAT64 is judged, too."""
    assert "list" in refusal(address, 443, ())
    assert refusal(address, 443, parse_networks(EVERYTHING)) == ""


@pytest.mark.case("S6")
def test_nat64_on_the_list_does_not_open_the_private_address_inside_it() -> None:
    """Only an address that is open by itself is reached through it."""
    allowed = parse_networks("64:ff9b::/96")
    assert refusal("64:ff9b::8.8.8.8", 443, allowed) == ""
    assert refusal("64:ff9b::10.0.0.1", 443, allowed)
    assert refusal("64:ff9b::10.0.0.1", 443, parse_networks("64:ff9b::/96,10.0.0.0/24")) == ""


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_open(address: str) -> None:
    """Without any list."""
    assert refusal(address, 443, ()) == ""


@pytest.mark.parametrize("address", OUTSIDE)
def test_what_is_no_global_address_is_refused(address: str) -> None:
    """Deny by default: space that nobody has assigned, and text that is no address."""
    assert refusal(address, 443, ())


@pytest.mark.parametrize("entry", ["127.0.0.10/32", "127.0.0.0/8", "127.112.0.0/12"])
def test_loopback_is_open_to_an_entry_that_names_it(entry: str) -> None:
    """A person's consent for one machine; it opens nothing beside itself."""
    allowed = parse_networks(entry)
    assert refusal(str(allowed[0][0]), 443, allowed) == ""
    assert refusal(f"::ffff:{allowed[0][0]}", 443, allowed) == ""
    assert refusal("::1", 443, allowed)
    assert refusal("169.254.169.254", 443, allowed)
    assert refusal("::1", 443, parse_networks("::1/128")) == ""


def test_an_entry_opens_its_own_network_only() -> None:
    """Neither a neighbour nor the other family."""
    allowed = parse_networks("10.20.0.0/16, fd00:1::/64")
    assert refusal("10.20.255.255", 443, allowed) == ""
    assert refusal("fd00:1::9", 443, allowed) == ""
    assert refusal("10.21.0.0", 443, allowed)
    assert refusal("fd00:1:0:1::", 443, allowed)


@pytest.mark.case("S6")
@pytest.mark.parametrize("port", [0, 21, 22, 25, 53, 389, 445, 1023, 2379, 3306, 5432, 6379, 10250, 11211, 27017])
def test_ports_of_other_services_are_refused(port: int) -> None:
    """Even at an address that is open."""
    assert "web server" in refusal("8.8.8.8", port, ())
    assert port_refusal(port)


@pytest.mark.parametrize("port", [80, 443, 1024, 5000, 8080, 8443, 9443, 65535])
def test_ports_of_web_servers_are_open(port: int) -> None:
    """80, 443, and what is above 1023 and not known for something else."""
    assert refusal("8.8.8.8", port, ()) == ""


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_a_blank_list_is_none(text: str) -> None:
    """As a chart renders an empty value."""
    assert parse_networks(text) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10.0.0.0/8,", "an entry is empty"),
        (",", "an entry is empty"),
        ("10.0.0.0/8,,fd00::/8", "an entry is empty"),
        ("10.0.0.0/33", "no network"),
        ("10.0.0.0/-1", "no network"),
        ("10.0.0/8", "no network"),
        ("idp.example.org", "no network"),
        ("10.0.0.0/8;172.16.0.0/12", "no network"),
        ("10.0.0.1", "write 10.0.0.1/32"),
        ("fd00::1", "write fd00::1/128"),
        ("0.0.0.0/0", "every address"),
        ("::/0", "every address"),
        ("10.1.2.3/8", "write 10.0.0.0/8 or 10.1.2.3/32"),
        ("::ffff:10.0.0.0/104", "in disguise"),
        ("169.254.0.0/16", "never be fetched from (link-local)"),
        ("169.254.169.254/32", "never be fetched from (link-local)"),
        ("fe80::/64", "never be fetched from (link-local)"),
        ("198.18.0.0/15", "never be fetched from (benchmarks)"),
        ("2002::/16", "never be fetched from (6to4)"),
        ("::/96", "never be fetched from"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_with_what_to_write(text: str, says: str) -> None:
    """It stops the start, so nobody believes that it works."""
    with pytest.raises(UnusableNetwork) as refused:
        parse_networks(text)
    assert says in str(refused.value)


@pytest.mark.case("S6")
@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_nothing_that_python_calls_special_is_open(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """Another list of the same registries agrees, as far as it goes."""
    if refusal(str(address), 443, ()) == "":
        inner = getattr(address, "ipv4_mapped", None) or address
        assert inner.is_global
        assert not inner.is_multicast


@pytest.mark.case("S6")
@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("127.0.0.1", "loopback"), ("127.1", "loopback"), ("2130706433", "loopback"), ("0x7f.1", "loopback"), ("0177.0.0.1", "loopback"),
        ("::1", "loopback"), ("::ffff:127.0.0.1", "loopback"), ("localhost", "loopback"), ("keystone.localhost", "loopback"),
        ("10.1.2.3", "private"), ("10.66051", "private"), ("172.16.0.1", "private"), ("192.168.1.1", "private"), ("100.64.0.1", "private"),
        ("fd00::1", "private"), ("::ffff:10.0.0.1", "private"), ("10.0.0.1.", "private"),
        ("169.254.169.254", "special"), ("0xa9fea9fe", "special"), ("fe80::1", "special"), ("fe80::1%eth0", "special"), ("0.0.0.0", "special"),
        ("0", "special"), ("255.255.255.255", "special"), ("192.0.2.7", "special"),
        ("8.8.8.8", ""), ("2606:4700::1111", ""), ("idp.example.org", ""), ("10.example.org", ""), ("", ""), ("1.2.3.4.5", ""), ("256.1.1.1", ""),
        ("1.16777216", ""), ("0x.1", ""), ("09.1", ""), ("4294967296", ""), ("a", ""), ("-1", ""), ("1_0", ""),
    ],
)  # fmt: skip
def test_an_internal_host_is_known_in_every_spelling(host: str, kind: str) -> None:
    """As resolvers take it: short forms, octal, hexadecimal, one number; a name is not resolved."""
    found = internal(host)
    assert (found[0] if found else "") == kind


@settings(deadline=None)
@given(st.ip_addresses(v=4))
def test_one_number_is_the_same_address(address: ipaddress.IPv4Address) -> None:
    """Decimal, hexadecimal and octal of the whole."""
    number = int(address)
    assert {internal(spelled) for spelled in (f"{number}", f"{number:#x}", f"0{number:o}")} == {internal(str(address))}


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_a_host_or_none(host: str) -> None:
    """Nothing is raised."""
    internal(host)
