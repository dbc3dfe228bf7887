"""keystone.conf as the real oslo.config reads it, and as logging reads its file."""

from __future__ import annotations

import configparser
import json
import string
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, settings
from hypothesis import given as for_all
from hypothesis import strategies as st
from oslo_config import cfg
from tests.keystone.service import given

from moorage.keystone.service.catalogue import unknown_options
from moorage.keystone.service.conf import ConfigFault, Facts, FederationFacts, config_files, overridden, owned, sections

_line = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=("Cc", "Cs")), max_size=40)


def read(folder: Path, files: dict[str, bytes], wanted: dict[str, list[str]], *, multi: bool = False) -> cfg.ConfigOpts:
    """The files as Keystone reads them: every *.conf of the folder."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    conf = cfg.ConfigOpts()
    for section, names in wanted.items():
        opts = [cfg.MultiStrOpt(name) if multi else cfg.StrOpt(name) for name in names]
        conf.register_opts(opts, group=None if section == "DEFAULT" else section)
    conf(["--config-dir", str(folder)], project="keystone", default_config_files=[])
    return conf


@pytest.mark.case("B02")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@for_all(value=_line)
def test_extra_config_reads_back_as_it_was_given(tmp_path: Path, value: str) -> None:
    """`$`, `%`, quotes and edge blanks included."""
    keystone = given.keystone({"extraConfig": {"token": {"expiration": value}}})
    try:
        files = config_files(keystone, Facts())
    except ConfigFault:
        assert any(char in value for char in "\x7f\x85\u2028\u2029")
        return
    assert read(tmp_path / "conf", files, {"token": ["expiration"]}).token.expiration == value


def test_owned_keys_read_back(tmp_path: Path) -> None:
    """All that the operator sets, read by oslo.config, with the logging file in the same folder."""
    keystone = given.keystone({"logging": {"format": "json"}, "cache": {"servers": ["m:11211"]}})
    ours = owned(keystone, Facts(domains=True))
    conf = read(
        tmp_path / "conf", config_files(keystone, Facts(domains=True)), {s: [*keys] for s, keys in ours.items()}
    )
    for section, keys in ours.items():
        for key, value in keys.items():
            found = conf[key] if section == "DEFAULT" else conf[section][key]
            assert (found or "") == value, (section, key)


def test_trusted_dashboards_are_several_values(tmp_path: Path) -> None:
    """One line an origin; oslo.config gives the list."""
    urls = ["https://a.acme.test/", "https://b.acme.test/$x"]
    keystone = given.keystone({"federation": {"trustedDashboards": urls}})
    files = config_files(keystone, Facts())
    conf = read(tmp_path / "conf", files, {"federation": ["trusted_dashboard"]}, multi=True)
    assert conf.federation.trusted_dashboard == urls


def test_later_wins() -> None:
    """plugins, then ours, then extraConfig, then the policy file."""
    keystone = given.keystone(
        {
            "plugins": [{"name": "p", "configSection": "token", "config": {"provider": "plugin", "extra": "plugin"}}],
            "extraConfig": {"token": {"extra": "mine"}, "oslo_policy": {"policy_file": "mine"}},
            "policyOverrides": {"rules": {"a": "!"}},
        }
    )
    found = sections(keystone, Facts())
    assert found["token"] == {"provider": "fernet", "extra": "mine"}
    assert found["oslo_policy"]["policy_file"] == "/etc/keystone/keystone.conf.d/policy.yaml"


def test_receipts_have_a_repository() -> None:
    """Unset, the worker dies at load (spec/keystone.md 3.2)."""
    assert sections(given.keystone(), Facts())["fernet_receipts"] == {"key_repository": "/etc/keystone/fernet-keys"}


def test_domain_options_come_and_go() -> None:
    """Only a projected LDAP domain switches domain drivers on."""
    assert "domain_config_dir" not in sections(given.keystone(), Facts())["identity"]
    assert sections(given.keystone(), Facts(domains=True))["identity"]["domain_config_dir"] == "/etc/keystone/domains"


FEDERATED = Facts(
    federation=FederationFacts({"openid": "HTTP_OIDC_ISS", "saml2": "HTTP_MELLON_IDP", "plugged": "HTTP_X"})
)


@pytest.mark.case("B28")
def test_federation_options_come_and_go(tmp_path: Path) -> None:
    """All of Keystone's own methods and those that it knows of the protocols, a section for each, the page that hands a token over."""
    keystone = given.keystone({})
    names = {"auth": ["methods"], "federation": ["sso_callback_template"]}
    names |= {section: ["remote_id_attribute"] for section in ("openid", "saml2", "plugged")}
    files = config_files(keystone, FEDERATED)
    conf = read(tmp_path / "conf", files, names)
    assert conf.auth.methods == "external,password,token,oauth1,mapped,application_credential,openid,saml2"
    assert (conf.openid.remote_id_attribute, conf.saml2.remote_id_attribute) == ("HTTP_OIDC_ISS", "HTTP_MELLON_IDP")
    assert conf.federation.sso_callback_template.removeprefix("/etc/keystone/keystone.conf.d/") in files
    assert set(config_files(keystone, Facts())) | {"sso_callback_template.html"} == set(files)
    assert not {"auth", "federation"} & set(sections(keystone, Facts()))


