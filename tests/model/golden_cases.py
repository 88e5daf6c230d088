"""The golden files of the mapping: histories as rows, and what each style must make of them.

`python -m tests.model.golden_cases` writes the expected half anew; the difference is then read before it is committed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from gateway.domain.message import Message, Role, ToolCall
from gateway.model.mapping import Target, to_history, to_rows
from gateway.model.options import ModelOptions
from gateway.model.router import Models
from gateway.ports.model import ModelRequest, Style
from tests.loopback.models import ModelServer

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


async def on_the_wire(golden: Mapping[str, Any], style: Style) -> tuple[dict[str, Any], list[str]]:
    """Return what reaches the provider, and what the loopback server found illegal about it."""
    async with ModelServer() as server:
        urls = {"openai": server.openai_url, "anthropic": server.anthropic_url}
        providers = {name: {"api_key": "k", "base_url": url} for name, url in urls.items()}
        models = Models(ModelOptions.model_validate({"retries": 0, "providers": providers}), {}, count=len)
        request = ModelRequest(model=MODELS[style], messages=rows_of(golden), system=golden.get("system", ""))
        async for _ in models.stream(request):
            pass
        await models.close()
        body = server.requests[0]
        return {key: body[key] for key in ("system", "messages") if key in body}, server.refusals


async def expected(golden: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a golden file should say about its rows."""
    found: dict[str, Any] = {}
    for style in Style:
        history = history_of(golden, style)
        wire, refusals = await on_the_wire(golden, style)
        assert refusals == []
        back = [row_to(row) for row in to_rows(history, style.value)]
        found[style.value] = {"history": dumped(history), "wire": wire, "back": back}
    return found


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
