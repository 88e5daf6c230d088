"""How settings are found, laid over each other and refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from channels.registry import options_by_kind
from gateway.config.load import load_settings
from gateway.config.settings import Settings
from gateway.domain.errors import ConfigError
from gateway.domain.policy import Rules
from gateway.turns.options import SYSTEM_PROMPT

BOT = "xoxb-1-secret-bot-token"
APP = "xapp-1-secret-app-token"
TELEGRAM = "111:AAF-dk39sLkQwErTyUiOpAsDfGhJkLzXcV"
SLACK = f'[channels.slack]\nbot_token = "{BOT}"\napp_token = "{APP}"\n'

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.chdir(tmp_path)

    def loader(
        text: str = "", kinds: Mapping[str, Callable[[], type[BaseModel]]] | None = None, **env: str
    ) -> Settings:
        file = tmp_path / "given.toml"
        file.write_text(text)
        return load_settings(file, env, kinds or options_by_kind(), tmp_path / "data")

    return loader


def refusal(load: Load, text: str = "", **env: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(text, **env)
    message = str(caught.value)
    assert not [secret for secret in (BOT, APP, TELEGRAM) if secret in message]
    return message


def test_nothing_has_to_be_set(load: Load, tmp_path: Path) -> None:
    settings = load()
    assert settings.gateway.system_prompt == SYSTEM_PROMPT
    assert settings.store.url == f"sqlite:///{tmp_path}/data/trunkline.db"
    assert (settings.http.host, settings.http.port, settings.http.enabled) == ("127.0.0.1", 8420, True)
    assert (settings.logs.level, settings.logs.file, settings.delivery.on_uncertain) == ("info", None, "resend")
    assert settings.channels == {}


def test_a_channel_is_closed_until_somebody_is_listed(load: Load) -> None:
    channel = load(SLACK).channels["slack"]
    assert (channel.kind, channel.rules) == ("slack", Rules())
    assert not channel.rules.is_open
    assert load(SLACK + 'people = ["*"]').channels["slack"].rules.is_open


def test_a_channel_has_the_common_settings_and_those_of_its_kind(load: Load) -> None:
    text = f"""
    [channels.family-bot]
    kind = "telegram"
    bot_token = "{TELEGRAM}"
    people = [42, "43"]
    chats = [-100123]
    anyone_in = [-100456]
    system_prompt = "Be kind."
    model = "echo:loud"
    """
    channel = load(text).channels["family-bot"]
    assert channel.rules == Rules(
        people=frozenset({"42", "43"}), chats=frozenset({"-100123"}), anyone_in=frozenset({"-100456"})
    )
    assert (channel.system_prompt, channel.model) == ("Be kind.", "echo:loud")
    token = channel.options.bot_token  # type: ignore[attr-defined]
    assert isinstance(token, SecretStr)
    assert token.get_secret_value() == TELEGRAM


def test_the_environment_lies_over_the_file(load: Load) -> None:
    settings = load(
        SLACK + "[http]\nport = 1\n[model.providers.my-llm]\nbase_url = 'http://a/v1'",
        TRUNKLINE_HTTP__PORT="9000",
        TRUNKLINE_HTTP__ENABLED="no",
        TRUNKLINE_GATEWAY__DRAIN_SECONDS="2.5",
        TRUNKLINE_LOGS__FILE="/tmp/x.log",
        TRUNKLINE_CHANNELS__SLACK__PEOPLE="U1, U2",
        TRUNKLINE_CHANNELS__SLACK__CHATS='["C1"]',
        TRUNKLINE_MODEL__PROVIDERS__MY_LLM__API_KEY="sk-abcdef",
        TRUNKLINE_MODEL__PROVIDERS__OPENAI__API_KEY="sk-ghijkl",
        TRUNKLINE_MODEL__WINDOWS='{"openai:gpt-5": 100000}',
        TRUNKLINE_HTTP__HOST="",
    )
    assert (settings.http.port, settings.http.enabled, settings.http.host) == (9000, False, "127.0.0.1")
    assert settings.gateway.drain_seconds == 2.5
    assert settings.logs.file == Path("/tmp/x.log")
    assert settings.channels["slack"].rules == Rules(people=frozenset({"U1", "U2"}), chats=frozenset({"C1"}))
    assert set(settings.model.providers) == {"my-llm", "openai"}
    assert settings.model.windows == {"openai:gpt-5": 100000}


@pytest.mark.parametrize("name", ["slack-acme", "slack_acme", "slack--acme", "slack__acme"])
def test_a_variable_finds_the_channel_however_its_name_is_joined(load: Load, name: str) -> None:
    text = SLACK.replace("slack]", f'{name}]\nkind = "slack"')
    variable = f"TRUNKLINE_CHANNELS__{name.replace('-', '_').upper()}__MODEL"
    assert load(text, **{variable: "echo"}).channels[name].model == "echo"


def test_a_channel_can_live_in_the_environment_alone(load: Load) -> None:
    settings = load(
        TRUNKLINE_CHANNELS__SLACK__BOT_TOKEN=BOT,
        TRUNKLINE_CHANNELS__SLACK__APP_TOKEN=APP,
        TRUNKLINE_CHANNELS__MY_TG__KIND="telegram",
        TRUNKLINE_CHANNELS__MY_TG__BOT_TOKEN=TELEGRAM,
        TRUNKLINE_CHANNELS__MY_TG__PEOPLE="42",
    )
    assert {name: channel.kind for name, channel in settings.channels.items()} == {
        "slack": "slack",
        "my_tg": "telegram",
    }
    assert settings.channels["my_tg"].rules.people == {"42"}


@pytest.mark.parametrize("name", ["console", "chat", "chat-", "chat-work"])
@pytest.mark.parametrize("kind", ["slack", "telegram"])
def test_the_names_of_terminals_are_for_terminals_only(load: Load, name: str, kind: str) -> None:
    told = f"channels.{name}.kind: expected console, got {kind}: {name} is a terminal's own name"
    assert refusal(load, f'[channels.{name}]\nkind = "{kind}"') == told
    assert refusal(load, f'[channels.{name}]\nenabled = false\nkind = "{kind}"') == told
    assert load(f'[channels.{name}]\nkind = "console"').channels[name].kind == "console"


def test_the_environment_cannot_take_a_terminals_name_either(load: Load) -> None:
    variables = {"TRUNKLINE_CHANNELS__CHAT__KIND": "slack", "TRUNKLINE_CHANNELS__CONSOLE__KIND": "telegram"}
    told = refusal(load, **variables).splitlines()
    assert told == [
        "channels.chat.kind: expected console, got slack: chat is a terminal's own name",
        "channels.console.kind: expected console, got telegram: console is a terminal's own name",
    ]


@pytest.mark.parametrize("name", ["chatter", "my-chat", "chat_", "console-2"])
def test_a_name_that_only_resembles_a_terminals_is_free(load: Load, name: str) -> None:
    assert load(SLACK.replace("slack]", f'{name}]\nkind = "slack"')).channels[name].kind == "slack"


def test_a_channel_that_is_off_may_lack_its_token(load: Load) -> None:
    settings = load('[channels.a]\nkind = "slack"\nenabled = false\n' + SLACK)
    assert (list(settings.channels), settings.disabled) == (["slack"], ("a",))
    assert refusal(load, '[channels.slack]\nenabled = false\nbot_tokn = "x"').startswith("channels.slack.bot_tokn: ")
    assert refusal(load, "[channels.slack]\nenabled = false\nbot_token = 5").startswith("channels.slack.bot_token: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SLACK + 'bot_tokn = "x"', "channels.slack.bot_tokn: unknown setting; did you mean bot_token?"),
        ("[htp]\nport = 1", "htp: unknown setting; did you mean http?"),
        ("[http]\nzzz = 1", "http.zzz: unknown setting; expected one of enabled, host, port"),
        ("[model.providers.x]\napi_kee = 'abc'", "model.providers.x.api_kee: unknown setting; did you mean api_key?"),
        ("[http]\nport = '80'", "http.port: expected a whole number, got '80'"),
        ("[http]\nport = true", "http.port: expected a whole number, got true"),
        ("[http]\nport = 65536", "http.port: expected a number less than or equal to 65535, got the number 65536"),
        ("[model.providers.'A b']", "model.providers.A b: expected a text matching '^[a-z0-9]"),
        (
            "[model.providers.a]\nbase_url = 'ftp://x'",
            "model.providers.a.base_url: expected an address that begins with http",
        ),
        ("http = 3", "http: expected a table, got a number"),
        ("[http]\nhost = 1979-05-27", "http.host: expected text, got a date"),
        ("[http.port]\na = 1", "http.port: expected a whole number, got a table"),
        ("[logs]\nlevel = 'loud'", "logs.level: expected 'debug', 'info', 'warning' or 'error', got 'loud'"),
        ("[gateway]\ndrain_seconds = nan", "gateway.drain_seconds: expected a finite number"),
        ("channels = 3", "channels: expected a table"),
        ("[channels]\nslack = 'x'", "channels.slack: unknown setting"),
        ("[channels.Slack]", "channels.Slack: expected a channel name of the letters a-z, 0-9, _ and -, got 'Slack'"),
        ("[channels.a]", "channels.a.kind: is missing; expected one of slack, telegram, console"),
        ("[channels.a]\nkind = 'slak'", "channels.a.kind: unknown kind 'slak'; did you mean slack?"),
        ("[channels.a]\nkind = 4", "channels.a.kind: unknown kind the number 4"),
        (SLACK + 'people = "U1"', "channels.slack.people: expected a list of ids, got 'U1'"),
        (SLACK + "people = [true]", "channels.slack.people: expected a list of ids, got a list"),
        (SLACK + 'people = ["@bob"]', "channels.slack.people: expected stable ids such as"),
        (SLACK + 'anyone_in = ["*"]', "channels.slack.anyone_in: expected ids of chats, got '*'; to admit everybody"),
        ("[channels.slack]\napp_token = 'xapp-1'", "set it in the file or as TRUNKLINE_CHANNELS__SLACK__BOT_TOKEN"),
    ],
)
def test_what_is_wrong_in_the_file_is_named_with_what_was_expected(load: Load, text: str, message: str) -> None:
    assert message in refusal(load, text)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TRUNKLINE_HTTP__PROT", "1", "unknown variable; did you mean TRUNKLINE_HTTP__PORT?"),
        ("TRUNKLINE_HTTP_PORT", "1", "unknown variable; did you mean TRUNKLINE_HTTP__PORT?"),
        ("TRUNKLINE_CHANNELS__SLACK__BOT_TOKN", "1", "did you mean TRUNKLINE_CHANNELS__SLACK__BOT_TOKEN?"),
        ("TRUNKLINE_CHANNELS__SLAK__BOT_TOKEN", BOT, "did you mean TRUNKLINE_CHANNELS__SLACK__BOT_TOKEN?"),
        ("TRUNKLINE_CHANNELS__SLACK", "1", "channels.slack: expected a table"),
        ("TRUNKLINE_ZZZZZZZZZZZZ", "1", "TRUNKLINE_ZZZZZZZZZZZZ: unknown variable"),
        ("TRUNKLINE_HTTP", "1", "http: expected a table"),
        ("TRUNKLINE_HTTP__PORT", "abc", "http.port: expected a whole number, got 'abc' (from TRUNKLINE_HTTP__PORT)"),
        ("TRUNKLINE_HTTP__PORT__X", "1", "unknown variable; did you mean TRUNKLINE_HTTP__PORT?"),
        ("TRUNKLINE_HTTP__HOST", "a\udcff", "TRUNKLINE_HTTP__HOST: expected UTF-8 text"),
        ("TRUNKLINE_CHANNELS__A.B__KIND", "slack", "channels.a.b: expected a channel name of the letters"),
        (
            "TRUNKLINE_MODEL",
            '{"retries": "x"}',
            "model.retries: expected a whole number, got 'x' (from TRUNKLINE_MODEL)",
        ),
        ("TRUNKLINE_MODEL__WINDOWS", "{broken", "model.windows: expected a table"),
        ("TRUNKLINE_CHANNELS__SLACK__PEOPLE", "@bob", "(from TRUNKLINE_CHANNELS__SLACK__PEOPLE)"),
    ],
)
def test_what_is_wrong_in_the_environment_is_named(load: Load, variable: str, value: str, message: str) -> None:
    assert message in refusal(load, SLACK, **{variable: value})


def test_a_variable_for_a_table_that_is_none_is_refused(load: Load) -> None:
    assert "TRUNKLINE_HTTP__PORT: http is no table in the file" in refusal(load, "http = 3", TRUNKLINE_HTTP__PORT="1")


@pytest.mark.parametrize("value", [f'"{TELEGRAM} "', f'["{BOT}"]', "5", f'{{ a = "{APP}" }}', f'"{APP}"'])
def test_a_secret_that_is_refused_is_not_shown(load: Load, value: str) -> None:
    message = refusal(load, f'[channels.slack]\napp_token = "{APP}"\nbot_token = {value}')
    assert message.startswith("channels.slack.bot_token")


def test_a_token_in_the_wrong_place_is_not_shown(load: Load) -> None:
    assert "got a text" in refusal(load, SLACK + f'people = "{BOT}"')
    assert "got a text" in refusal(load, "[http]\nport = 'postgres://me:swordfish@db/x'")


def test_everything_that_is_wrong_is_told_at_once(load: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        load(
            "[http]\nport = 'x'\nhots = 'y'\n[channels.slack]\n[channels.tg]\nkind='telegram'\nbot_token = 1979-05-27",
            TRUNKLINE_X="1",
        )
    assert caught.value.setting == "http.hots"
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "http.hots",
        "channels.tg.bot_token",
        "TRUNKLINE_X",
        "http.port",
        "channels.slack.bot_token",
        "channels.slack.app_token",
    ]


def test_two_channels_that_share_their_variables_are_refused(load: Load) -> None:
    text = SLACK.replace("slack]", "a-b]") + SLACK.replace("slack]", "a_b]")
    assert refusal(load, text) == (
        "channels.a_b: shares the variables TRUNKLINE_CHANNELS__A_B__… with channels.a-b; rename one of them"
    )


def test_secrets_are_found_wherever_they_are(load: Load) -> None:
    settings = load(
        """
        store.url = "postgresql://me:sword%20fish@db/x"
        [model.providers.openai]
        api_key = "sk-abcdef"
        base_url = "https://user:proxy-password@proxy/v1"
        """
        + SLACK
    )
    assert settings.secrets() == {BOT, APP, "sk-abcdef", "sword%20fish", "sword fish", "proxy-password"}
    assert not [secret for secret in settings.secrets() - {"proxy-password"} if secret in repr(settings)]
    assert load().secrets() == frozenset()


def test_settings_cannot_be_changed(load: Load) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().http.port = 1


def test_a_kind_may_bring_settings_of_any_shape(load: Load) -> None:
    class Inner(BaseModel):
        key: SecretStr

    class Odd(BaseModel):
        inner: Inner
        names: tuple[str, ...] = ()
        maybe: list[int] | None = None
        more: tuple[SecretStr, ...] = ()

    kinds = {"odd": lambda: Odd}
    settings = load("[channels.odd]\nnames = ['a']\ninner.key = 'k'", kinds, TRUNKLINE_CHANNELS__ODD__MAYBE="[1, 2]")
    assert settings.channels["odd"].options == Odd(inner=Inner(key=SecretStr("k")), names=("a",), maybe=[1, 2])
    with pytest.raises(ConfigError, match=r"channels\.odd\.inner\.key: is missing"):
        load("[channels.odd.inner]", kinds)
    with pytest.raises(ConfigError, match=r"channels\.odd\.maybe\.0: expected a whole number, got 'x'"):
        load("[channels.odd]\ninner.key = 'k'\nmaybe = ['x']", kinds)
    assert load("[channels.odd]\ninner.key = 'k'\nmore = ['l', 'm']", kinds).secrets() == {"k", "l", "m"}
