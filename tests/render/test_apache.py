"""Apache configuration text, read back by the real server."""

from __future__ import annotations

import base64
import http.client
import string
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as examples
from hypothesis import strategies as st
from tests.e2e.federation.sidecar import CONFIG, sidecar
from tests.real.apache import complaints

from moorage.render.apache import PREAMBLE, UnsafeText, directive, exact, section, text

ADDRESS = "127.0.55.1"
PRINTABLE = string.ascii_letters + string.digits + string.punctuation + " "
ONE_LINE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=40)
TRICKY = st.text(st.sampled_from("\"'$\\{}%#<> `!;=é€PATHCONFIG_"), min_size=1, max_size=24)
FIXED = [
    *PRINTABLE, PRINTABLE, "${PATH}", "${POD_IP}", "$${PATH}", "\\${PATH}", "${MOORAGE_DOLLAR}{PATH}", "a${", "${}", "${a:b}", "\\", "\\\\",
    '\\"', '"', "a\\", "ü€𝄞", "# no comment", "exec:/bin/true", "%{PATH}e", "<IfDefine X>", "'quoted'", " edge ",
]  # fmt: skip


def base(lines: tuple[str, ...]) -> dict[str, bytes]:
    """A server that says with which value a Location was written."""
    modules = [
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
        for name in ("mpm_event", "authz_core", "env", "headers")
    ]
    head = [
        "ServerRoot /tmp", "PidFile /tmp/apache2.pid", "DefaultRuntimeDir /tmp", "Mutex file:/tmp default", "ServerName localhost",
        f"Listen {ADDRESS}:5050", "ErrorLog /dev/stderr", "LogLevel warn", "DocumentRoot /var/www/html", *modules,
        'Header always set X-Value "expr=%{base64:%{reqenv:VALUE}}"', *PREAMBLE,
    ]  # fmt: skip
    return {"httpd-base.conf": text([head, lines]).encode()}


def read_back(folder: Path, lines: tuple[str, ...], paths: list[str]) -> list[str]:
    """What the live module holds for each path."""
    (folder / "run").mkdir(parents=True)
    files = {f"{CONFIG}/{name}": content for name, content in base(lines).items()}
    with sidecar(folder, files, folder / "run" / "x.sock", address=ADDRESS):
        return [base64.b64decode(value).decode() for value in _values(paths)]


def _values(paths: list[str]) -> Iterator[str]:
    connection = http.client.HTTPConnection(ADDRESS, 5050, timeout=30)
    try:
        for path in paths:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            yield answer.headers.get("X-Value", "")
    finally:
        connection.close()


@pytest.mark.case("C12", "B18")
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@examples(st.lists(ONE_LINE | TRICKY, min_size=150, max_size=200))
def test_the_live_module_holds_the_exact_bytes(tmp_path_factory: pytest.TempPathFactory, drawn: list[str]) -> None:
    """Every printable character, alone and together, variables of the environment and of ours, quotes and backslashes, other scripts."""
    values = [*FIXED, *drawn]
    lines = [
        line
        for i, value in enumerate(values)
        for line in section("Location", f"/{i}/", (exact("SetEnv", "VALUE", value),))
    ]
    found = read_back(tmp_path_factory.mktemp("apache"), tuple(lines), [f"/{i}/" for i in range(len(values))])
    assert found == values


def test_a_plain_directive_holds_the_exact_bytes_too(tmp_path: Path) -> None:
    """Without `${`, which is refused there."""
    values = [value for value in FIXED if "${" not in value]
    lines = [
        line
        for i, value in enumerate(values)
        for line in section("Location", f"/{i}/", (directive("SetEnv", "VALUE", value),))
    ]
    assert read_back(tmp_path, tuple(lines), [f"/{i}/" for i in range(len(values))]) == values


def test_a_section_is_of_exactly_its_path(tmp_path: Path) -> None:
    """Characters that mean something in a section header; those of shell patterns and path syntax stand for themselves nowhere."""
    names = [char for char in PRINTABLE if char not in "*?[]/.%\\"]
    lines = [
        line
        for name in names
        for line in section("Location", f"/{name}x", (directive("SetEnv", "VALUE", f"is {name}"),))
    ]
    assert read_back(tmp_path, tuple(lines), [quote(f"/{name}x") for name in names]) == [f"is {name}" for name in names]


def test_httpd_has_nothing_to_say_about_it(tmp_path: Path) -> None:
    """Neither an error nor the warning about an undefined variable, which would show a part of a secret."""
    lines = tuple(exact("SetEnv", f"V{i}", value) for i, value in enumerate(FIXED))
    assert complaints(tmp_path, base(lines)) == []


@pytest.mark.case("A2", "B18")
@pytest.mark.parametrize("value", ["", "a\nb", "a\rb", "\0", "\t", "\x7f", "\x85", "\u2028", "\ud800"])
def test_what_cannot_be_written_is_refused(value: str) -> None:
    """An empty value and a control character; the message names the directive and never the value."""
    for write in (directive, exact):
        with pytest.raises(UnsafeText) as refused:
            write("OIDCClientID", value)
        assert str(refused.value) in (
            "OIDCClientID: a value is empty",
            "OIDCClientID: a value holds a control character",
        )


def test_a_variable_is_refused_where_it_would_be_expanded() -> None:
    """A directive that gets the raw line expands twice, so only `exact` takes `${`."""
    with pytest.raises(UnsafeText, match=r"holds \$\{"):
        directive("Require", "claim", "aud:${PATH}")
    with pytest.raises(UnsafeText):
        section("Location", "/${PATH}", ())


@pytest.mark.parametrize("name", ["", "A B", "A\nB", "</Location", "#"])
def test_a_directive_name_is_a_word(name: str) -> None:
    """Nothing but letters and digits."""
    with pytest.raises(UnsafeText):
        directive(name, "x")
