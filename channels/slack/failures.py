"""What Slack's refusals and the wire's faults mean for a call: one table, read in one place."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError

from gateway.domain.errors import AuthFailed, DeliveryError, Gone, NotDone, Unavailable, Unknown, Unreachable

DEFAULT_WAIT_SECONDS = 30.0
"""How long to wait when Slack limits us without saying for how long; what its own libraries use."""


class Meaning(StrEnum):
    """What an error code says about the call it answers."""

    AUTH = "auth"
    FATAL = "fatal"
    FORMATTING = "formatting"
    GONE = "gone"
    LIMITED = "limited"
    UNSURE = "unsure"


_CODES: Mapping[Meaning, str] = {
    Meaning.AUTH: """
        invalid_auth not_authed account_inactive token_revoked token_expired missing_scope not_allowed_token_type
        no_permission access_denied org_login_required ekm_access_denied two_factor_setup_required
        enterprise_is_restricted team_access_not_granted app_not_installed""",
    Meaning.FATAL: """
        channel_not_found is_archived not_in_channel not_in_group user_not_in_channel user_not_found user_disabled
        cannot_dm_bot messages_tab_disabled restricted_action restricted_action_read_only_channel
        restricted_action_thread_only_channel restricted_action_non_threadable_channel restricted_action_thread_locked
        cannot_reply_to_message thread_not_found invalid_thread_ts posting_to_general_channel_denied
        cant_update_message cant_delete_message edit_window_closed is_inactive message_limit_exceeded
        method_not_supported_for_channel_type invalid_arguments invalid_arg_name invalid_metadata_format
        invalid_metadata_schema metadata_too_large unknown_method invalid_cursor""",
    Meaning.FORMATTING: """
        invalid_blocks invalid_blocks_format msg_too_long msg_blocks_too_long markdown_text_conflict no_text
        invalid_attachments too_many_attachments invalid_markdown_text""",
    Meaning.GONE: "message_not_found",
    Meaning.LIMITED: "ratelimited rate_limited",
    # Slack says of these that a part of the call may have happened.
    Meaning.UNSURE: "internal_error fatal_error request_timeout",
}
MEANINGS: Mapping[str, Meaning] = {code: meaning for meaning, codes in _CODES.items() for code in codes.split()}

# Raised while connecting, before a byte of the call is sent: no name, no route, no certificate, no answer.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
# slack_sdk stumbles over a body that is no JSON object with the last two.
WIRE_ERRORS = (SlackApiError, aiohttp.ClientError, TimeoutError, UnicodeDecodeError, AttributeError)
"""All that a call through slack_sdk raises for a fault outside."""

_BOT_ADVICE = "check bot_token: the Bot User OAuth Token (xoxb-…) of the installed app"
_APP_ADVICE = (
    "check app_token: an App-Level Token (xapp-…) with the scope connections:write, and that Socket Mode is turned on"
)


def failure(method: str, error: BaseException) -> DeliveryError | AuthFailed:
    """Return what a failed call of `method` means; the text holds the platform's code and nothing of the payload."""
    if isinstance(error, SlackApiError):
        return _answered(method, *_facts(error))
    if isinstance(error, _NOT_SENT):
        return Unreachable("no connection to slack")
    return Unknown(f"the answer of {method} was lost ({type(error).__name__})")


def for_reading(method: str, error: DeliveryError) -> DeliveryError | Unavailable:
    """Return the same failure as the caller of a call that changes nothing sees it: there, unsure means try again."""
    if isinstance(error, NotDone) and not error.fatal:
        return Unavailable(f"Slack did not answer {method}: {error.code}", retry_after=error.retry_after)
    if isinstance(error, Unknown):
        return Unavailable(f"Slack did not answer {method}")
    return error


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """Return what a limited answer's headers ask for, or what is usual."""
    try:
        return max(float(headers.get("Retry-After", "")), 0.0)
    except ValueError:
        return DEFAULT_WAIT_SECONDS


def _answered(method: str, status: int, code: str, retry_after: float, needed: str) -> DeliveryError | AuthFailed:
    meaning = MEANINGS.get(code)
    if status == 429 or meaning is Meaning.LIMITED:
        return NotDone("ratelimited", retry_after=retry_after)
    if status >= 500 or meaning is Meaning.UNSURE or (not code and status < 400):
        return Unknown(f"Slack failed inside {method}: {code or f'HTTP {status}'}")
    if meaning is Meaning.AUTH:
        return AuthFailed(f"Slack refused {method} ({code}): {_advice(method, code, needed)}")
    if meaning is Meaning.GONE:
        return Gone(f"{method}: the message was deleted")
    return NotDone(code or f"http_{status}", fatal=meaning is Meaning.FATAL, formatting=meaning is Meaning.FORMATTING)


def _advice(method: str, code: str, needed: str) -> str:
    if code == "missing_scope":
        return f"add the scope {needed or 'it needs'} to the app and reinstall it"
    return _APP_ADVICE if method == "apps.connections.open" else _BOT_ADVICE


def _facts(error: SlackApiError) -> tuple[int, str, float, str]:
    """Return status, code, seconds to wait and missing scope; slack_sdk puts one of two types into `response`."""
    response: Any = error.response
    status: int = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    data = getattr(response, "data", None)
    body: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    headers = getattr(response, "headers", None) or {}
    return status, _word(body.get("error")), seconds_to_wait(headers), _word(body.get("needed"))


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
