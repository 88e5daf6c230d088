"""What `redact` takes out, and what it leaves."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.domain.redaction import MASK, SHORTEST_SECRET, redact

TELEGRAM = "123456789:AAF-dk3_9sLkQwErTyUiOpAsDfGhJkLzXcV"
WORDS = [
    "the",
    "bot",
    "basic",
    "bearer",
    "of",
    "news",
    "tokens",
    "key",
    "a",
    "task-list",
    "risk-free",
    "sk",
    "password",
]

secrets_lists = st.lists(st.text(min_size=SHORTEST_SECRET, max_size=30), max_size=4)


@given(st.data(), secrets_lists, st.text(max_size=60))
@example(None, ["*redac", "******"], "***redac***")
def test_no_configured_secret_survives(data: st.DataObject | None, secrets: list[str], text: str) -> None:
    if data is not None and secrets:
        pieces = data.draw(st.lists(st.one_of(st.sampled_from(secrets), st.text(max_size=5)), max_size=8))
        text = "".join(pieces) + text
    shown = redact(text, secrets)
    assert not [secret for secret in secrets if secret in shown]


def test_a_secret_that_appears_only_once_another_is_gone_is_found_too() -> None:
    assert redact("abSECRETSc", ["SECRETS", "ab***c"]) == MASK


@given(
    st.lists(
        st.one_of(st.text(max_size=8), st.sampled_from(["key=", "&token=", "Bearer ", "://", ":", "@", "*", TELEGRAM]))
    ),
    secrets_lists,
)
def test_redacting_twice_changes_nothing_more(pieces: list[str], secrets: list[str]) -> None:
    once = redact("".join(pieces), secrets)
    assert redact(once, secrets) == once


@given(st.lists(st.sampled_from(WORDS)), st.sampled_from([" ", ", ", ". ", "\n", " - "]))
def test_ordinary_prose_is_unchanged(words: list[str], joint: str) -> None:
    text = joint.join(words)
    assert redact(text, ["hunter2-hunter2"]) == text


@pytest.mark.parametrize(
    "text",
    [
        "session=slack:C01ABCDEF:1700000000.123456 turn=42 token=5",
        "see https://example.com:8080/a/b?page=2#key",
        "telegram:-1001234567890:77",
        "it is 12:30 and the ratio is 3:1",
        "sorted(rows, key=len)",
        "a basic responsibilities-and-expectations document",
        "mail me at someone@example.com",
    ],
)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert redact(text, []) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"POST https://api.telegram.org/bot{TELEGRAM}/getUpdates", "POST https://api.telegram.org/bot***/getUpdates"),
        ("http://127.0.0.1:81/bot111:AAA/getUpdates 404", "http://127.0.0.1:81/bot***/getUpdates 404"),
        ("/file/bot111%3AAAA/photos/1.jpg", "/file/bot***/photos/1.jpg"),
        (f"token {TELEGRAM}.", "token ***."),
        ("xoxb-1234567890-abcdef", "***"),
        ("app xapp-1-A0123-456-deadbeef!", "app ***!"),
        ("xoxe.xoxp-1-Mi0yLTEyMzQ", "xoxe.***"),
        ("https://hooks.slack.com/services/T0/B0/abcDEF", "https://hooks.slack.com/services/***"),
        ("key sk-ant-api03-abcdefgh_ijk", "key ***"),
        ("bad key 'sk-test'", "bad key '***'"),
        ("Authorization: Bearer abc", "Authorization: Bearer ***"),
        ("('authorization', 'Bearer abc123')", "('authorization', 'Bearer ***')"),
        ("{'Authorization': 'Basic dXNlcjpwYXNzd29yZA=='}", "{'Authorization': 'Basic ***'}"),
        ("sent Bearer eyx0123456789abc", "sent Bearer ***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig-nature", "***"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("aws_secret_access_key=wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key=***"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
        ("github_pat_11ABCDEFG0abcdefghijklmnop", "***"),
        ("GET /v1?key=abc&x=1", "GET /v1?key=***&x=1"),
        ("GET /v1?x=1&access_token=abc", "GET /v1?x=1&access_token=***"),
        ("wss://wss-primary.slack.com/link/?ticket=a&token=b", "wss://wss-primary.slack.com/link/?ticket=a&token=***"),
        ('{"bot_token": "0123456789"}', '{"bot_token": "***"}'),
        ("postgresql://me:hunter2@db.example/chat", "postgresql://me:***@db.example/chat"),
        ("postgres://me:p@ss@db/chat", "postgres://me:***@db/chat"),
        ("host=db password=hunter2hunter2 dbname=x", "host=db password=*** dbname=x"),
    ],
)
def test_what_has_the_shape_of_a_credential_is_taken_out(text: str, shown: str) -> None:
    assert redact(text, []) == shown


@pytest.mark.parametrize(
    "form",
    [
        "pass word/ü\"x\\",
        quote("pass word/ü\"x\\", safe=""),
        "pass+word%2F%C3%BC%22x%5C",
        'pass word/\\u00fc\\"x\\\\',
        repr("pass word/ü\"x\\"),
        base64.b64encode("pass word/ü\"x\\".encode()).decode(),
    ],
)  # fmt: skip
def test_a_secret_is_found_in_every_spelling(form: str) -> None:
    shown = redact(f"<{form}>", ['pass word/ü"x\\'])
    assert form.strip("'=") not in shown
    assert MASK in shown


def test_the_longer_of_two_secrets_leaves_no_tail() -> None:
    assert redact("secret-one-two", ["secret-one", "secret-one-two"]) == MASK


def test_a_secret_too_short_to_tell_from_a_word_is_left() -> None:
    assert redact("port 8420", ["8420"]) == "port 8420"


@pytest.mark.parametrize(
    "unit", ["1", "a", "eyJ", "a:", "://a:", "sk-", "key=", "Bearer ", "token: ", "?a_", "x-", "/bot1:"]
)
def test_a_hostile_text_is_redacted_to_its_end(unit: str) -> None:
    # A pattern that looks back over what it saw would not come to the end of this before the test is given up.
    text = unit * (1_000_000 // len(unit))
    assert redact(f"{text} some-secret", ["some-secret"]).endswith(MASK)
