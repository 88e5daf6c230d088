"""Rows are counted without holding up the event loop: what may take long is counted in a thread."""

from __future__ import annotations

import threading

import pytest

from gateway.domain.message import TOKENS_PER_MESSAGE, Message, Role
from gateway.store.counting import MOST_ON_THE_LOOP, RowCounter
from tests.stores import count_words


class Watched:
    """Counts words, and remembers in which thread."""

    def __init__(self) -> None:
        self.on_the_loop: list[bool] = []

    def __call__(self, text: str) -> int:
        self.on_the_loop.append(threading.current_thread() is threading.main_thread())
        return count_words(text)


async def test_the_first_row_is_counted_in_a_thread_and_short_ones_after_it_at_once() -> None:
    watched = Watched()
    count = RowCounter(watched)
    for _ in range(3):
        (row,) = await count([Message(role=Role.USER, content="two words")], "t1")
        assert (row.tokens, row.turn_id) == (2 + TOKENS_PER_MESSAGE, "t1")
    assert watched.on_the_loop == [False, True, True]


@pytest.mark.parametrize("rows", [1, 10])
async def test_much_text_is_counted_in_a_thread_each_time(rows: int) -> None:
    watched = Watched()
    count = RowCounter(watched)
    text = "w" * (MOST_ON_THE_LOOP // rows + 1)
    for _ in range(2):
        await count([Message(role=Role.USER, content=text)] * rows)
    assert not any(watched.on_the_loop)


async def test_a_row_that_was_counted_keeps_its_count_and_no_row_is_no_work() -> None:
    watched = Watched()
    count = RowCounter(watched)
    (row,) = await count([Message(role=Role.USER, content="two words", tokens=77)])
    assert row.tokens == 77
    assert list(await count([])) == []
    assert watched.on_the_loop == []
