"""The contract of `gateway.ports.model`, held by every model there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from gateway.domain.errors import (
    AuthFailed,
    ContextOverflow,
    Filtered,
    Refused,
    ThinkingRefused,
    TrunklineError,
    Unavailable,
)
from gateway.domain.message import Message, Role
from gateway.domain.turn import Usage
from gateway.model.options import ModelOptions
from gateway.model.router import Models
from gateway.ports.model import (
    FinishReason,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
    Thinking,
    ToolCallRequested,
    UsageReported,
)
from tests.loopback.models import Answer, Call, Fault, ModelServer
from tests.model.rigs import (
    ADD,
    SECRET,
    ModelRig,
    ProviderRig,
    ScriptedRig,
    answer_row,
    finish_of,
    heard,
    result,
    text_of,
    user,
)
from tests.stores import count_words

OPENAI, LOCAL, ANTHROPIC = "openai:gpt-5", "local:tiny", "anthropic:claude-sonnet-5-5"
PROVIDERS = [OPENAI, LOCAL, ANTHROPIC]
MEANT = {
    Fault.OVERFLOW: ContextOverflow,
    Fault.OVERLOADED: Unavailable,
    Fault.RATE_LIMITED: Unavailable,
    Fault.UNAUTHORIZED: AuthFailed,
    Fault.FILTER_REFUSED: Filtered,
    Fault.REFUSED: Refused,
}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture(params=[*PROVIDERS, "scripted"])
async def rig(request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path) -> AsyncIterator[ModelRig]:
    made = ScriptedRig(tmp_path) if request.param == "scripted" else ProviderRig(server, request.param)
    yield made
    await made.model.close()


@pytest.fixture(params=PROVIDERS)
async def provider(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[ProviderRig]:
    made = ProviderRig(server, request.param)
    yield made
    await made.model.close()


@pytest.fixture(params=[*PROVIDERS, "scripted", "echo"])
async def any_model(
    request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path
) -> AsyncIterator[tuple[Model, str]]:
    if request.param == "echo":
        yield Models(ModelOptions(), {}, count=count_words), "echo"
        return
    made = ScriptedRig(tmp_path) if request.param == "scripted" else ProviderRig(server, request.param)
    yield made.model, made.id
    await made.model.close()


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    before = set(_tasks())
    yield
    # What the library's generators leave to the loop is done within a few turns of it.
    for _ in range(20):
        await asyncio.sleep(0)
    assert [task for task in _tasks() if task not in before] == []


def _tasks() -> Iterator[asyncio.Task[object]]:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    # The loopback server keeps a task for each connection that its client may use again.
    return (task for task in others if "RequestHandler" not in repr(task.get_coro()))


async def test_an_answer_is_text_then_one_usage_then_the_finish(any_model: tuple[Model, str]) -> None:
    model, id = any_model
    rig_request = _request(id)
    events = await heard(model, rig_request)
    assert text_of(events)
    assert sum(isinstance(event, TextDelta) for event in events) > 1
    assert [type(event) for event in events if isinstance(event, UsageReported)] == [UsageReported]
    assert isinstance(events[-2], UsageReported)
    assert finish_of(events).reason is FinishReason.STOP


async def test_the_usage_names_who_answered(any_model: tuple[Model, str]) -> None:
    model, id = any_model
    info = model.info(id)
    (spent,) = [event.usage for event in await heard(model, _request(id)) if isinstance(event, UsageReported)]
    assert (spent.provider, spent.model) == (info.provider, info.name)


async def test_complete_is_the_text_of_the_answer(any_model: tuple[Model, str]) -> None:
    model, id = any_model
    said = await model.complete(_request(id))
    assert said == text_of(await heard(model, _request(id)))


def test_what_is_known_of_a_model_leaves_room_for_a_history(any_model: tuple[Model, str]) -> None:
    model, id = any_model
    info = model.info(id)
    assert 0 < info.max_output < info.window


async def test_a_model_can_be_closed_unused_and_twice(any_model: tuple[Model, str]) -> None:
    model, _ = any_model
    await model.close()
    await model.close()


async def test_a_tool_call_goes_out_and_its_result_comes_back(rig: ModelRig) -> None:
    rig.does(
        Answer(text="Let me add.", calls=[Call(name="add", arguments={"a": 1}), Call(name="add", id="second")]),
        Answer(text="It is done."),
    )
    asked = user("Add.")
    events = await heard(rig.model, rig.request(asked, tools=[ADD]))
    calls = [event for event in events if isinstance(event, ToolCallRequested)]
    assert [(call.name, call.arguments.replace(" ", "")) for call in calls] == [("add", '{"a":1}'), ("add", "{}")]
    assert finish_of(events).reason is FinishReason.TOOLS
    results = [result(call, f"result {number}") for number, call in enumerate(calls)]
    again = await heard(rig.model, rig.request(asked, await answer_row(events), *results, tools=[ADD]))
    assert text_of(again) == "It is done."
    if isinstance(rig, ProviderRig):
        assert rig.server.asked[-1].results == ["result 0", "result 1"]
        assert rig.server.asked[-1].tools == ["add"]


async def test_thinking_comes_finished_and_goes_back_to_the_one_who_thought_it(rig: ModelRig) -> None:
    rig.does(
        Answer(thinking="one and one", text="Let me add.", calls=[Call(name="add")]),
        Answer(text="Two."),
        Answer(text="!"),
    )
    asked = user("Add.")
    events = await heard(rig.model, rig.request(asked, tools=[ADD]))
    (thought,) = [event for event in events if isinstance(event, Thinking)]
    assert (thought.text, thought.provider) == ("one and one", rig.provider)
    assert events.index(thought) == 0
    (call,) = [event for event in events if isinstance(event, ToolCallRequested)]
    row = await answer_row(events)
    again = await heard(rig.model, rig.request(asked, row, result(call, "2"), tools=[ADD]))
    assert text_of(again) == "Two."
    if isinstance(rig, ProviderRig):
        assert "one and one" in str(rig.server.requests[-1]["messages"])
        assert rig.server.refusals == []


@pytest.mark.parametrize("fault", MEANT)
async def test_a_failure_is_told_by_its_kind_with_the_cause_kept(rig: ModelRig, fault: Fault) -> None:
    rig.does(fault)
    with pytest.raises(MEANT[fault]) as caught:
        await heard(rig.model, rig.request())
    assert SECRET not in f"{caught.value!r}{caught.value}"
    assert "127.0.0.1" not in str(caught.value)
    if isinstance(rig, ProviderRig):
        assert caught.value.__cause__ is not None


async def test_a_rate_limit_says_how_long_to_wait(rig: ModelRig) -> None:
    rig.does(Fault.RATE_LIMITED)
    with pytest.raises(Unavailable) as caught:
        await heard(rig.model, rig.request())
    assert caught.value.retry_after == 7


async def test_an_answer_of_nothing_has_no_text(rig: ModelRig) -> None:
    rig.does(Answer(text=None), Answer(text=""))
    for _ in range(2):
        events = await heard(rig.model, rig.request())
        assert [type(event).__name__ for event in events] == ["UsageReported", "Finish"]


@pytest.mark.parametrize("fault", [*MEANT, Fault.DROPPED, Fault.ERROR_IN_STREAM, Fault.GARBLED])
async def test_no_word_of_a_failure_is_ever_text(rig: ModelRig, fault: Fault) -> None:
    rig.does(fault)
    events: list[ModelEvent] = []
    with pytest.raises(TrunklineError):
        await heard(rig.model, rig.request(), events)
    assert text_of(events) in ("", "first ")
    assert not any(isinstance(event, UsageReported) for event in events)


async def test_an_answer_that_ran_out_of_room_says_so(rig: ModelRig) -> None:
    rig.does(Answer(text="first words", finish="length"))
    events = await heard(rig.model, rig.request())
    assert (text_of(events), finish_of(events).reason) == ("first words", FinishReason.LENGTH)


async def test_an_answer_that_a_filter_stopped_is_an_error_after_what_was_said_and_what_it_cost(rig: ModelRig) -> None:
    stopped = Answer(text="first words", calls=[Call(name="add")], finish="filter", input_tokens=9, output_tokens=2)
    rig.does(stopped, stopped)
    events: list[ModelEvent] = []
    with pytest.raises(Filtered):
        await heard(rig.model, rig.request(tools=[ADD]), events)
    assert text_of(events) == "first words"
    assert isinstance(spent := events[-1], UsageReported)
    assert (spent.usage.input_tokens, spent.usage.output_tokens) == (9, 2)
    with pytest.raises(Filtered):
        await rig.model.complete(rig.request(tools=[ADD]))


async def test_a_refusal_of_the_model_is_the_same_error_and_its_words_are_no_answer(provider: ProviderRig) -> None:
    provider.does(Answer(text=None, finish="refusal"), Answer(text=None, finish="refusal"))
    events: list[ModelEvent] = []
    with pytest.raises(Filtered):
        await heard(provider.model, provider.request(), events)
    assert [type(event) for event in events] == [UsageReported]
    with pytest.raises(Filtered):
        await provider.model.complete(provider.request())


async def test_a_reason_for_finishing_that_nobody_knows_ends_an_answer_all_the_same(provider: ProviderRig) -> None:
    provider.does(Answer(text="first words", finish="pause_turn" if provider.id == ANTHROPIC else "eos"))
    events = await heard(provider.model, provider.request())
    assert (text_of(events), finish_of(events).reason) == ("first words", FinishReason.STOP)


async def test_broken_arguments_are_handed_on_as_they_were_written(rig: ModelRig) -> None:
    rig.does(Answer(calls=[Call(name="add", arguments='{"a": 1,')]))
    events = await heard(rig.model, rig.request(tools=[ADD]))
    assert [event.arguments for event in events if isinstance(event, ToolCallRequested)] == ['{"a": 1,']


async def test_the_tokens_are_the_providers(rig: ModelRig) -> None:
    rig.does(Answer(text="Hi", input_tokens=100, cached_tokens=60, output_tokens=9))
    (spent,) = [event.usage for event in await heard(rig.model, rig.request()) if isinstance(event, UsageReported)]
    name = rig.model.info(rig.id).name
    assert spent == Usage(provider=rig.provider, model=name, input_tokens=100, cached_tokens=60, output_tokens=9)


async def test_the_system_prompt_the_tools_and_the_limit_reach_the_provider(provider: ProviderRig) -> None:
    await heard(provider.model, provider.request(system="Be kind.", tools=[ADD], max_output=321))
    (asked,) = provider.server.asked
    assert (asked.system, asked.tools, asked.last_user) == ("Be kind.", ["add"], "Hello")
    limits = {name: body for name, body in asked.body.items() if name in ("max_tokens", "max_completion_tokens")}
    assert limits == {"max_completion_tokens" if provider.id == OPENAI else "max_tokens": 321}


async def test_a_cut_off_call_is_not_handed_on(provider: ProviderRig) -> None:
    whole, broken = Call(name="add", arguments={"a": 1}), Call(name="add", id="c2", arguments='{"a": 1')
    provider.does(Answer(calls=[whole, broken], finish="length"))
    events = await heard(provider.model, provider.request(tools=[ADD]))
    assert len([event for event in events if isinstance(event, ToolCallRequested)]) == 1
    assert finish_of(events).reason is FinishReason.LENGTH


async def test_thinking_that_is_refused_is_told_apart(provider: ProviderRig) -> None:
    thought = Message(
        role=Role.ASSISTANT,
        content="Two.",
        reasoning_content="one and one",
        thinking_blocks=({"type": "thinking", "thinking": "one and one", "signature": "forged"},),
        provider=provider.provider,
    )
    if provider.id != ANTHROPIC:
        provider.does(Fault.THINKING_REFUSED)
    with pytest.raises(ThinkingRefused):
        await heard(provider.model, provider.request(user("Add."), thought, user("Sure?")))
    provider.does(Fault.THINKING_REFUSED)
    with pytest.raises(Refused):
        await heard(provider.model, provider.request())


async def test_an_account_without_credit_is_a_matter_for_the_owner(provider: ProviderRig) -> None:
    provider.does(Fault.QUOTA)
    with pytest.raises(AuthFailed, match="no credit left"):
        await heard(provider.model, provider.request())


async def test_a_model_that_does_not_exist_is_refused(provider: ProviderRig) -> None:
    provider.does(Fault.NO_MODEL)
    with pytest.raises(Refused, match="there is no"):
        await heard(provider.model, provider.request())


@pytest.mark.parametrize("fault", [Fault.DROPPED, Fault.CUT_OFF, Fault.ERROR_IN_STREAM, Fault.GARBLED])
async def test_nothing_is_tried_again_after_the_first_word(server: ModelServer, fault: Fault) -> None:
    for id in (OPENAI, ANTHROPIC):
        rig = ProviderRig(server, id, retries=2)
        before = len(server.requests)
        server.fail_next(fault)
        events: list[ModelEvent] = []
        with pytest.raises(Unavailable):
            await heard(rig.model, rig.request(), events)
        assert text_of(events) == "first "
        assert len(server.requests) - before == 1
        await rig.model.close()


@pytest.mark.parametrize("id", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.HUNG_UP])
async def test_what_fails_before_the_first_word_is_tried_as_often_as_set(
    server: ModelServer, id: str, fault: Fault
) -> None:
    rig = ProviderRig(server, id, retries=1)
    server.fail_next(fault, times=2)
    with pytest.raises(Unavailable):
        await heard(rig.model, rig.request())
    assert len(server.requests) == 2
    server.fail_next(fault)
    assert text_of(await heard(rig.model, rig.request())) == "first words and more"
    assert len(server.requests) == 4
    await rig.model.close()


@pytest.mark.parametrize("id", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.STALLED, Fault.WAITING, Fault.PINGING])
async def test_silence_is_bounded_and_the_connection_given_up(server: ModelServer, id: str, fault: Fault) -> None:
    patient = ProviderRig(server, id)
    await heard(patient.model, patient.request())
    rig = ProviderRig(server, id, timeout_seconds=0.5)
    server.fail_next(fault)
    with pytest.raises(Unavailable):
        await heard(rig.model, rig.request())
    await server.idle()
    assert (len(server.requests), server.hung_up) == (2, 1)
    await rig.model.close()
    await patient.model.close()


@pytest.mark.parametrize("after", [0, 1])
async def test_a_cancelled_answer_leaves_no_connection_and_no_task(provider: ProviderRig, after: int) -> None:
    provider.server.hold(after=after)
    said = asyncio.Event()

    async def listen() -> None:
        async for event in provider.model.stream(provider.request()):
            if isinstance(event, TextDelta):
                said.set()

    listening = asyncio.create_task(listen())
    await (said.wait() if after else provider.server.arrived(1))
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    await provider.server.idle()
    assert provider.server.hung_up == 1


async def test_an_answer_that_nobody_wants_to_the_end_leaves_no_connection(provider: ProviderRig) -> None:
    provider.server.hold(after=1)
    events = provider.model.stream(provider.request())
    assert hasattr(events, "aclose")
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break
    await provider.server.idle()
    assert provider.server.hung_up == 1


async def test_half_characters_neither_stop_a_request_nor_come_out_of_an_answer(provider: ProviderRig) -> None:
    cut = user("cut \ud83d")
    thought = Message(role=Role.ASSISTANT, content="\ude00", reasoning_content="\ud800", provider=provider.provider)
    provider.does(Answer(text="\ud83d \ud83d\ude00 end\ud83d", thinking="hm \ud83d"))
    request = provider.request(cut, thought, cut, system="\udfff")
    events = await heard(provider.model, request)
    assert text_of(events) == "\ufffd \N{GRINNING FACE} end\ufffd"
    assert provider.server.asked[-1].last_user == "cut \ufffd"


async def test_many_answers_at_once_are_kept_apart(provider: ProviderRig) -> None:
    provider.server.answer = lambda asked: f"answer to: {asked.last_user}"
    provider.server.hold()
    asking = [asyncio.create_task(provider.model.complete(provider.request(user(f"q{n}")))) for n in range(8)]
    await provider.server.arrived(8)
    provider.server.release()
    assert await asyncio.gather(*asking) == [f"answer to: q{n}" for n in range(8)]


def _request(id: str) -> ModelRequest:
    return ModelRequest(model=id, messages=[user("Hello"), user("there")] if id == "echo" else [user("Hello")])
