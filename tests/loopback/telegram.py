"""A loopback server that plays Telegram's Bot API to one bot, as strictly as Telegram does.

    async with TelegramServer() as telegram:
        options = TelegramOptions(bot_token=telegram.token, api_url=telegram.api_url, poll_seconds=1)
        await telegram.private(42, "hello")                     # -> the update's id
        await telegram.group(-100, 42, "hi", mention=True, topic=7)
        telegram.fail(Trouble.LIMITED, method="sendMessage")    # once, for the next call
        await telegram.until_shown(42, 1)
        telegram.messages(42)                                   # what the bot shows there
        telegram.confirmed                                      # the highest update it was told is received

It lives in the loop of the test; the gateway that talks to it may be another process.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from tests.loopback.telegram_chats import Chat, Chats
from tests.loopback.telegram_files import Files
from tests.loopback.telegram_rules import Refusal, utf16_length
from tests.loopback.telegram_troubles import Planned, Trouble
from tests.loopback.telegram_updates import UpdateQueue
from tests.loopback.telegram_wire import half, hang_up, params_of, refuse

__all__ = ["BOT", "Call", "TelegramServer", "Trouble", "user"]

BOT = {"id": 123456, "is_bot": True, "first_name": "Trunk", "username": "trunk_bot"}


@dataclass(frozen=True)
class Call:
    """A call that came, with its parameters as texts."""

    method: str
    params: Mapping[str, str]


class TelegramServer:
    """The Bot API on a random port of this machine."""

    def __init__(self) -> None:
        self.token = "123456:TEST-token_of_no_bot_at_all_0000000"
        self.bot = BOT
        self.calls: list[Call] = []
        self.updates = UpdateQueue()
        self.chats = Chats(BOT)
        self.files = Files()
        self.port = 0
        self._troubles: list[Planned] = []
        self._runner: web.AppRunner | None = None
        self._polls: list[web.Request] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; after a stop, on the same port as before, with all chats and updates kept."""
        app = web.Application()
        app.router.add_route("*", "/file/bot{token}/{path:.+}", self._download)
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._runner:
            await self._runner.cleanup()

    @property
    def api_url(self) -> str:
        """The address to give a bot as `api_url`."""
        return f"http://127.0.0.1:{self.port}"

    # What people do.

    def open_private(self, user_id: int) -> Chat:
        """Let a person have started the bot."""
        return self.chats.open(user_id, "private", f"User{user_id}")

    def open_group(self, chat_id: int, topic: int | None = None) -> Chat:
        """Let a group with the bot exist, with that topic."""
        return self.chats.open(chat_id, "supergroup", f"Group {chat_id}", topic)

    async def private(self, user_id: int, text: str, entities: list[dict[str, Any]] | None = None) -> int:
        """Let a person write to the bot; return the update's id."""
        chat = self.open_private(user_id)
        return await self.push({"message": self.message(chat, user(user_id), text, entities)})

    async def group(
        self, chat_id: int, user_id: int, text: str, *, mention: bool = True, topic: int | None = None
    ) -> int:
        """Let a person write in a group, to the bot or past it; return the update's id."""
        chat = self.open_group(chat_id, topic)
        write = self.mention if mention else self.message
        return await self.push({"message": write(chat, user(user_id), text, topic=topic)})

    async def press(self, chat_id: int, user_id: int, message_id: int, data: str) -> int:
        """Let a person press a button under a message; return the update's id."""
        chat = self.chats.get(chat_id)
        shown = self.chats.described(chat, chat.messages[message_id])
        query = {"id": f"query-{self.updates.next_id()}", "from": user(user_id), "chat_instance": "1"}
        return await self.push({"callback_query": {**query, "message": shown, "data": data}})

    async def push(self, update: Mapping[str, Any]) -> int:
        """Queue any update, numbered unless it is; return its id."""
        numbered = {"update_id": self.updates.next_id(), **update}
        await self.updates.push(numbered)
        return int(numbered["update_id"])

    def message(
        self,
        chat: Chat,
        sender: Mapping[str, Any],
        text: str,
        entities: list[dict[str, Any]] | None = None,
        *,
        topic: int | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Return a message as the Bot API writes it, with an id of its chat."""
        added = chat.add(text, is_ours=False, topic=topic)
        place = {"message_thread_id": topic, "is_topic_message": True} if topic else {}
        head = {
            "message_id": added.id,
            "date": int(time.time()),
            "chat": chat.described(),
            "from": dict(sender),
        }
        body = {"text": text, **({"entities": entities} if entities else {})} if text else {}
        return {**head, **place, **body, **fields}

    def mention(self, chat: Chat, sender: Mapping[str, Any], text: str, *, topic: int | None = None) -> dict[str, Any]:
        """Return a message that mentions the bot in front."""
        name = f"@{BOT['username']}"
        entities = [{"type": "mention", "offset": 0, "length": utf16_length(name)}]
        return self.message(chat, sender, f"{name} {text}", entities, topic=topic)

    # What the bot did.

    def messages(self, chat_id: int, topic: int | None = None) -> list[str]:
        """Return the texts that the bot shows in a chat outside of topics, or in a topic, in order."""
        return [message.text for message in self.chats.shown(chat_id, topic)]

    def called(self, method: str) -> list[Call]:
        """Return the calls of one method, in order."""
        return [call for call in self.calls if call.method == method]

    @property
    def confirmed(self) -> int:
        """The highest id of an update that the bot confirmed; 0 if none."""
        return self.updates.confirmed

    @property
    def confirmed_count(self) -> int:
        """How many updates the bot confirmed that were not queued again since."""
        return len(self.updates.confirmed_updates)

    async def repeat(self) -> None:
        """Deliver the last update once more, if it was confirmed."""
        await self.wait_polled()
        await self.updates.push(self.updates.confirmed_updates[-1])

    async def requeue(self) -> None:
        """Deliver all that was confirmed once more: to a request that waits, or after a restart."""
        await self.updates.requeue()

    def drop_polls(self) -> None:
        """Break the connection of each request for updates that waits."""
        for request in self._polls:
            hang_up(request)

    async def wait_polled(self) -> None:
        """Wait until the bot waits for updates and has confirmed all there are."""
        await self.updates.until(lambda: self.updates.is_polled, "the bot polls")

    async def wait_confirmed(self, update_id: int) -> None:
        """Wait until the bot has confirmed an update."""
        await self.updates.until(lambda: self.confirmed >= update_id, f"update {update_id} is confirmed")

    async def until_called(self, method: str, times: int = 1) -> None:
        """Wait until a method was called so often, by whatever outcome."""
        await self.updates.until(lambda: len(self.called(method)) >= times, f"{method} is called {times} times")

    async def until_shown(self, chat_id: int, count: int, topic: int | None = None) -> None:
        """Wait until the bot shows so many messages."""
        await self.updates.until(
            lambda: len(self.messages(chat_id, topic)) >= count, f"{count} messages are shown in {chat_id}"
        )

    # What goes wrong.

    def fail(self, trouble: Trouble, *, method: str | None = None, times: int = 1, retry_after: int = 7) -> None:
        """Arm a trouble for the next calls of a method, or without one of any that shows something.

        Under the method `download`, any trouble breaks a download off in the middle.
        """
        self._troubles += times * [Planned(trouble, method, retry_after)]

    def calm(self) -> None:
        """Forget the troubles that no call has met yet."""
        self._troubles.clear()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method, params = request.match_info["method"], await params_of(request)
        if request.match_info["token"] != self.token:
            return refuse(Refusal(401, "Unauthorized"))
        self.calls.append(Call(method, params))
        planned = self._take_trouble(method)
        if method == "getUpdates":
            self._polls.append(request)
        try:
            return await self._troubled(request, method, params, planned)
        finally:
            self._polls = [one for one in self._polls if one is not request]
            await self.updates.notify()

    def _take_trouble(self, method: str) -> Planned | None:
        planned = next((one for one in self._troubles if one.meets(method)), None)
        if planned:
            self._troubles.remove(planned)
        return planned

    async def _troubled(
        self, request: web.Request, method: str, params: Mapping[str, str], planned: Planned | None
    ) -> web.StreamResponse:
        match planned.trouble if planned else None:
            case Trouble.DROPPED:
                return hang_up(request)
            case Trouble.NONSENSE:
                return web.json_response({"ok": True, "result": {"what": "is this"}})
            case Trouble.LOST:
                await self._apply(method, params)
                return hang_up(request)
            case Trouble.BAD_GATEWAY | Trouble.LOST_PAGE as page:
                status = 502 if page is Trouble.BAD_GATEWAY else 404
                return web.Response(
                    status=status, text=f"<html>{status} {request.url}</html>", content_type="text/html"
                )
            case None:
                return await self._apply(method, params)
        assert planned is not None
        return refuse(planned.refusal())

    async def _apply(self, method: str, params: Mapping[str, str]) -> web.Response:
        try:
            act = self._methods().get(method)
            if act is None:
                raise Refusal(404, "Not Found")
            result = act(params)
            result = await result if isinstance(result, Awaitable) else result
        except Refusal as refusal:
            return refuse(refusal)
        return web.json_response({"ok": True, "result": result})

    def _methods(self) -> Mapping[str, Callable[[Mapping[str, str]], Any]]:
        return {
            "getMe": lambda params: dict(BOT),
            "getUpdates": self.updates.get_updates,
            "sendMessage": self.chats.send_message,
            "editMessageText": self.chats.edit_message_text,
            "deleteMessage": self.chats.delete_message,
            "sendChatAction": self.chats.send_chat_action,
            "answerCallbackQuery": self.chats.answer_callback_query,
            "getFile": self.files.get_file,
            "setWebhook": self.updates.set_webhook,
            "deleteWebhook": self.updates.delete_webhook,
            "getWebhookInfo": self.updates.webhook_info,
        }

    async def _download(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["token"] != self.token:
            return refuse(Refusal(401, "Unauthorized"))
        try:
            content = self.files.content(request.match_info["path"])
        except Refusal as refusal:
            return refuse(refusal)
        return await half(request, content) if self._take_trouble("download") else web.Response(body=content)


def user(id: int, *, is_bot: bool = False) -> dict[str, Any]:
    """Return a person, or a bot, as the Bot API writes them."""
    return {"id": id, "is_bot": is_bot, "first_name": f"User{id}", "username": f"user{id}"}
