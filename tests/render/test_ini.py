"""What is written is what the real oslo.config reads."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oslo_config import cfg

from moorage.render.ini import UnsafeValue, render_ini

PRINTABLE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30)
TRICKY = st.text(st.sampled_from("\"'$%\\ #;=[]{}a\u00a0\u3000"), max_size=8)


def read_back(text: str, section: str, key: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.conf"
        path.write_bytes(text.encode())
        conf = cfg.ConfigOpts()
        conf.register_opt(cfg.MultiStrOpt(key), group=section)
        conf([], default_config_files=[str(path)], default_config_dirs=[])
        found: list[str] = getattr(conf[section], key)
        return found


@pytest.mark.case("B02")
@given(st.lists(PRINTABLE | TRICKY, min_size=1, max_size=3))
@example(['"'])
@example(["%(password)s"])
@example(["$other", "\\$other", "$$", "\\\\$x", "${a.b}"])
@example(["OU=My People, DC=x"])
@example(["(&(a=b)(c=d))"])
@example([" edge ", "'both'", '"both"', '""', "'"])
def test_every_printable_value_reads_back_as_the_same_text(values: list[str]) -> None:
    assert read_back(render_ini({"ldap": {"password": values}}), "ldap", "password") == values


@pytest.mark.case("B02")
@pytest.mark.parametrize("value", ["a\nb", "a\r", "a\tb", "\x00", "\x7f", "\x85", "a\u2028b", "\ud800"])
def test_a_value_that_could_start_another_line_is_refused_and_not_printed(value: str) -> None:
    with pytest.raises(UnsafeValue) as caught:
        render_ini({"ldap": {"password": value}})
    assert (caught.value.section, caught.value.key) == ("ldap", "password")
    assert value not in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", "a]b", "[x", "a\nb", "#x", ";x", " x", "x "])
def test_a_section_name_that_could_be_read_as_something_else_is_refused(name: str) -> None:
    with pytest.raises(UnsafeValue):
        render_ini({name: {"a": "b"}})


@pytest.mark.parametrize("key", ["", "a=b", "a:b", "a\nb", "#a", "[a", " a", "a "])
def test_a_key_that_could_be_read_as_something_else_is_refused(key: str) -> None:
    with pytest.raises(UnsafeValue):
        render_ini({"a": {key: "b"}})


def test_sections_and_keys_are_sorted_and_values_that_need_no_quotes_have_none() -> None:
    text = render_ini({"ldap": {"url": "ldaps://x", "a": ["1", "2"]}, "identity": {"driver": "ldap", "empty": ""}})
    assert text == "[identity]\ndriver = ldap\nempty =\n\n[ldap]\na = 1\na = 2\nurl = ldaps://x\n"


def test_nothing_to_say_is_an_empty_file() -> None:
    assert render_ini({}) == ""
