"""Random verbs on a real store, beside a model of plain dictionaries that says what must come of them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from gateway.domain.errors import LeaseLost, NotFound, Refused, StopRequested
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Mark, Message, Role
from gateway.domain.origins import Origin
from gateway.domain.titles import TitleSource
from gateway.domain.turn import RESUME, Stopping, Turn, TurnState, Usage, Waiting, stop_row
from gateway.ports.leases import Lease, session_lease
from gateway.ports.sessions import NewSession, SessionQuery
from tests.clock import ManualClock
from tests.stores import NOON, message, open_engine

EXAMPLES, EXAMPLES_PROVING = 30, 300
STEPS, STEPS_PROVING = 40, 80

T = TypeVar("T")
KEYS = [SessionKey("slack", "D1"), SessionKey("slack", "a:b%"), SessionKey("telegram", "5", "7")]
FORK_KEYS = [SessionKey("api", str(number)) for number in range(6)]
TTL = timedelta(days=4000)
FOREVER = 1 << 40

picks = st.integers(0, 99)
keys = st.sampled_from(KEYS)
words = st.sampled_from(["Alpha", "béta", "gamma", "ωmega"])
texts = st.lists(words, min_size=1, max_size=3).map(" ".join)
answers = st.lists(st.one_of(texts, st.just("")), max_size=3)
seq_lists = st.lists(st.integers(0, 12), max_size=4)


@dataclass
class Line:
    """What the model knows of a row."""

    role: Role
    text: str
    event: str | None = None
    marks: set[Mark] = field(default_factory=set)
    is_said: bool = True
    """Whether somebody's words; that an answer was stopped is nobody's."""

    @property
    def is_asked(self) -> bool:
        """Whether a person said it where everybody may see it."""
        return self.role is Role.USER and self.is_said and not self.marks and bool(self.text)


@dataclass
class Chat:
    """What the model knows of a session."""

    id: str
    key: SessionKey
    updated_at: datetime
    lines: dict[int, Line] = field(default_factory=dict)
    attic: dict[int, Line] = field(default_factory=dict)
    last_seq: int = 0
    title: str = ""
    title_source: TitleSource = TitleSource.NONE
    pinned: bool = False
    archived: bool = False
    is_closed: bool = False
    origin: Origin | None = None
    pending: list[tuple[datetime, int, str, str]] = field(default_factory=list)
    """Time on the platform, arrival, event, text."""
    stopped: set[int] = field(default_factory=set)
    """The arrivals of what was stopped while it waited."""
    is_stopped: bool = False
    """Whether its turn was asked to stop."""
    turn: Turn | None = None
    waits_for: str | None = None
    lease: Lease | None = None

    def add(self, line: Line, now: datetime) -> None:
        self.last_seq += 1
        self.lines[self.last_seq] = line
        self.updated_at = now
        if self.title_source is TitleSource.NONE and line.is_asked:
            self.title, self.title_source = line.text, TitleSource.FIRST_LINE

    def retitle(self) -> None:
        """What is hidden or gone is no title, unless somebody wrote it."""
        if self.title_source > TitleSource.FIRST_LINE:
            return
        asked = (line.text for line in self.lines.values() if line.is_asked)
        self.title = next(asked, "")
        self.title_source = TitleSource.FIRST_LINE if self.title else TitleSource.NONE

    @property
    def preview(self) -> str:
        visible = [line for line in self.lines.values() if not line.marks and line.text and line.is_said]
        for role in (Role.USER, Role.ASSISTANT):
            for line in visible:
                if line.role is role:
                    return line.text
        return ""


class Verbs(RuleBasedStateMachine):
    """Each rule does one verb to the store and to the model, and compares what it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.clock = ManualClock()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.store = self.run(self.stack.enter_async_context(open_engine("sqlite", folder, self.clock)))
        self.chats: list[Chat] = []
        self.deleted: list[str] = []
        self.ended: list[tuple[Turn, Lease]] = []
        self.accepted: dict[tuple[str, int], bool] = {}
        """Whether an event, by channel and number, is done; one whose key was forgotten is not here."""
        self.arrivals = 0
        self.touched: set[str] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.loop.close()

    def chat(self, pick: int) -> Chat:
        chat = self.chats[pick % len(self.chats)]
        self.touched.add(chat.id)
        return chat

    def open_chat(self, key: SessionKey) -> Chat | None:
        return next((chat for chat in self.chats if chat.key == key and not chat.is_closed), None)

    def opened(self, key: SessionKey, id: str) -> Chat:
        """Return the open chat of a key, which the store says has this id."""
        chat = self.open_chat(key)
        if chat is None:
            assert id not in {chat.id for chat in self.chats}
            assert id not in self.deleted
            chat = Chat(id, key, self.clock.now())
            self.chats.append(chat)
        assert chat.id == id
        self.touched.add(id)
        return chat

    has_chats = precondition(lambda self: self.chats)
    has_running = precondition(
        lambda self: any(chat.turn and not chat.waits_for and not chat.is_stopped for chat in self.chats)
    )
    has_stopped = precondition(
        lambda self: any(chat.turn and not chat.waits_for and chat.is_stopped for chat in self.chats)
    )

    def running(self, pick: int, *, stopped: bool = False) -> tuple[Chat, Turn, Lease]:
        running = [chat for chat in self.chats if chat.turn and not chat.waits_for and chat.is_stopped == stopped]
        chat = running[pick % len(running)]
        self.touched.add(chat.id)
        assert chat.turn is not None
        assert chat.lease is not None
        return chat, chat.turn, chat.lease

    @rule(seconds=st.sampled_from([0.5, 60, 8 * 24 * 3600]))
    def time_passes(self, seconds: float) -> None:
        self.run(self.clock.advance(seconds))

    @rule()
    def forget(self) -> None:
        # What is done and old is forgotten; how old is known to the store, so only the count of all is bounded here.
        before = sum(self.accepted.values())
        forgotten = self.run(self.store.turns.forget())
        assert forgotten <= before
        if forgotten == before:
            self.accepted = {event: is_done for event, is_done in self.accepted.items() if not is_done}

    @rule(key=keys)
    def open(self, key: SessionKey) -> None:
        self.opened(key, self.run(self.store.sessions.open(key, NewSession())).id)

    @rule(key=keys, text=texts, n=st.integers(0, 12), minute=st.integers(0, 3))
    def accept(self, key: SessionKey, text: str, n: int, minute: int) -> None:
        event = (key.channel, n)
        route = Route(key.channel, key.chat_id, key.thread)
        at = NOON + timedelta(minutes=minute)
        id = self.run(self.store.turns.accept(message(text, n, route=route, at=at), NewSession()))
        if id is None:
            assert event in self.accepted
            return
        self.arrivals += 1
        self.accepted[event] = False
        self.opened(key, id).pending.append((at, self.arrivals, f"{key.channel}/msg:{n}", text))

    def claimed(self, chat: Chat, *, only_stopped: bool = False) -> list[str]:
        """Move what is pending into the model's rows; return the texts that became rows."""
        known = {line.event for line in (*chat.lines.values(), *chat.attic.values())}
        taken = sorted(one for one in chat.pending if not only_stopped or one[1] in chat.stopped)
        added = []
        for _, arrival, event, text in taken:
            self.done(event)
            chat.stopped.discard(arrival)
            if event not in known:
                chat.add(Line(Role.USER, text, event), self.clock.now())
                added.append(text)
        chat.pending = [one for one in chat.pending if one not in taken]
        return added

    def done(self, event: str) -> None:
        channel, _, key = event.partition("/msg:")
        self.accepted[channel, int(key)] = True

    @has_chats
    @rule(pick=picks)
    def begin(self, pick: int) -> None:
        chat = self.chat(pick)
        if chat.lease is None:
            chat.lease = self.run(self.store.leases.acquire(session_lease(chat.id), "me", TTL))
            assert chat.lease is not None
        turn = self.run(self.store.turns.begin(chat.id, chat.lease))
        if chat.turn is None:
            first = chat.last_seq + 1
            is_stopped = bool(chat.stopped)
            assert (turn is not None) == bool(self.claimed(chat, only_stopped=is_stopped))
            if turn is not None:
                assert (turn.attempt, turn.first_seq, turn.key) == (1, first, chat.key)
                assert (turn.stop_requested_by == "U1") == is_stopped
                chat.turn, chat.is_stopped = turn, is_stopped
        elif chat.waits_for in (None, RESUME) or chat.is_stopped:
            assert turn is not None
            died = chat.waits_for is None
            assert (turn.id, turn.attempt) == (chat.turn.id, chat.turn.attempt + died)
            chat.turn, chat.waits_for = turn, None
        else:
            assert turn is None

    @has_running
    @rule(pick=picks)
    def join(self, pick: int) -> None:
        chat, turn, lease = self.running(pick)
        joined = self.run(self.store.turns.join(turn, lease))
        assert [row.text for row in joined.rows] == self.claimed(chat)

    @has_running
    @rule(pick=picks, said=answers, with_usage=st.booleans())
    def append_round(self, pick: int, said: Sequence[str], with_usage: bool) -> None:
        chat, turn, lease = self.running(pick)
        usage = Usage(provider="p", model="m", input_tokens=1) if with_usage else None
        self.run(self.store.turns.append_round(turn, lease, spoken(said), usage))
        self.say(chat, said)

    @has_running
    @rule(pick=picks, said=answers)
    def finish(self, pick: int, said: Sequence[str]) -> None:
        chat, turn, lease = self.running(pick)
        self.run(self.store.turns.finish(turn, lease, spoken(said), [], None))
        self.say(chat, said)
        self.end(chat, turn, lease)

    @has_running
    @rule(pick=picks, outcome=st.sampled_from([TurnState.FAILED, TurnState.STOPPED, TurnState.SET_ASIDE]))
    def fail(self, pick: int, outcome: TurnState) -> None:
        chat, turn, lease = self.running(pick)
        self.fail_it(chat, turn, lease, outcome)

    def fail_it(self, chat: Chat, turn: Turn, lease: Lease, outcome: TurnState) -> None:
        self.run(self.store.turns.fail(turn, lease, outcome, []))
        if outcome is TurnState.STOPPED:
            self.claimed(chat, only_stopped=True)
            chat.add(Line(Role.USER, stop_row().text, is_said=False), self.clock.now())
        elif outcome is TurnState.SET_ASIDE:
            for seq, line in chat.lines.items():
                if seq >= turn.first_seq:
                    line.marks.add(Mark.SET_ASIDE)
            chat.retitle()
        self.end(chat, turn, lease)

    @has_stopped
    @rule(pick=picks, said=answers)
    def write_although_stopped(self, pick: int, said: Sequence[str]) -> None:
        _, turn, lease = self.running(pick, stopped=True)
        turns = self.store.turns
        for write in (
            turns.join(turn, lease),
            turns.append_round(turn, lease, spoken(said), None),
            turns.finish(turn, lease, spoken(said), [], None),
            turns.fail(turn, lease, TurnState.FAILED, []),
            turns.suspend(turn, lease, Waiting(reason="choice")),
        ):
            with pytest.raises(StopRequested):
                self.run(write)

    @has_stopped
    @rule(pick=picks, outcome=st.sampled_from([TurnState.STOPPED, TurnState.STOPPED, TurnState.SET_ASIDE, RESUME]))
    def obey(self, pick: int, outcome: TurnState | str) -> None:
        chat, turn, lease = self.running(pick, stopped=True)
        if isinstance(outcome, TurnState):
            self.fail_it(chat, turn, lease, outcome)
        else:
            self.run(self.store.turns.suspend(turn, lease, Waiting(reason=RESUME)))
            chat.waits_for = RESUME

    @has_running
    @rule(pick=picks, reason=st.sampled_from([RESUME, "choice"]))
    def suspend(self, pick: int, reason: str) -> None:
        chat, turn, lease = self.running(pick)
        self.run(self.store.turns.suspend(turn, lease, Waiting(reason=reason)))
        chat.waits_for = reason

    @has_chats
    @rule(pick=picks)
    def request_stop(self, pick: int) -> None:
        chat = self.chat(pick)
        arrivals = {arrival for _, arrival, _, _ in chat.pending}
        has_work = chat.turn is not None or bool(arrivals)
        found = self.run(self.store.turns.request_stop(chat.id, "U1"))
        assert found is (Stopping.REQUESTED if has_work else Stopping.NOTHING)
        chat.stopped = arrivals
        chat.is_stopped = chat.turn is not None
        backlog = self.run(self.store.turns.backlog(chat.id))
        assert (backlog.count, backlog.stopped) == (len(arrivals), len(arrivals))

    @rule(key=keys, text=texts, n=st.integers(20, 999), said=answers)
    def talk(self, key: SessionKey, text: str, n: int, said: Sequence[str]) -> None:
        """Do at once what a turn does, so that there is something for the other verbs to work on."""
        self.accept(key, text, n, 0)
        chat = self.open_chat(key)
        if chat is not None:
            place = self.chats.index(chat)
            self.begin(place)
            if chat.turn is not None and not chat.waits_for:
                running = [one for one in self.chats if one.turn and not one.waits_for and not one.is_stopped]
                if chat in running:
                    self.finish(running.index(chat), said)

    def say(self, chat: Chat, said: Sequence[str]) -> None:
        for text in said:
            chat.add(Line(Role.ASSISTANT, text), self.clock.now())

    def end(self, chat: Chat, turn: Turn, lease: Lease) -> None:
        chat.turn = chat.waits_for = None
        chat.is_stopped = False
        self.ended.append((turn, lease))

    @precondition(lambda self: self.ended)
    @rule(pick=picks, said=texts)
    def write_after_the_end(self, pick: int, said: str) -> None:
        turn, lease = self.ended[pick % len(self.ended)]
        with pytest.raises(LeaseLost):
            self.run(self.store.turns.finish(turn, lease, spoken([said]), [], None))
        self.touched.add(turn.session_id)

    @precondition(lambda self: any(chat.lease for chat in self.chats))
    @rule(pick=picks)
    def release_if_idle(self, pick: int) -> None:
        held = [chat for chat in self.chats if chat.lease]
        chat = held[pick % len(held)]
        assert chat.lease is not None
        may_go_on = chat.waits_for in (None, RESUME) or chat.is_stopped
        has_work = may_go_on if chat.turn else bool(chat.pending)
        assert self.run(self.store.turns.release_if_idle(chat.id, chat.lease)) == (not has_work)
        if not has_work:
            with pytest.raises(LeaseLost):
                self.run(self.store.turns.begin(chat.id, chat.lease))
            chat.lease = None

    @has_chats
    @rule(pick=picks, flags=st.dictionaries(st.sampled_from(["pinned", "archived"]), st.booleans(), min_size=1))
    def update(self, pick: int, flags: dict[str, bool]) -> None:
        chat = self.chat(pick)
        self.run(self.store.sessions.update(chat.id, flags))
        for name, value in flags.items():
            setattr(chat, name, value)

    @has_chats
    @rule(pick=picks, title=texts, source=st.sampled_from([TitleSource.GENERATED, TitleSource.EDITED]))
    def set_title(self, pick: int, title: str, source: TitleSource) -> None:
        chat = self.chat(pick)
        wins = source >= chat.title_source
        assert self.run(self.store.sessions.set_title(chat.id, title, source)) == wins
        if wins:
            chat.title, chat.title_source = title, source

    @has_chats
    @rule(pick=picks, kind=st.sampled_from(["slack", "github"]))
    def set_origin(self, pick: int, kind: str) -> None:
        chat, origin = self.chat(pick), Origin(kind=kind, chat_id="x")
        assert self.run(self.store.sessions.set_origin(chat.id, origin)) == (chat.origin is None)
        chat.origin = chat.origin or origin

    @has_chats
    @rule(pick=picks, seqs=seq_lists, mark=st.sampled_from(list(Mark)))
    def mark(self, pick: int, seqs: Sequence[int], mark: Mark) -> None:
        chat = self.chat(pick)
        fresh = {seq for seq in seqs if seq in chat.lines and mark not in chat.lines[seq].marks}
        assert self.run(self.store.sessions.mark(chat.id, seqs, mark)) == len(fresh)
        for seq in fresh:
            chat.lines[seq].marks.add(mark)
        chat.retitle()

    @has_chats
    @rule(pick=picks, seqs=seq_lists)
    def retire(self, pick: int, seqs: Sequence[int]) -> None:
        chat = self.chat(pick)
        # What a turn that is not finished works on stays.
        moved = {seq for seq in seqs if seq in chat.lines and (chat.turn is None or seq < chat.turn.first_seq)}
        assert self.run(self.store.sessions.retire(chat.id, seqs, "test")) == len(moved)
        for seq in moved:
            chat.attic[seq] = chat.lines.pop(seq)
        chat.retitle()

    @rule(key=keys)
    def close(self, key: SessionKey) -> None:
        chat = self.open_chat(key)
        closed = self.run(self.store.sessions.close(key))
        assert (closed.id if closed else None) == (chat.id if chat else None)
        if chat is not None:
            chat.is_closed = True
            self.touched.add(chat.id)

    @has_chats
    @rule(pick=picks, key=st.sampled_from([*KEYS, *FORK_KEYS]), before=st.integers(1, 12))
    def fork(self, pick: int, key: SessionKey, before: int) -> None:
        source = self.chat(pick)
        if self.open_chat(key) is not None:
            with pytest.raises(Refused):
                self.run(self.store.sessions.fork(source.id, before, key))
            return
        made = self.run(self.store.sessions.fork(source.id, before, key))
        assert made.parent_id == source.id
        chat = self.opened(key, made.id)
        for seq, line in source.lines.items():
            if seq < before:
                # Copies keep their places.
                chat.last_seq = seq - 1
                chat.add(Line(line.role, line.text, None, set(line.marks)), self.clock.now())

    @has_chats
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        chat = self.chat(pick)
        assert self.run(self.store.sessions.delete(chat.id))
        self.chats.remove(chat)
        self.deleted.append(chat.id)
        for _, _, event, _ in chat.pending:
            self.done(event)
        if chat.turn is not None and chat.lease is not None:
            self.ended.append((chat.turn, chat.lease))

    @precondition(lambda self: self.deleted)
    @rule(pick=picks)
    def find_what_is_deleted(self, pick: int) -> None:
        id = self.deleted[pick % len(self.deleted)]
        assert not self.run(self.store.sessions.delete(id))
        for verb in (self.store.sessions.get(id), self.store.sessions.page(id), self.store.sessions.update(id, {})):
            with pytest.raises(NotFound):
                self.run(verb)

    @has_chats
    @rule(pick=picks, place=st.integers(0, 12), is_before=st.booleans(), limit=st.integers(1, 5))
    def page(self, pick: int, place: int, is_before: bool, limit: int) -> None:
        chat = self.chat(pick)
        ask = {"before": place} if is_before else {"after": place}
        rows = self.run(self.store.sessions.page(chat.id, limit=limit, **ask))
        wanted = sorted(seq for seq in chat.lines if (seq < place if is_before else seq > place))
        assert [row.seq for row in rows] == (wanted[-limit:] if is_before else wanted[:limit])

    @rule(limit=st.integers(1, 3), archived=st.sampled_from([None, True, False]), closed=st.sampled_from([None, True]))
    def list(self, limit: int, archived: bool | None, closed: bool | None) -> None:
        seen: list[str] = []
        cursor = None
        while True:
            query = SessionQuery(limit=limit, cursor=cursor, archived=archived, closed=closed)
            page = self.run(self.store.sessions.list(query))
            seen += [session.id for session in page.sessions]
            if (cursor := page.next_cursor) is None:
                break
        wanted = [chat for chat in self.chats if archived in (None, chat.archived) and closed in (None, chat.is_closed)]
        wanted.sort(key=lambda chat: (not chat.pinned, NOON - chat.updated_at, chat.id))
        assert seen == [chat.id for chat in wanted]

    @rule(asked=st.lists(words, min_size=1, max_size=2))
    def search(self, asked: Sequence[str]) -> None:
        found = self.run(self.store.sessions.search(" ".join(asked).upper(), limit=10_000))
        hits = [(one.session.id, one.seq) for one in found]
        titled = {(chat.id, None) for chat in self.chats if chat.title_source > 1 and holds(chat.title, asked)}
        rows = {
            (chat.id, seq)
            for chat in self.chats
            for seq, line in chat.lines.items()
            if not line.marks and holds(line.text, asked)
        }
        assert set(hits[: len(titled)]) == titled
        assert set(hits[len(titled) :]) == rows
        assert len(hits) == len(titled) + len(rows)

    @invariant()
    def what_was_touched_is_as_the_model_says(self) -> None:
        for chat in [chat for chat in self.chats if chat.id in self.touched]:
            self.compare(chat)
        self.touched.clear()

    def compare(self, chat: Chat) -> None:
        header = self.run(self.store.sessions.get(chat.id))
        assert (header.key, header.message_count, header.preview) == (chat.key, len(chat.lines), chat.preview)
        assert (header.title, header.title_source) == (chat.title, chat.title_source)
        assert (header.pinned, header.archived, header.origin) == (chat.pinned, chat.archived, chat.origin)
        assert (header.updated_at, header.closed_at is not None) == (chat.updated_at, chat.is_closed)
        rows = self.run(self.store.sessions.page(chat.id, limit=FOREVER))
        assert [(row.seq, row.role, row.text, row.event_id, row.marks) for row in rows] == [
            (seq, line.role, line.text, line.event, line.marks) for seq, line in sorted(chat.lines.items())
        ]
        attic = self.run(self.store.sessions.attic(chat.id, limit=FOREVER))
        assert [(row.seq, row.text) for row in attic] == [(seq, line.text) for seq, line in sorted(chat.attic.items())]
        events = [row.event_id for row in (*rows, *attic) if row.event_id]
        assert len(events) == len(set(events))
        if not chat.is_closed:
            assert self.run(self.store.sessions.get(chat.key)).id == chat.id


def spoken(said: Sequence[str]) -> list[Message]:
    return [Message(role=Role.ASSISTANT, content=text) for text in said]


def holds(text: str, asked: Sequence[str]) -> bool:
    return set(asked) <= set(text.split())


@pytest.mark.timeout(1200)
def test_a_store_does_what_a_model_of_dictionaries_does(proving: bool) -> None:
    run_state_machine_as_test(
        Verbs,
        settings=settings(
            max_examples=EXAMPLES_PROVING if proving else EXAMPLES,
            stateful_step_count=STEPS_PROVING if proving else STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
