"""`--federation-metadata-allow-cidrs`: what stops the start of both commands, and that it reaches the fetch."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Run

from moorage.cli.operator import allowed_networks
from moorage.core.addresses import parse_networks
from moorage.core.errors import InputError

FLAG = "--federation-metadata-allow-cidrs"


@pytest.mark.case("S6")
@pytest.mark.parametrize("command", ["run", "up"])
def test_a_network_that_cannot_be_used_stops_the_start(moorage: Run, command: str) -> None:
    """Exit 2, one line that names the flag, the entry and what to write; nothing has been started or written."""
    done = moorage(command, FLAG, "10.0.0.0/8,0.0.0.0/0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {FLAG}: 0.0.0.0/0 is every address there is; name the provider's network\n"


@pytest.mark.parametrize("text", ["10.0.0.0/8,", "nonsense", "10.0.0.1", "169.254.0.0/16"])
def test_the_error_names_the_flag(text: str) -> None:
    """Whatever is wrong with an entry."""
    with pytest.raises(InputError, match=FLAG):
        allowed_networks(text)


def test_blank_is_none() -> None:
    """And a list is what the fetch is given."""
    assert allowed_networks(" ") == ()
    assert allowed_networks("10.0.0.0/8, 127.0.0.10/32") == parse_networks("10.0.0.0/8,127.0.0.10/32")
