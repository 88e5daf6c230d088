"""A model that does what its messages say: `use:note` in one of them asks for that tool."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from tests.loopback.models_answers import Answer, Asked, Call, spoken

ANSWER = "answer to: "
_USE = re.compile(r"use:(\w+)")
_numbers = itertools.count(1)


def scripted(asked: Asked) -> Answer:
    """Ask for the next tool that was named since the last answer and not asked for yet; then answer all of it."""
    said, rounds = _since_the_last_answer(asked.messages)
    wanted = [name for text in said for name in _USE.findall(text)]
    if rounds < len(wanted):
        # An id of its own for each call, so that the runs of each are counted.
        return Answer(text=None, calls=[Call(name=wanted[rounds], id=f"call_{next(_numbers)}")])
    return Answer(text=f"{ANSWER}{'; '.join(said)}")


def answered(shown: Sequence[str]) -> list[str]:
    """Return the messages that answers answer, in order."""
    return [text for answer in shown for text in answer.removeprefix(ANSWER).split("; ")]


def results(asked: Asked) -> list[str]:
    """Return all results of tools in a request."""
    return [message["content"] for message in asked.messages if message["role"] == "tool"]


def said(asked: Asked) -> list[str]:
    """Return all that people said in a request, one text for each message of theirs."""
    return [text for message in asked.messages if message["role"] == "user" for text in _texts(message)]


def _since_the_last_answer(messages: Sequence[dict[str, Any]]) -> tuple[list[str], int]:
    texts: list[str] = []
    rounds = 0
    for message in messages:
        if message["role"] == "user":
            texts += _texts(message)
        elif message["role"] == "assistant" and message.get("tool_calls"):
            rounds += 1
        elif message["role"] == "assistant":
            texts, rounds = [], 0
    return texts, rounds


def _texts(message: dict[str, Any]) -> list[str]:
    """Return what was said in one message of the request, which may hold several that came one after the other."""
    return [text.strip() for text in spoken(message["content"]).split("\n\n") if text.strip()]
