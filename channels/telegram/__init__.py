"""Telegram: a bot that polls for updates and answers by the Bot API."""
