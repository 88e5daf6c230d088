"""The text of a Slack message as a person reads it: Slack's `<…>` and `&…;` forms undone."""

from __future__ import annotations

import re

_ESCAPED = re.compile(r"&(lt|gt|amp);")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}
_FORM = re.compile(r"<([^<>]+)>")
_SCHEME = re.compile(r"^(?:https?://|mailto:|tel:)")


def readable(text: str, bot_user_id: str) -> str:
    """Return the text without the bot's own mention and with every form of Slack's spelled out."""
    return unescape(_FORM.sub(_spell, without_mention(text, bot_user_id))).strip()


def mentions(text: str, user_id: str) -> bool:
    """Tell whether the raw text mentions this user."""
    return bool(user_id) and re.search(rf"<@{re.escape(user_id)}(?:\|[^<>]*)?>", text) is not None


def without_mention(text: str, user_id: str) -> str:
    """Return the raw text without mentions of this user, and without the comma or colon after a leading one."""
    if not user_id:
        return text
    mention = rf"<@{re.escape(user_id)}(?:\|[^<>]*)?>"
    text = re.sub(rf"^\s*(?:{mention}\s*)+[:,]?\s*", "", text)
    return re.sub(rf"[ \t]?{mention}", "", text)


def unescape(text: str) -> str:
    """Undo the three escapes of Slack, once."""
    return _ESCAPED.sub(lambda match: _CHARACTERS[match[1]], text)


def _spell(match: re.Match[str]) -> str:
    target, _, label = match[1].partition("|")
    if target.startswith("@"):
        return f"@{label.removeprefix('@') or target[1:]}"
    if target.startswith("#"):
        return f"#{label.removeprefix('#') or target[1:]}"
    if target.startswith("!"):
        return _special(target[1:], label)
    return _link(target, label)


def _special(command: str, label: str) -> str:
    """Spell `<!channel>`, `<!subteam^S1|@ops>` and `<!date^…|yesterday>`."""
    name, *arguments = command.split("^")
    if name == "date":
        return label or (arguments[0] if arguments else "date")
    if label:
        return label if label.startswith("@") else f"@{label}"
    return f"@{arguments[0] if arguments else name}"


def _link(url: str, label: str) -> str:
    """Spell a link; a label that is the address itself, as when Slack made the link, is what the person typed."""
    if not label or label == url:
        return url
    bare = _SCHEME.sub("", url)
    return label if label.rstrip("/") == bare.rstrip("/") else f"{label} ({url})"
