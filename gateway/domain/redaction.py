"""Taking secrets out of a text before anybody sees it: the one redaction of logs, health and messages to people.

Two things are taken out: every secret that is configured, in the spellings a library may print it in, and whatever has
the shape of a credential, so that a token nobody configured (an installation's, a signed address) stays inside too.
Each replacement shortens the text or removes letters of a credential, and they are repeated until nothing changes, so
that two pieces that join into a secret are found, and what was redacted once is never changed again.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST_SECRET = 6
"""A shorter secret is left alone: words of that length are everywhere, and taking them out would hide the log."""

_START = r"(?<![A-Za-z0-9])"
_COLON = r"(?::|%3A)"
_NAMES = r"(?:api[_-]?key|token|secret|password|passwd|signature|access[_-]?key|client[_-]?secret)"
_HEADERS = r"(?:authorization|cookie|x-api-key|api-key|x-slack-signature|x-telegram-bot-api-secret-token)"

# In each pattern the group `keep` comes before the credential and stays.
_SHAPES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Telegram puts the bot's token into the path of every call, and into the address of every file.
        rf"(?P<keep>/bot)\d{{1,20}}{_COLON}[^/\s\"'<>?#]+",
        rf"(?P<keep>)(?<!\d)\d{{1,20}}{_COLON}[A-Z0-9_-]{{30,}}",
        rf"(?P<keep>){_START}(?:xox[a-z]|xapp)-[A-Z0-9-]{{6,}}",
        r"(?P<keep>hooks\.slack\.com/[a-z]+/)[\w/-]+",
        r"(?P<keep>)(?<![\w-])sk-[\w-]{4,}",
        rf"(?P<keep>){_START}gh[pousr]_[A-Z0-9]{{20,}}",
        rf"(?P<keep>){_START}(?:github_pat_|glpat-)[\w-]{{20,}}",
        rf"(?P<keep>){_START}(?:AKIA|ASIA)[A-Z0-9]{{16}}",
        rf"(?P<keep>){_START}AIza[\w-]{{30,}}",
        r"(?P<keep>)(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
        # A digit or `=` tells a credential from prose such as "basic responsibilities".
        r"(?P<keep>\b(?:bearer|basic)\s+)(?=[A-Z._~+/-]*[0-9=])[A-Z0-9._~+/=-]{12,}",
        rf"(?P<keep>\b{_HEADERS}(?:['\"]?\s*[:=]\s*|['\"]\s*,\s*)(?:b?['\"])?(?:(?:bearer|basic|token)\s+)?)[^\s'\",;]+",
        r"(?P<keep>[?&](?:[a-z0-9_-]{0,40}[_-])?(?:key|token|secret|password|signature|sig|code)=)[^\s&#'\"<>]+",
        rf"(?P<keep>{_NAMES}['\"]?\s?[:=]\s?(?:b?['\"])?)[^\s&'\",;<>()\[\]{{}}]{{8,}}",
        # The greedy match takes a password that holds an `@` of its own.
        r"(?P<keep>(?<=://)[^\s/:@]{0,200}:)[^\s/]+(?=@)",
    )
]


def redact(text: str, secrets: Collection[str]) -> str:
    """Return `text` with every configured secret and everything shaped like a credential replaced by `***`."""
    configured = _configured(frozenset(secrets))
    while True:
        before = text
        if configured is not None:
            text = configured.sub(MASK, text)
        for shape in _SHAPES:
            text = shape.sub(_mask, text)
        if text == before:
            return text


def _mask(match: re.Match[str]) -> str:
    keep = match["keep"]
    hidden = match[0][len(keep) :]
    # What is masked already stays as it is, or `key=***` would never come to rest.
    return match[0] if not hidden.strip("*") else keep + MASK


@lru_cache(maxsize=16)
def _configured(secrets: frozenset[str]) -> re.Pattern[str] | None:
    spellings = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _spellings(secret)}
    if not spellings:
        return None
    return re.compile("|".join(re.escape(form) for form in sorted(spellings, key=lambda form: (-len(form), form))))


def _spellings(secret: str) -> set[str]:
    """Return the secret as it is written plainly, in an address, in JSON, in a Python literal, and in base64."""
    raw = secret.encode("utf-8", "surrogatepass")
    encoded = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    return {
        secret,
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
        *(form.rstrip("=") for form in encoded),
    }
