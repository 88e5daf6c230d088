"""Model ids and keys: which provider a request goes to, and what is said when it cannot go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.domain.errors import AuthFailed, Refused, TrunklineError
from gateway.model import providers
from gateway.model.adapter import Adapter
from gateway.model.clients import open_client
from gateway.model.options import ModelOptions
from gateway.model.providers import suggestions
from gateway.model.router import Models
from gateway.ports.model import Style
from tests.loopback.models import Fault, ModelServer
from tests.model.rigs import SECRET, asking, heard, models, text_of
from tests.stores import count_words

OPENAI, ANTHROPIC = "openai:gpt-5", "anthropic:claude-sonnet-5-5"


def routed(**options: object) -> Models:
    return Models(ModelOptions.model_validate(options), {}, count=count_words)


@pytest.mark.parametrize(
    ("id", "provider", "name", "style"),
    [
        ("echo", "echo", "echo", Style.OPENAI),
        ("openai:gpt-5", "openai", "gpt-5", Style.OPENAI),
        ("anthropic:claude-sonnet-5-5", "anthropic", "claude-sonnet-5-5", Style.ANTHROPIC),
        ("ollama:llama3.2:3b", "ollama", "llama3.2:3b", Style.OPENAI),
        ("openrouter:anthropic/claude-x", "openrouter", "anthropic/claude-x", Style.OPENAI),
        ("local:tiny", "local", "tiny", Style.OPENAI),
        ("scripted:/x/y.json", "scripted", "/x/y.json", Style.OPENAI),
    ],
)
def test_an_id_names_a_provider_and_its_model(id: str, provider: str, name: str, style: Style) -> None:
    info = routed(providers={"local": {"base_url": "http://localhost:9/v1"}}).info(id)
    assert (info.provider, info.name, info.style) == (provider, name, style)


@pytest.mark.parametrize(
    ("id", "says"),
    [
        ("opnai:gpt-5", "did you mean openai?"),
        ("Anthropic:claude", "did you mean anthropic?"),
        ("locl:tiny", "did you mean local?"),
        ("zzz:tiny", "model.providers.zzz.base_url"),
        ("nowhere:tiny", "model.providers.nowhere.base_url"),
        ("gpt-5", "did you mean openai:gpt-5?"),
        ("claude-x", "did you mean anthropic:claude-x?"),
        ("ecko", "did you mean echo?"),
        ("openai:", "expected a model after openai:"),
        ("echo:x", "expected echo"),
        ("", "expected a model id"),
        ("responses:gpt-5", "use openai:gpt-5 instead"),
        ("openai-responses:gpt-5", "reasoning items cannot be stored"),
    ],
)
async def test_an_id_that_nobody_serves_is_refused_with_the_nearest_right_one(id: str, says: str) -> None:
    models = routed(providers={"local": {"base_url": "http://localhost:9/v1"}, "nowhere": {"api_key": "k"}})
    for asked in (models.info, models.check):
        with pytest.raises(Refused) as caught:
            asked(id)
        assert says in str(caught.value)
    with pytest.raises(Refused):
        await heard(models, asking(id))


@pytest.mark.parametrize(
    ("id", "says"),
    [
        ("openai:gpt-5", "set OPENAI_API_KEY or model.providers.openai.api_key"),
        ("anthropic:claude-x", "set ANTHROPIC_API_KEY or model.providers.anthropic.api_key"),
        ("groq:x", "set GROQ_API_KEY"),
    ],
)
async def test_a_missing_key_is_told_with_the_variable_and_the_setting(id: str, says: str) -> None:
    models = routed()
    models.info(id)
    with pytest.raises(AuthFailed, match=says):
        models.check(id)
    with pytest.raises(AuthFailed, match=says):
        await heard(models, asking(id))


@pytest.mark.parametrize("key", ["sk-…", "sk-a b", "sk-a\nb", "sk-\x00"])
def test_a_key_that_no_provider_has_is_refused_unseen(key: str) -> None:
    with pytest.raises(AuthFailed, match="copy it again") as caught:
        Models(ModelOptions(), {"OPENAI_API_KEY": key}, count=count_words).check("openai:gpt-5")
    assert "sk-" not in str(caught.value)


def test_the_setting_wins_over_the_environment() -> None:
    given = ModelOptions.model_validate({"providers": {"openai": {"api_key": "mine", "base_url": "http://mine/v1"}}})
    environment = {"OPENAI_API_KEY": "theirs", "OPENAI_BASE_URL": "http://theirs/v1"}
    mine = providers.endpoint("openai", given, environment)
    theirs = providers.endpoint("openai", ModelOptions(), environment)
    assert (mine.api_key, mine.base_url) == ("mine", "http://mine/v1")
    assert (theirs.api_key, theirs.base_url) == ("theirs", "http://theirs/v1")
    assert "theirs" not in repr(theirs)


def test_a_key_pasted_with_its_line_break_is_the_key() -> None:
    assert providers.endpoint("openai", ModelOptions(), {"OPENAI_API_KEY": "sk-a\n"}).api_key == "sk-a"


def test_a_local_server_needs_no_key() -> None:
    found = providers.endpoint("ollama", ModelOptions(), {})
    assert (found.base_url, found.api_key) == ("http://localhost:11434/v1", None)


def test_another_providers_key_is_never_sent_to_a_server_of_ones_own() -> None:
    options = ModelOptions.model_validate({"providers": {"local": {"base_url": "http://localhost:9/v1"}}})
    assert providers.endpoint("local", options, {"OPENAI_API_KEY": "sk-a"}).api_key is None


def test_keys_in_the_environment_suggest_models_and_nothing_more() -> None:
    assert suggestions({}) == ()
    assert suggestions({"OPENAI_API_KEY": " "}) == ()
    assert suggestions({"GROQ_API_KEY": "k", "OPENAI_API_KEY": "k"})[0] == "openai:gpt-5"
    for id in suggestions({known.variable: "k" for known in providers.KNOWN.values() if known.variable}):
        routed().info(id)


async def test_the_key_goes_where_it_belongs(server: ModelServer) -> None:
    server.key = SECRET
    routes = models(server)
    for id in (OPENAI, ANTHROPIC):
        assert text_of(await heard(routes, asking(id))) == "answer to: Hello"
    with pytest.raises(AuthFailed):
        await heard(routes, asking("local:tiny"))
    assert SECRET not in str(server.asked[-1].headers)
    await routes.close()


async def test_one_provider_alone_keeps_the_contract_too(server: ModelServer) -> None:
    options = ModelOptions.model_validate({"providers": {"local": {"base_url": server.openai_url}}})
    adapter = Adapter(open_client(providers.endpoint("local", options, {}), options), options)
    assert await adapter.complete(asking("local:tiny")) == "answer to: Hello"
    assert adapter.info("local:tiny") == Models(options, {}, count=count_words).info("local:tiny")
    await adapter.close()


async def test_no_secret_and_no_payload_is_logged_or_told(server: ModelServer, logged: list[str]) -> None:
    routes = models(server, fallback=ANTHROPIC)
    told = []
    for fault in Fault:
        if fault in (Fault.SILENT, Fault.STALLED, Fault.WAITING, Fault.PINGING):
            continue
        server.fail_next(fault, times=2)
        try:
            await heard(routes, asking(OPENAI))
        except TrunklineError as error:
            told.append(str(error))
    for text in [*told, *logged]:
        assert SECRET not in text
        assert "127.0.0.1" not in text
        assert "Hello" not in text
    await routes.close()


def test_the_settings_are_strict() -> None:
    for wrong in (
        {"defualt": "echo"},
        {"timeout_seconds": 0},
        {"retries": -1},
        {"providers": {"Bad Name": {"base_url": "http://x/v1"}}},
        {"providers": {"local": {"base_url": "localhost:9"}}},
        {"providers": {"local": {"url": "http://x/v1"}}},
        {"windows": {"local:tiny": 0}},
    ):
        with pytest.raises(ValidationError):
            ModelOptions.model_validate(wrong)
    secret = ModelOptions.model_validate({"providers": {"openai": {"api_key": SECRET}}})
    assert SECRET not in f"{secret!r}{secret.model_dump_json()}"


def test_importing_the_router_imports_no_provider() -> None:
    heavy = "{'pydantic_ai', 'openai', 'anthropic', 'tiktoken', 'httpx2'}"
    code = f"import sys, gateway.model.router, gateway.tokens.o200k; print({heavy} & set(sys.modules))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "set()"
