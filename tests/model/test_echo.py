"""The model without a key shows what it was given."""

from __future__ import annotations

from gateway.domain.message import Message, Role
from gateway.model.echo import Echo
from gateway.model.options import ModelOptions
from gateway.ports.model import Finish, FinishReason, ModelRequest, TextDelta, UsageReported
from tests.model.rigs import heard, user

ECHO = Echo(ModelOptions(), count=lambda text: len(text.split()))


async def test_it_counts_what_it_was_given_and_repeats_the_first_and_the_last() -> None:
    rows = [user("Good morning\nand more"), Message(role=Role.ASSISTANT, content="Hi"), user("What is new?\nTell me.")]
    request = ModelRequest(model="echo", messages=rows, system="Be kind.")
    events = await heard(ECHO, request)
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "echo: 3 messages, 24 tokens\n",
        "first: Good morning\n",
        "last: What is new?\n",
        "Tell me.",
    ]
    assert events[-1] == Finish(FinishReason.STOP)
    (spent,) = [event.usage for event in events if isinstance(event, UsageReported)]
    assert (spent.input_tokens, spent.output_tokens) == (24, 14)


async def test_it_answers_even_to_nothing() -> None:
    assert await ECHO.complete(ModelRequest(model="echo", messages=[])) == "echo: 0 messages, 0 tokens"
    picture = Message(role=Role.USER, content=[{"type": "image"}])
    assert "1 message," in await ECHO.complete(ModelRequest(model="echo", messages=[picture]))


async def test_a_long_message_is_cut() -> None:
    said = await ECHO.complete(ModelRequest(model="echo", messages=[user("x" * 5_000)]))
    assert len(said) < 500
    assert said.endswith("…")