def test_the_callback_page_is_filled_in_as_keystone_does() -> None:
    """By string.Template with host and token; nothing else in it is one."""
    page = config_files(given.keystone({}), FEDERATED)["sso_callback_template.html"].decode()
    filled = string.Template(page).substitute(host="https://dash.example.org/auth/websso/", token="gAAA")
    assert 'action="https://dash.example.org/auth/websso/"' in filled
    assert '<input type="hidden" name="token" value="gAAA">' in filled


@pytest.mark.case("B27")
def test_a_trusted_dashboard_is_written_as_keystone_compares_it() -> None:
    """One line each, the host in lower case, path and final slash as they are."""
    trusted = ["https://Dash.Example.org/auth/websso/", "https://dash.example.org/Auth"]
    text = config_files(given.keystone({"federation": {"trustedDashboards": trusted}}), Facts())[
        "keystone.conf"
    ].decode()
    lines = [line for line in text.splitlines() if line.startswith("trusted_dashboard")]
    assert lines == [
        "trusted_dashboard = https://dash.example.org/auth/websso/",
        "trusted_dashboard = https://dash.example.org/Auth",
    ]


def test_overrides_are_named() -> None:
    """Only options of ours count, with their section."""
    keystone = given.keystone(
        {"extraConfig": {"token": {"provider": "x", "expiration": "1"}, "trust": {"enabled": "x"}}}
    )
    assert overridden(keystone, Facts()) == ("[token] provider",)


def test_the_paste_file_keeps_the_order_of_filters() -> None:
    """`before` stands in front of the built-in filters, `after` behind them."""
    filters = [
        {"name": "one", "filterFactory": "a:b", "position": "after"},
        {"name": "two", "filterFactory": "a:b", "position": "before"},
    ]
    parser = configparser.RawConfigParser()
    parser.read_string(config_files(given.keystone({"middleware": filters}), Facts())["api-paste.ini"].decode())
    expected = "two cors sizelimit http_proxy_to_wsgi url_normalize request_id one admin_service"
    assert parser["pipeline:public_api"]["pipeline"] == expected


@for_all(st.dictionaries(_line.filter(str.strip), _line.filter(str.strip), min_size=1, max_size=5))
def test_policy_rules_are_yaml_whatever_they_hold(rules: dict[str, str]) -> None:
    """Names and rules come back as they were given."""
    files = config_files(given.keystone({"policyOverrides": {"rules": rules}}), Facts())
    assert yaml.safe_load(files["policy.yaml"]) == rules


def test_no_secret_is_in_the_configuration() -> None:
    """The connection is a placeholder; the real one comes by environment."""
    host = {"host": "db", "database": "keystone", "secretRef": {"name": "keystone-db"}}
    text = json.dumps({n: c.decode() for n, c in config_files(given.keystone({"database": host}), Facts()).items()})
    assert "p@ss" not in text
    assert "mysql+pymysql://placeholder" in text


def test_the_catalogue_knows_what_the_operator_writes() -> None:
    """Every owned option is known, so that a user may override it."""
    keystone = given.keystone({"cache": {"servers": ["m:1"]}})
    ours = owned(keystone, Facts(domains=True))
    assert unknown_options(given.keystone({"extraConfig": ours})) == ()
    bad = {"token": {"expirations": "1"}}
    assert unknown_options(given.keystone({"extraConfig": bad})) == ("[token] expirations",)
