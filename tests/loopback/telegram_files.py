"""The files of the loopback Telegram: told of by id, downloaded by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.loopback.telegram_rules import Refusal, bad_request

MOST_BYTES = 20_000_000


class Files:
    """What was sent to the bot as a file."""

    def __init__(self) -> None:
        self.claimed_size: int | None = None
        """What getFile says of every file's size, true or not; None says the truth."""
        self._contents: dict[str, bytes] = {}

    def add(self, content: bytes, path: str = "documents/file_1.bin") -> str:
        """Keep a file for download; return its id."""
        self._contents[path] = content
        return f"id-of-{path}"

    def forget(self) -> None:
        """Let no file be downloaded any more."""
        self._contents.clear()

    def content(self, path: str) -> bytes:
        """Return what is downloaded from a path."""
        if path not in self._contents:
            raise Refusal(404, "Not Found")
        return self._contents[path]

    def get_file(self, params: Mapping[str, str]) -> dict[str, Any]:
        """Tell where a file is."""
        path = params.get("file_id", "").removeprefix("id-of-")
        if path not in self._contents and self.claimed_size is None:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        size = len(self._contents[path]) if self.claimed_size is None else self.claimed_size
        if size > MOST_BYTES:
            raise bad_request("file is too big")
        return {"file_id": params["file_id"], "file_unique_id": path, "file_size": size, "file_path": path}
