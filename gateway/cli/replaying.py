"""`trunkline replay`: what the model is sent of a session, what is left out, and why."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import tables
from gateway.cli.columns import cell, table
from gateway.cli.options import Config, Data, ModelId
from gateway.cli.printing import plain, print_lines, terminal_columns
from gateway.cli.sessions.access import Ref, with_settings
from gateway.domain.text import whole

if TYPE_CHECKING:
    from gateway.app.replaying import Explained
    from gateway.config.settings import Settings
    from gateway.domain.legality import LeftOut
    from gateway.domain.message import Message


FIRST_WORDS = 200
"""Characters of each message that are shown; `--json` has them whole."""


def replay(
    ref: Ref,
    budget: Annotated[
        int | None, typer.Option(help="How many tokens of history; else what the model has room for.")
    ] = None,
    model: ModelId = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show what the model would be sent of a session at its next turn, and what not, and why. Nothing is sent."""
    from gateway.app.replaying import explain

    async def work(settings: Settings) -> Explained:
        return await explain(settings, whole(ref), model=model, budget=budget, environment=os.environ)

    found = with_settings(config, data, work)
    print_lines([json.dumps(_data(found), indent=2)] if as_json else _lines(found))


def _data(found: Explained) -> dict[str, Any]:
    plan = found.plan
    return {
        "id": found.session.id,
        "key": str(found.session.key),
        "model": plan.profile.model,
        "window": plan.info.window,
        "kept_for_answer": plan.info.max_output,
        "fixed_tokens": plan.fixed_tokens,
        "factor": round(plan.factor, 3),
        "budget": plan.terms.budget,
        "tokens": found.replay.tokens,
        "begin": found.replay.begin,
        "latest_usage": found.latest and plain(found.latest),
        "messages": [_message(message) for message in found.replay.messages],
        "left_out": [{"seq": left.seq, "reason": left.reason} for left in found.replay.left_out],
    }


def _message(message: Message) -> dict[str, Any]:
    row = tables.row_data(message)
    names = ("seq", "role", "kind", "tokens", "tool_calls", "tool_call_id", "media")
    return {**{name: row[name] for name in names}, "text": message.text}


def _lines(found: Explained) -> Iterator[str]:
    plan, replay = found.plan, found.replay
    yield f"{cell(tables.name(found.session))} ({found.session.key}, {found.session.id})"
    kept = f"{plan.info.max_output:,} kept for the answer, {plan.fixed_tokens:,} for instructions and tools"
    yield f"model   {plan.profile.model}: a window of {plan.info.window:,} tokens, {kept}"
    yield f"budget  {plan.terms.budget:,} tokens of history; it counts {plan.factor:.2f} for each of ours"
    left = f", rows left out: {len(replay.left_out)}" if replay.left_out else ""
    yield f"sent    {replay.tokens:,} tokens in {len(replay.messages)} messages{left}"
    if (latest := found.latest) is not None:
        share = f"{latest.cached_tokens:,} of {latest.input_tokens:,} tokens came from the provider's cache"
        yield f"cached  {share}, at the latest call"
    yield ""
    yield from _table(replay.messages)
    if replay.left_out:
        yield ""
        yield "Left out:"
        yield from (f"  {line}" for line in _reasons(replay.left_out))


def _table(messages: Sequence[Message]) -> Sequence[str]:
    rows = [
        (str(one.seq or ""), one.role.value, one.kind.value, f"{one.tokens or 0:,}", _first_words(one))
        for one in messages
    ]
    numbers = ("ROW", "TOKENS")
    names = ("ROW", "ROLE", "KIND", "TOKENS", "TEXT")
    return table(names, rows, columns=terminal_columns(), numbers=numbers, spare=("KIND", "ROW"))


def _first_words(message: Message) -> str:
    calls = " ".join(f"→ {call.name} {call.arguments}" for call in message.tool_calls)
    return " ".join(f"{message.text} {calls}".split())[:FIRST_WORDS]


def _reasons(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Tell runs of rows that are left out for one reason in one line."""
    ordered = sorted(left_out, key=lambda left: left.seq)
    numbered = enumerate(ordered)
    for _, run in groupby(numbered, key=lambda one: (one[1].reason, one[1].seq - one[0])):
        rows = [left for _, left in run]
        places = f"row {rows[0].seq}" if len(rows) == 1 else f"rows {rows[0].seq}-{rows[-1].seq}"
        yield f"{places}: {rows[0].reason}"
