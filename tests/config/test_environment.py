"""What a variable of the environment means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.registry import options_by_kind
from gateway.config.environment import decode, ours, overlay, resolve
from gateway.config.load import tree_of
from gateway.config.tree import PREFIX, Branch, Leaf, branch_of, leaves, variable
from gateway.domain.keys import check_channel_name
from gateway.web.options import HttpOptions

KINDS = options_by_kind()
NAMES = st.from_regex(r"[a-z0-9_-]{1,12}", fullmatch=True)


@given(NAMES, st.sampled_from(sorted(KINDS)))
def test_every_setting_has_a_variable_that_leads_back_to_it(name: str, kind: str) -> None:
    check_channel_name(name)
    tree = tree_of({name: KINDS[kind]()})
    for path, leaf in leaves(tree, chosen="name"):
        assert resolve(variable(path).removeprefix(PREFIX), tree, {"channels": {name: {}}}) == (path, leaf)


def test_an_empty_variable_and_one_of_another_program_set_nothing() -> None:
    environment = {"TRUNKLINE_A": "", "TRUNKLINE_DATA": "/x", "TRUNKLINE_CONFIG": "/y", "HOME": "/", "TRUNKLINE_B": "1"}
    assert ours(environment) == {"TRUNKLINE_B": "1"}


def test_what_was_read_is_not_changed() -> None:
    written = {"http": {"port": 1}}
    laid = overlay(written, {"TRUNKLINE_HTTP__PORT": "2"}, Branch({"http": branch_of(HttpOptions)}))
    assert (written, laid.values) == ({"http": {"port": 1}}, {"http": {"port": 2}})
    assert laid.origins == {("http", "port"): "TRUNKLINE_HTTP__PORT"}


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, " 80 ", 80),
        (int | None, "80", 80),
        (int, "eighty", "eighty"),
        (float, "2.5", 2.5),
        (bool, "yes", True),
        (bool, "0", False),
        (bool, "maybe", "maybe"),
        (str, " as it is ", " as it is "),
        (str, "[1]", "[1]"),
        (list[str], "a, b,,c", ["a", "b", "c"]),
        (list[str], '["a,b"]', ["a,b"]),
        (list[str], "[broken", ["[broken"]),
        (tuple[str, ...], "a", ["a"]),
        (frozenset[str] | None, "a", ["a"]),
    ],
)
def test_a_text_is_read_as_the_setting_asks(annotation: object, text: str, value: object) -> None:
    assert decode(text, Leaf(annotation)) == value
