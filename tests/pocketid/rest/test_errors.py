"""What is refused, and how: codes first, then statuses; sentences that are bounded, stable, and tell nothing that was sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.pocketid import Fake

from moorage.core.secret import SecretText
from moorage.net.calls import Calls
from moorage.pocketid.rest import (
    AlreadyExists,
    FieldFault,
    Forbidden,
    LogoRefused,
    Nonsense,
    NotFound,
    PocketID,
    PocketIDError,
    RateLimited,
    Refused,
    Server,
    ServerFailed,
    Unauthorized,
    Unreachable,
)
from moorage.pocketid.rest_errors import SENTENCE_LIMIT, clean, error_of

REQUEST = "PUT /api/x"


@pytest.mark.case("PIDC7")
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (500, "not_found", NotFound), (400, "user_not_found", NotFound), (404, "image_not_found", NotFound),
        (400, "client_id_already_exists", AlreadyExists), (400, "already_in_use", AlreadyExists), (409, "", AlreadyExists),
        (404, "validation_failed", Refused), (400, "invalid_request_body", Refused), (418, "brewing", Refused), (413, "", Refused),
        (400, "not_signed_in", Unauthorized), (401, "", Unauthorized), (404, "forbidden", Forbidden), (403, "user_disabled", Forbidden),
        (403, "ldap_user_group_update", Forbidden), (200 + 203, "anything", Forbidden),
        (500, "rate_limited", RateLimited), (429, "", RateLimited),
        (422, "logo_download_failed", LogoRefused), (400, "logo_too_large", LogoRefused),
        (400, "internal_error", ServerFailed), (503, "", ServerFailed), (408, "", ServerFailed),
        (404, "", Nonsense), (404, "thing_not_found", NotFound), (404, "<b>", Nonsense),
    ],
)  # fmt: skip
def test_the_code_decides_before_the_status(status: int, code: str, kind: type[PocketIDError]) -> None:
    error = error_of(REQUEST, status, {"error": "said", "code": code} if code else None)
    assert type(error) is kind
    assert error.status == status


def test_a_refused_logo_field_is_a_refused_logo() -> None:
    def refusal(*fields: str) -> PocketIDError:
        listed = [{"field": name, "code": "invalid_value"} for name in fields]
        return error_of(REQUEST, 400, {"code": "validation_failed", "details": {"fields": listed}})

    assert type(refusal("logoUrl")) is LogoRefused
    assert type(refusal("darkLogoUrl")) is LogoRefused
    assert type(refusal("logoUrl", "name")) is Refused
    assert type(refusal()) is Refused


def test_fields_and_codes_are_told_and_nothing_else_of_them() -> None:
    fields = [
        {"field": "callbackURLs[0]", "code": "callback_url_pattern", "message": "not https://secret.example"},
        {"field": "a b"},
        5,
    ]
    error = error_of(REQUEST, 400, {"error": "x", "code": "validation_failed", "details": {"fields": fields}})
    assert isinstance(error, Refused)
    assert error.fields == (FieldFault("callbackURLs[0]", "callback_url_pattern"), FieldFault("?", "?"))
    assert (
        str(error)
        == f"{REQUEST}: Pocket-ID answered 400 validation_failed: callbackURLs[0] (callback_url_pattern), ? (?);"
        " correct in the resource what is sent as these fields"
    )


def test_sentences_do_not_change_from_answer_to_answer() -> None:
    said = [error_of(REQUEST, 400, {"error": "No", "code": "x", "request_id": str(number)}) for number in range(2)]
    assert str(said[0]) == str(said[1])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["code", "error", "details", "fields", "field"]) | st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.integers(400, 599), _JSON)
def test_whatever_a_server_says_gives_one_bounded_line(status: int, body: Any) -> None:
    text = str(error_of(REQUEST, status, body))
    assert "\n" not in text
    assert len(text) < 8 * 200 + SENTENCE_LIMIT


_WORD = st.text("abc \n", max_size=30)


@given(st.text("abc", min_size=1, max_size=4), _WORD, _WORD)
def test_what_is_hidden_is_never_said(secret: str, before: str, after: str) -> None:
    assert secret not in clean(f"{before}{secret}{after}", {secret})


# --- over HTTP


@pytest.mark.case("PIDC8", "PIDX15")
async def test_a_rate_limit_says_how_long_to_wait(fake: Fake, pocketid: PocketID) -> None:
    fake.faults.add("rate_limit", times=3, retry_after="7")
    for _ in range(3):
        with pytest.raises(RateLimited) as limited:
            await pocketid.list_oidc_clients()
        assert limited.value.retry_after == 7.0
    assert await pocketid.list_oidc_clients() == ()
    fake.faults.add("rate_limit", retry_after=format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True))
    with pytest.raises(RateLimited) as dated:
        await pocketid.list_oidc_clients()
    assert 50 < dated.value.retry_after <= 60
    fake.faults.add("rate_limit", retry_after="soon")
    with pytest.raises(RateLimited) as unclear:
        await pocketid.list_oidc_clients()
    assert unclear.value.retry_after == 0.0


@pytest.mark.case("PIDX3")
@pytest.mark.parametrize("kind", ["drop_before", "drop_after"])
async def test_a_broken_connection_leaves_open_whether_it_happened(fake: Fake, pocketid: PocketID, kind: str) -> None:
    await pocketid.create_oidc_client({"id": "app", "name": "app"})
    fake.faults.add(kind, method="POST")  # type: ignore[arg-type]
    with pytest.raises(Unreachable):
        await pocketid.create_oidc_client_secret("app")
    assert len((await pocketid.get_oidc_client("app")).secrets) == (kind == "drop_after")


async def test_a_redirect_is_not_followed(fake: Fake, pocketid: PocketID) -> None:
    fake.faults.add("redirect")
    with pytest.raises(Nonsense, match="redirect"):
        await pocketid.get_oidc_client("app")
    assert len(fake.journal.entries) == 1


async def test_a_page_is_no_answer(fake: Fake, pocketid: PocketID) -> None:
    fake.faults.add("page")
    with pytest.raises(Nonsense, match="no JSON"):
        await pocketid.get_oidc_client("app")


async def test_a_missing_route_is_no_missing_object(http: Calls, pocketid: PocketID) -> None:
    """Else a wrong address would look as if everything had been deleted."""
    lost = PocketID(http, Server(f"{pocketid.url}/elsewhere", SecretText("key")))
    with pytest.raises(Nonsense, match="no such route"):
        await lost.delete_oidc_client("app")


async def test_a_server_that_is_not_there_is_unreachable(http: Calls) -> None:
    nowhere = PocketID(http, Server("http://127.0.0.1:9", SecretText("key")))
    with pytest.raises(Unreachable, match=r"cannot connect to 127\.0\.0\.1:9"):
        await nowhere.get_current_version()


@pytest.mark.parametrize("url", ["", "nothing", "http://", "http://[::1", "ftp://a.example", "http://a.example:99999"])
async def test_an_address_that_is_none_is_an_error_of_ours(http: Calls, url: str) -> None:
    with pytest.raises(Nonsense, match="no http or https URL"):
        await PocketID(http, Server(url, SecretText("key"))).get_current_version()


@pytest.mark.parametrize("key", ["", "key-with-line-end\n", "schlüssel-0123456789"])
async def test_a_key_that_no_header_carries_is_told_as_such(pocketid: PocketID, http: Calls, key: str) -> None:
    with pytest.raises(Nonsense, match="API key") as told:
        await PocketID(http, Server(pocketid.url, SecretText(key))).get_current_version()
    assert not key or key.strip() not in str(told.value)


async def test_a_refused_key_is_tried_once_more_and_then_told(fake: Fake, pocketid: PocketID) -> None:
    fake.api_key = "rotated-key-0123456789"
    with pytest.raises(Unauthorized):
        await pocketid.list_oidc_clients()
    assert pocketid.calls["list_oidc_clients"] == 2
    fake.api_key = "fake-static-api-key-0123456789"
    await pocketid.list_oidc_clients()
    fake.api_key = "rotated-key-0123456789"
    with pytest.raises(Unauthorized):
        await pocketid.list_oidc_clients()
    assert pocketid.calls["list_oidc_clients"] == 4


async def test_an_answer_that_never_comes_is_given_up(
    fake: Fake, pocketid: PocketID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.pocketid.rest_requests.TIMEOUT", 0.1)
    held = fake.faults.add("hold")
    with pytest.raises(Unreachable, match="in time"):
        await pocketid.get_oidc_client("app")
    held.release()


async def test_an_answer_without_bound_is_given_up(
    fake: Fake, pocketid: PocketID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.net.calls.ANSWER_LIMIT", 100)
    with pytest.raises(Nonsense, match="larger than 100 bytes"):
        await pocketid.create_oidc_client({"name": "n", "callbackURLs": ["https://a.example/" + "x" * 200]})
