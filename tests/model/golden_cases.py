"""The golden files: histories as rows, what each style must make of them, and the row that an answer becomes.

The answer goes the way it goes in a turn: streamed by the provider's library, gathered, kept as a row, replayed.

`python -m tests.model.golden_cases` writes the expected half anew; the difference is then read before it is committed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from gateway.domain.message import Message, Role, ToolCall
from gateway.model.history import Target, to_history
from gateway.model.options import ModelOptions
from gateway.model.router import Models
from gateway.ports.model import ModelRequest, Style
from gateway.turns.answer import gather
from tests.loopback.models import Answer, Call, ModelServer
from tests.stores import count_words

FOLDER = Path(__file__).with_name("golden")
MODELS = {Style.OPENAI: "openai:gpt-5", Style.ANTHROPIC: "anthropic:claude-sonnet-5-5"}
# What the library stamps on a message, or leaves empty.
UNSTABLE = {"timestamp", "usage", "run_id", "conversation_id", "kind", "state", "outcome"}


def cases() -> list[str]:
    """Return the names of the golden files."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def read(case: str) -> dict[str, Any]:
    """Return a golden file."""
    loaded: dict[str, Any] = json.loads((FOLDER / f"{case}.json").read_text())
    return loaded


def rows_of(golden: Mapping[str, Any]) -> list[Message]:
    """Return the rows of a golden file."""
    return [row_from(row) for row in golden["rows"]]


def row_from(row: Mapping[str, Any]) -> Message:
    """Read a row as it is written in a golden file."""
    calls = tuple(ToolCall(**call) for call in row.get("tool_calls", ()))
    blocks = tuple(row.get("thinking_blocks", ()))
    return Message(**{**row, "role": Role(row["role"]), "tool_calls": calls, "thinking_blocks": blocks})


def row_to(row: Message) -> dict[str, Any]:
    """Write a row as it stands in a golden file: the fields that are not empty."""
    written: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if field.name in ("v", "kind") or value in (None, (), 0, {}, frozenset()):
            continue
        written[field.name] = value
    if row.tool_calls:
        written["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in row.tool_calls
        ]
    plain: dict[str, Any] = json.loads(json.dumps(written, default=dict))
    return plain


def history_of(golden: Mapping[str, Any], style: Style) -> list[ModelMessage]:
    """Return the library's messages for the rows of a golden file."""
    target = Target(provider=style.value, style=style, vision=True)
    return to_history(rows_of(golden), target, system=golden.get("system", ""))


def dumped(history: Sequence[ModelMessage]) -> Any:
    """Return the library's messages as JSON, without what is stamped or empty."""
    return _stable(ModelMessagesTypeAdapter.dump_python(list(history), mode="json"))


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What reached the provider, the row its answer became, what that row added to the next request, and what the
    loopback server found illegal."""

    wire: Mapping[str, Any]
    row: Mapping[str, Any]
    again: Sequence[Any]
    refusals: Sequence[str]


async def exchange(golden: Mapping[str, Any], style: Style) -> Exchange:
    """Ask twice: with the rows of a golden file, and then with its answer and what follows it."""
    async with ModelServer() as server:
        server.answer = lambda _: _answer(golden)
        urls = {"openai": server.openai_url, "anthropic": server.anthropic_url}
        providers = {name: {"api_key": "k", "base_url": url} for name, url in urls.items()}
        models = Models(ModelOptions.model_validate({"retries": 0, "providers": providers}), {}, count=count_words)
        request = ModelRequest(model=MODELS[style], messages=rows_of(golden), system=golden.get("system", ""))
        row = (await gather(models.stream(request))).as_row()
        await gather(models.stream(replace(request, messages=[*request.messages, row, *_after(row)])))
        await models.close()
        first, second = server.requests
        return Exchange(
            wire={key: first[key] for key in ("system", "messages") if key in first},
            row=row_to(row),
            again=second["messages"][len(first["messages"]) :],
            refusals=server.refusals,
        )


async def expected(golden: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a golden file should say about its rows and its answer."""
    found: dict[str, Any] = {}
    for style in Style:
        told = await exchange(golden, style)
        assert told.refusals == []
        history = dumped(history_of(golden, style))
        found[style.value] = {"history": history, "wire": told.wire, "row": told.row, "again": told.again}
    return found


def _answer(golden: Mapping[str, Any]) -> Answer:
    given = golden["answer"]
    return Answer(**{**given, "calls": [Call(**call) for call in given.get("calls", ())]})


def _after(row: Message) -> list[Message]:
    results = [Message(role=Role.TOOL, content="done", tool_call_id=call.id) for call in row.tool_calls]
    return results or [Message(role=Role.USER, content="Go on.")]


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _stable(inner)
            for key, inner in value.items()
            if key not in UNSTABLE and inner is not None and inner not in ({}, [])
        }
    return [_stable(inner) for inner in value] if isinstance(value, list) else value


def main() -> None:
    """Write the expected half of every golden file anew."""
    for case in cases():
        golden = read(case)
        golden["expected"] = asyncio.run(expected(golden))
        text = json.dumps(golden, indent=1, ensure_ascii=False)
        (FOLDER / f"{case}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
